"""The state a killed run continues from: one file, replaced as a whole, read without unpickling code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch

from compdiffuser.files import replacing
from compdiffuser.runs import read_checkpoint
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import UserError

NAME = "resume.pt"
# What may change between a run and its continuation.
FREE = {"steps", "time_limit", "checkpoint_every", "log_every"}


class Resumable(Protocol):
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


def _fixed(config: TrainConfig) -> dict[str, Any]:
    return {name: value for name, value in config.to_dict().items() if name not in FREE}


def save_resume(
    out: Path, learner: Resumable, config: TrainConfig, step: int, seconds: float, about: Mapping[str, Any]
) -> None:
    """Save the state of a run; `about` describes it in plain values, and no other run may continue it."""
    progress = {"step": step, "seconds": seconds, "config": _fixed(config), "about": dict(about)}
    # Through Python's own file, a full disk is an OSError with its reason.
    with replacing(out / NAME) as temporary, open(temporary, "wb") as file:
        torch.save({**progress, **learner.state()}, file)


def load_resume(out: Path, learner: Resumable, config: TrainConfig, about: Mapping[str, Any]) -> tuple[int, float]:
    """Restore what `out` holds; returns the step and seconds of training to continue from, (0, 0.0) for a new run.

    Raises UserError where the file is damaged, or the run in it is another one or longer than asked for.
    """
    path = out / NAME
    if not path.exists():
        return 0, 0.0
    saved = read_checkpoint(path)
    try:
        step, seconds = int(saved["step"]), float(saved["seconds"])
        settings, was_about = dict(saved["config"]), dict(saved.get("about", {}))
    except Exception as error:
        raise UserError(
            f"checkpoint '{path}' cannot be read ({type(error).__name__}); remove it to start anew"
        ) from None
    _refuse_another(out, was_about, about)
    # A setting that the run was too old to know had its default value.
    _refuse_another(out, _fixed(TrainConfig()) | settings, _fixed(config))
    if step >= config.steps + config.updates_per_replay:
        raise UserError(
            f"'{out}' holds a run of {step} updates, more than {config.steps}; choose another folder or ask for more"
        )
    try:
        learner.restore(saved)
    except (RuntimeError, ValueError, KeyError):
        raise UserError(f"'{out}' holds a run of another model; choose another folder, or remove this one") from None
    return step, seconds


def _refuse_another(out: Path, was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name, value in now.items():
        if name == "data" and was.get(name, value) != value:
            raise UserError(f"'{out}' holds a run on other data of that name; choose another folder")
        if name == "begin_with" and was.get(name) != value:  # where nothing is told, with random weights
            raise UserError(f"'{out}' holds a run that began with other weights; choose another folder")
        if name in was and was[name] != value:
            raise UserError(
                f"'{out}' holds a run with {name} {was[name]}, not {value}; choose another folder or the same value"
            )
