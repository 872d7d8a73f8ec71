"""A trained planner on disk: the weights, recorded segments, and a config with everything else.

Nothing in a checkpoint is unpickled, so one from a stranger is safe to open.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from compdiffuser import artifact
from compdiffuser.artifact import Artifact
from compdiffuser.checks import brief
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.files import pretrained_folder
from compdiffuser.models.denoiser import Denoiser, DenoiserConfig
from compdiffuser.models.onnx import OnnxDenoiser
from compdiffuser.planning.recorded.calibration import Calibration
from compdiffuser.planning.recorded.postures import Postures
from compdiffuser.planning.recorded.support import Support
from compdiffuser.planning.sharing.hub import LONGEST_ID, fetched
from compdiffuser.presets import PRESETS, Preset, preset
from compdiffuser.restoring import restored
from compdiffuser.runs import RUNS
from compdiffuser.types import UserError

KIND, FORMAT = "planner", 2


@dataclass(frozen=True)
class Checkpoint:
    """Everything a planner needs."""

    denoiser: Denoiser | OnnxDenoiser
    normalizer: Normalizer
    calibration: Calibration
    preset: Preset
    """The dataset it was trained on: what is planned, and how a plan is executed."""
    record: dict[str, Any] = field(default_factory=dict)
    """How it was trained: settings, time, memory, data manifest."""
    support: Support | None = None
    """Where its data has been; without it, only the model is asked whether a plan is good."""
    postures: Postures | None = None
    """How its data moves, where postures are planned."""

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write it, whole or not at all. Raises UserError where its network is an ONNX file, which has no weights."""
        if not isinstance(self.denoiser, Denoiser):
            raise UserError("a planner whose network is an ONNX file cannot be saved; save the one it was made from")
        parts = {"model": artifact.arrays(self.denoiser.state_dict(), half=True), **self.recorded()}
        return artifact.save(folder, Artifact(KIND, FORMAT, self.described(), parts))

    def recorded(self) -> dict[str, artifact.Part]:
        """Its parts that are taken from the data."""
        parts = {}
        if self.support is not None:
            parts["support"] = artifact.arrays(self.support.arrays(), half=True)
        if self.postures is not None:
            parts["postures"] = artifact.arrays({"snippets": self.postures.snippets}, half=True)
        return parts

    def described(self) -> dict[str, Any]:
        """Everything but arrays, ready for JSON."""
        return {
            "preset": self.preset.to_dict(),
            "denoiser": self.denoiser.config.to_dict(),
            "normalizer": self.normalizer.to_dict(),
            "calibration": self.calibration.to_dict(),
            "support": None if self.support is None else self.support.described(),
            **({} if self.postures is None else {"postures": self.postures.described()}),
            "record": self.record,
        }


def load(name_or_path: str | os.PathLike[str]) -> Checkpoint:
    """Read a pretrained planner by dataset name, by folder, or by hub id (`owner/name`)."""
    folder = locate(name_or_path)
    found = artifact.load(folder, KIND, FORMAT)
    return restore(found, folder, KIND, lambda sizes: restored(lambda: Denoiser(sizes), found.parts["model"], folder))


def restore(
    found: Artifact, folder: Path, kind: str, build: Callable[[DenoiserConfig], Denoiser | OnnxDenoiser]
) -> Checkpoint:
    """What an artifact describes, with the denoiser that `build` makes. Raises UserError where it describes nothing."""
    config = found.config
    with artifact.describing(folder, kind):
        sizes = DenoiserConfig.from_dict(config["denoiser"])
        normalizer = Normalizer.from_dict(config["normalizer"])
        calibration = Calibration.from_dict(config["calibration"])
        trained_on, known, moves = Preset.from_dict(config["preset"]), config["support"], config.get("postures")
        record = artifact.record_of(config)
        _check_dimensions(sizes, normalizer, calibration, trained_on)
    denoiser = build(sizes)
    support = postures = None
    if known is not None:
        segments = _recorded(found, "support", "segments", folder)
        with artifact.describing(folder, kind):
            legs = _recorded(found, "support", "legs", folder) if "aside" in known else None
            support = Support.restored(segments, known, legs)
            support.check(trained_on.space)
    if moves is not None:
        snippets = _recorded(found, "postures", "snippets", folder)
        with artifact.describing(folder, kind):
            postures = Postures.restored(snippets, moves, trained_on.space)
    return Checkpoint(denoiser, normalizer, calibration, trained_on, record, support, postures)


def _recorded(found: Artifact, part: str, name: str, folder: Path) -> Tensor:
    """An array of the data. Raises UserError where it is not there."""
    if name not in found.parts.get(part, {}):
        raise UserError(f"the planner '{folder}' lacks the recorded {name} that its config names")
    return artifact.tensors(found.parts[part])[name]


def _check_dimensions(sizes: DenoiserConfig, normalizer: Normalizer, calibration: Calibration, trained: Preset) -> None:
    """Raises UserError where the parts of a planner are of different spaces."""
    dims, things = len(trained.space.dims), len(trained.space.positions)
    if not dims == sizes.dim == len(normalizer.low):
        given = f"the denoiser {sizes.dim} and the normalizer {len(normalizer.low)}"
        raise UserError(f"the space has {dims} dimensions, {given}")
    if len(calibration.groups) not in (0, things):
        raise UserError(f"the space has {things} position groups, the calibration {len(calibration.groups)}")


def locate(name_or_path: str | os.PathLike[str]) -> Path:
    """The folder of a checkpoint: a path, else a shipped one, else one from the hub."""
    text = os.fspath(name_or_path)
    if artifact.is_folder(text):
        return Path(text)
    shipped = pretrained_folder() / text
    if artifact.is_folder(shipped):
        return shipped
    if text in PRESETS:
        raise UserError(f"no planner is shipped for '{text}'; train one with: compdiffuser train {text}")
    local = text.startswith((".", "/", f"{RUNS}/")) or artifact.is_folder(Path(text).parent)
    if text.count("/") == 1 and len(text) <= LONGEST_ID and not local:
        return fetched(text, KIND)
    if "/" in text:
        raise UserError(f"there is no checkpoint at '{brief(text)}'")
    preset(text)  # raises with the nearest name
    raise AssertionError
