"""A trained planner on disk: `model.safetensors`, `support.safetensors`, and `config.json` with everything else.

Nothing in a checkpoint is unpickled, so one from a stranger is safe to open.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialize
from torch import Tensor

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.files import pretrained_folder, read_json, replacing, write_json
from compdiffuser.models.denoiser import Denoiser, DenoiserConfig
from compdiffuser.planning.calibration import Calibration
from compdiffuser.planning.support import Support
from compdiffuser.presets import PRESETS, Preset, preset
from compdiffuser.types import UserError

WEIGHTS, SUPPORT, CONFIG = "model.safetensors", "support.safetensors", "config.json"
FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """Everything a planner needs."""

    denoiser: Denoiser
    normalizer: Normalizer
    calibration: Calibration
    preset: Preset
    """The dataset it was trained on: what is planned, and how a plan is executed."""
    record: dict[str, Any] = field(default_factory=dict)
    """How it was trained: settings, time, memory, data manifest."""
    support: Support | None = None
    """Where its data has been; without it, only the model is asked whether a plan is good."""

    def save(self, folder: str | os.PathLike[str]) -> Path:
        folder = Path(folder)
        weights = {name: tensor.half().contiguous().cpu() for name, tensor in self.denoiser.state_dict().items()}
        with replacing(folder / WEIGHTS) as temporary:
            temporary.write_bytes(serialize(weights))
        if self.support is not None:
            with replacing(folder / SUPPORT) as temporary:
                temporary.write_bytes(serialize({"segments": self.support.segments.half().contiguous().cpu()}))
        write_json(
            folder / CONFIG,
            {
                "format": FORMAT,
                "preset": asdict(self.preset),
                "denoiser": self.denoiser.config.to_dict(),
                "normalizer": self.normalizer.to_dict(),
                "calibration": self.calibration.to_dict(),
                "support": None if self.support is None else {"strays": self.support.strays},
                "record": self.record,
            },
        )
        return folder


def load(name_or_path: str | os.PathLike[str]) -> Checkpoint:
    """Read a pretrained planner by dataset name, by folder, or by hub id (`owner/name`)."""
    folder = locate(name_or_path)
    config = read_json(folder / CONFIG)
    if "sizes" in config:
        raise UserError(f"'{folder}' holds an agent of {config.get('method')}, which makes no plans; eval drives it")
    try:
        if config["format"] != FORMAT:
            raise UserError(f"'{folder}' has checkpoint format {config['format']}, this version reads {FORMAT}")
        denoiser = Denoiser(DenoiserConfig(**config["denoiser"]))
        normalizer = Normalizer.from_dict(config["normalizer"])
        calibration = Calibration.from_dict(config["calibration"])
        trained_on = Preset(**{**config["preset"], "plan_dims": tuple(config["preset"]["plan_dims"])})
    except (KeyError, TypeError) as error:
        raise UserError(f"'{folder / CONFIG}' does not describe a planner: {error}") from None
    weights = tensors(folder / WEIGHTS)
    try:
        denoiser.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        path = folder / WEIGHTS
        raise UserError(f"'{path}' holds weights of another architecture than its config says: {reason}") from None
    support = None
    if known := config.get("support"):
        support = Support(tensors(folder / SUPPORT)["segments"], tuple(known["strays"]))
    return Checkpoint(denoiser, normalizer, calibration, trained_on, config.get("record", {}), support)


def tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file in full precision, or a sentence about it."""
    if not path.exists():
        raise UserError(f"the checkpoint '{path.parent}' has no {path.name}")
    try:
        return {name: tensor.float() for name, tensor in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise UserError(f"'{path}' is corrupt: {error}") from None


def locate(name_or_path: str | os.PathLike[str]) -> Path:
    """The folder of a checkpoint: a path, else a shipped one, else one from the hub."""
    text = os.fspath(name_or_path)
    if Path(text).is_dir():
        return Path(text)
    shipped = pretrained_folder() / text
    if shipped.is_dir():
        return shipped
    if text in PRESETS:
        raise UserError(f"no planner is shipped for '{text}'; train one with: compdiffuser train {text}")
    if text.count("/") == 1 and not text.startswith((".", "/", "runs/")) and not Path(text).parent.is_dir():
        return _from_hub(text)
    if "/" in text:
        raise UserError(f"there is no checkpoint at '{text}'")
    preset(text)  # raises with the nearest name
    raise AssertionError


def _from_hub(repository: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UserError(f"to load '{repository}' from the hub, install huggingface_hub") from None
    try:
        return Path(snapshot_download(repository, allow_patterns=[WEIGHTS, SUPPORT, CONFIG]))
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"'{repository}' is no folder here and cannot be fetched from the hub: {reason}") from None


def choose_device(name: str) -> torch.device:
    """`auto` takes the GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"unknown device '{name}'; choose auto, cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device '{name}' was asked for, but no GPU is visible")
    return device
