"""The state a killed run continues from: one file, replaced as a whole, read without unpickling code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch

from compdiffuser.files import replacing
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import UserError

NAME = "resume.pt"
# What may change between a run and its continuation.
FREE = {"steps", "time_limit", "checkpoint_every", "log_every"}


class Resumable(Protocol):
    def state(self) -> dict[str, object]: ...
    def restore(self, state: dict[str, object]) -> None: ...


def _fixed(config: TrainConfig) -> dict[str, Any]:
    return {name: value for name, value in config.to_dict().items() if name not in FREE}


def save_resume(out: Path, learner: Resumable, config: TrainConfig, step: int, seconds: float) -> None:
    with replacing(out / NAME) as temporary:
        torch.save({"step": step, "seconds": seconds, "config": _fixed(config), **learner.state()}, temporary)


def load_resume(out: Path, learner: Resumable, config: TrainConfig) -> tuple[int, float]:
    """Restore what `out` holds; the step and the seconds of training to continue from, (0, 0.0) for a new run."""
    path = out / NAME
    if not path.exists():
        return 0, 0.0
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise UserError(
            f"checkpoint '{path}' cannot be read ({type(error).__name__}); remove it to start anew"
        ) from None
    for name, value in _fixed(config).items():
        if saved["config"].get(name) != value:
            was = saved["config"].get(name)
            raise UserError(
                f"'{out}' holds a run with {name} {was}, not {value}; choose another folder or the same value"
            )
    try:
        learner.restore(saved)
    except (RuntimeError, ValueError, KeyError) as error:
        raise UserError(f"'{out}' holds a run of another model: {str(error).splitlines()[0]}") from None
    return int(saved["step"]), float(saved["seconds"])
