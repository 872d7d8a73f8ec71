"""Runs: the folders they are kept in, the processes they are made of, and the versions and devices they record."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import compdiffuser
from compdiffuser.types import UserError

if TYPE_CHECKING:
    import torch

RUNS = Path("runs")
"""Where training leaves what it made, below the present folder."""


def run_folder(dataset: str, method: str, augment: str | None = None) -> Path:
    """Where a method's run on a dataset is kept, unless asked otherwise."""
    return RUNS / "-".join([dataset, method, *([augment] if augment else [])])


def rank() -> int:
    """This process's number among those that train together; the first, 0, writes and prints."""
    return int(os.environ.get("RANK", "0"))


def processes() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def package_versions(names: Sequence[str], missing: str | None = None) -> dict[str, str]:
    """Versions of installed packages. Those that are not installed are left out, or told by the word `missing`."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            if missing is not None:
                found[name] = missing
    return found


def versions() -> dict[str, str]:
    """What a training record says of the software."""
    import torch

    return {"compdiffuser": compdiffuser.__version__, "torch": str(torch.__version__)}


def device_name(device: torch.device) -> str:
    """What a training record says of the hardware: the GPU's name, or the processor's."""
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "cpu"


def choose_device(name: str) -> torch.device:
    """The device of that name; `auto` takes the GPU where there is one. Raises UserError where it is not there."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"unknown device '{name}'; choose auto, cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device '{name}' was asked for, but no GPU is visible")
    return device
