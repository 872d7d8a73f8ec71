"""A training run and its record: what every planner, baseline and controller says of how it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from compdiffuser.runs import device_name, processes, versions
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.loop import Moment, Stopped, fit
from compdiffuser.training.updater import Learner

Record = dict[str, Any]


def run_training(
    learner: Learner,
    config: TrainConfig,
    device: torch.device,
    out: Path,
    *,
    about: Mapping[str, Any],
    own: Mapping[str, Any] | None = None,
    manifest: Mapping[str, Any] | None = None,
    parameters: int | None = None,
    progress: bool = True,
    watch: Callable[[Moment, list[Tensor], Record], None] | None = None,
    on_checkpoint: Callable[[int, Record], None] | None = None,
    on_interrupt: Callable[[Record], None] | None = None,
) -> Record:
    """Train as `fit` does, and return the record of it, ready for JSON.

    `own` is what the learner adds to the record, `manifest` says where the data came from, and `parameters` counts the
    weights where not all of the module's are meant. `on_checkpoint` is given the number of updates and the record so
    far, which lacks the outcome; so is `watch`, with what it sees in `fit`. `on_interrupt` is given that record too
    where Ctrl-C ended the run after its last update was kept; it then says after how many seconds and updates.
    """
    if parameters is None:
        parameters = sum(p.numel() for p in learner.module.parameters())
    record: Record = {
        **(own or {}),
        "training": config.to_dict(),
        "parameters": parameters,
        "processes": processes(),
        "device": device_name(device),
        "versions": versions(),
        "data": dict(manifest or {}),
    }

    def keep(updates: int) -> None:
        if on_checkpoint is not None:
            on_checkpoint(updates, dict(record))

    def show(moment: Moment, average: list[Tensor]) -> None:
        if watch is not None:
            watch(moment, average, dict(record))

    try:
        outcome = fit(learner, config, device, out, progress=progress, watch=show, on_checkpoint=keep, about=about)
    except Stopped as stop:  # a second Ctrl-C, which is none, ends it at once
        if on_interrupt is not None:
            on_interrupt({**record, "after_seconds": stop.seconds, "after_updates": stop.updates})
        raise
    return {**record, "outcome": asdict(outcome)}
