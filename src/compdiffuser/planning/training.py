"""From a dataset to a planner on disk: windows, training, calibration, checkpoint."""

from __future__ import annotations

import copy
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import compdiffuser
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.storage import MINARI
from compdiffuser.data.walking import standing
from compdiffuser.data.windows import Windows
from compdiffuser.diffusion.objective import ObjectiveConfig
from compdiffuser.models.denoiser import Denoiser, DenoiserConfig
from compdiffuser.models.runner import Runner
from compdiffuser.planning.calibration import calibrate
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.support import measure_support
from compdiffuser.presets import PRESETS, Preset
from compdiffuser.presets import preset as preset_named
from compdiffuser.training.chunks import ChunkLearner
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.loop import fit
from compdiffuser.types import Episodes, UserError


def train_planner(
    episodes: Episodes,
    preset: Preset,
    out: Path,
    *,
    model: DenoiserConfig | None = None,
    config: TrainConfig | None = None,
    device: torch.device | str = "cpu",
    manifest: dict[str, Any] | None = None,
    method: str = "compdiffuser",
    compiled: bool | None = None,
    progress: bool = True,
    snapshots: Sequence[float] = (),
) -> Checkpoint:
    """Train a chunk model on `episodes` as `preset` says, and leave the planner in `out`.

    The model's horizon, overlap and dimensions come from the preset; everything else from `model`. Planners as they
    were after so many seconds of training are kept in `out/after-SECONDS` for each of `snapshots`.
    """
    device = torch.device(device)
    config = config or TrainConfig()
    model = replace(
        model or DenoiserConfig(), horizon=preset.horizon, overlap=preset.overlap, dim=len(preset.plan_dims)
    )
    width, dims = episodes.observations.shape[1], preset.plan_dims
    if len(set(dims)) < len(dims) or not all(0 <= dim < width for dim in dims):
        raise UserError(f"planned dimensions are different ones of 0 to {width - 1}, not {list(dims)}")
    episodes = standing(episodes) if preset.expert else episodes
    objective = objective_for(preset)
    states = episodes.observations[:, list(preset.plan_dims)]
    normalizer = Normalizer.from_data(states)
    windows = Windows.from_episodes(
        episodes, preset.plan_dims, normalizer, preset.horizon, preset.front_padding, preset.back_padding, device,
        preset.stride,
    )  # fmt: skip
    torch.manual_seed(config.seed)
    denoiser = Denoiser(model).to(device)
    if compiled if compiled is not None else device.type == "cuda":
        denoiser.compile_network()
    learner = ChunkLearner(denoiser, windows, objective, config.batch)
    due = sorted(snapshots, reverse=True)
    kept: list[tuple[float, list[Tensor]]] = []

    def watch(seconds: float, average: list[Tensor]) -> None:
        if due and seconds >= due[-1]:
            kept.append((due.pop(), [weight.clone() for weight in average]))

    about = {
        "method": method, "dataset": preset.name, "data": episodes.digest(), "dimensions": list(preset.plan_dims),
        "stride": preset.stride, "padding": [preset.front_padding, preset.back_padding], **model.to_dict(),
    }  # fmt: skip
    outcome = fit(learner, config, device, out, progress=progress, watch=watch, about=about)
    record = {
        "method": method,
        "training": config.to_dict(),
        "objective": asdict(objective),
        "outcome": asdict(outcome),
        "parameters": sum(p.numel() for p in denoiser.parameters()),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or "cpu",
        "versions": {"compdiffuser": compdiffuser.__version__, "torch": torch.__version__},
        "data": manifest or {},
    }

    support = measure_support(windows)

    def planner(trained: Denoiser) -> Checkpoint:
        calibration = calibrate(Runner(trained, device), windows, preset.overlap)
        return Checkpoint(trained, normalizer, calibration, preset, record, support)

    checkpoint = planner(denoiser)
    if int(os.environ.get("RANK", "0")) == 0:
        checkpoint.save(out)
        for seconds, weights in kept:
            younger = copy.deepcopy(denoiser)
            with torch.no_grad():
                for parameter, weight in zip(younger.parameters(), weights, strict=True):
                    parameter.copy_(weight)
            planner(younger).save(out / f"after-{seconds:g}")
    return checkpoint


def objective_for(preset: Preset) -> ObjectiveConfig:
    """What a planner is trained on; where plans are single chunks, start and goal are told more often."""
    alone = preset.max_chunks == 1
    return ObjectiveConfig(overlap=preset.overlap, state=0.85) if alone else ObjectiveConfig(overlap=preset.overlap)


def preset_for(name_or_path: str) -> Preset:
    """The preset of a known dataset; for data of one's own, chunks of 64 states of its first two dimensions."""
    path, minari = Path(name_or_path), name_or_path.startswith(MINARI)
    if name_or_path in PRESETS or not (path.suffix or minari):
        return preset_named(name_or_path)
    name = name_or_path.removeprefix(MINARI).replace("/", "-") if minari else path.stem
    return Preset(
        name=name, environment="", maze="", recipe="", episodes=0, episode_steps=0,
        horizon=64, overlap=24, max_chunks=16, front_padding=32, back_padding=32,
    )  # fmt: skip
