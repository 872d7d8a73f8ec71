"""From a dataset to a trained baseline on disk: goals in hindsight, several seeds at once, checkpoint."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import compdiffuser
from compdiffuser.baselines import method as method_named
from compdiffuser.baselines.agent import Sizes
from compdiffuser.baselines.augmented import Augmentation
from compdiffuser.baselines.checkpoint import BaselineCheckpoint
from compdiffuser.baselines.goals import Experience, GoalSampler, Trajectories, hindsight
from compdiffuser.baselines.learner import GoalLearner
from compdiffuser.baselines.presets import config_for
from compdiffuser.presets import Preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.loop import fit
from compdiffuser.types import Episodes, UserError

LARGEST_ACTION = 1.001  # of data that was clipped to 1 in other precision
REPLAY = 50  # updates per CUDA graph: enough to hide the host's part


def train_config(config: Any, steps: int, **changes: Any) -> TrainConfig:
    """The loop's settings for a method: Adam, nothing clipped or averaged, TF32 on a GPU.

    The rate is constant, unless a method's config has a `schedule`; it may also have `warmup` and `weight_decay`.
    `steps` are rounded up to whole replays.
    """
    settings = {
        "learning_rate": config.learning_rate,
        "batch": config.batch,
        "schedule": getattr(config, "schedule", "constant"),
        "warmup": getattr(config, "warmup", 0),
        "weight_decay": getattr(config, "weight_decay", 0.0),
        "clip": None,  # the norm of a gradient would be that of all seeds together
        "beta2": 0.999,
        "ema": None,
        "precision": "tf32",
        "updates_per_replay": REPLAY,
        "checkpoint_every": 100_000,
        "log_every": 1_000,
    }
    return TrainConfig(steps=whole_replays(steps), **(settings | changes))


def whole_replays(updates: int) -> int:
    """Updates rounded up to whole replays; what is less than one update stays, to be refused."""
    return math.ceil(updates / REPLAY) * REPLAY if updates > 0 else updates


def goal_dims(preset: Preset, width: int, whole: bool) -> tuple[int, ...]:
    """Observation dimensions that make a goal: all of them, or the position where tasks ask for nothing else."""
    return (0, 1) if preset.recipe == "regions" and not whole else tuple(range(width))


def train_baseline(
    method: str,
    episodes: Episodes,
    preset: Preset,
    out: Path,
    *,
    config: Any = None,
    training: TrainConfig | None = None,
    seeds: int = 1,
    device: torch.device | str = "cpu",
    manifest: dict[str, Any] | None = None,
    sample_goals: GoalSampler = hindsight,
    augment: Augmentation | None = None,
    compiled: bool | None = None,
    progress: bool = True,
    snapshots: Sequence[int] = (),
    notes: dict[str, Any] | None = None,
) -> BaselineCheckpoint:
    """Train `seeds` agents side by side on `episodes` and leave them in `out`.

    Seeds are counted from `training.seed`. Agents as they were after so many updates are kept in `out/after-UPDATES`
    for each of `snapshots`, which are multiples of `training.checkpoint_every`. `notes` join the record.
    An augmentation makes the goal sampler from the episodes, in the place of `sample_goals`.
    """
    chosen = method_named(method)
    if seeds < 1:
        raise UserError(f"at least 1 seed is trained, not {seeds}")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError(f"{method} trains in one process; several seeds share it with --seeds-at-once")
    _check_actions(method, episodes)
    device = torch.device(device)
    config = config or config_for(method, preset)
    training = training or train_config(config, 1_000_000)
    _check_training(config, training, snapshots)
    numbers = tuple(range(training.seed, training.seed + seeds))
    width = episodes.observations.shape[1]
    dims = goal_dims(preset, width, chosen.agent.whole_goals)
    sizes = Sizes(width, episodes.actions.shape[1], len(dims))
    agent: Any = chosen.agent(config, sizes, numbers)
    agent.to(device)
    data = Trajectories.from_episodes(episodes, dims, device)
    if hasattr(agent, "check"):
        agent.check(data)
    if augment is not None:
        sample_goals = augment.sampler(data, training.seed)
    notes = {"augment": None, **(augment.notes() if augment else {}), **(notes or {})}
    experience = Experience(data, sample_goals)
    fast = compiled if compiled is not None else device.type == "cuda"
    learner = GoalLearner(agent, experience, training.updates_per_replay, compiled=fast)
    record: dict[str, Any] = {
        "method": method,
        "training": training.to_dict(),
        "parameters": sum(p[0].numel() for p in agent.parameters() if p.requires_grad),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or "cpu",
        "compiled": fast,
        "versions": {"compdiffuser": compdiffuser.__version__, "torch": torch.__version__},
        "data": manifest or {},
        **notes,
    }

    def checkpoint(updates: int, **more: Any) -> BaselineCheckpoint:
        weights = {name: weight.detach().cpu() for name, weight in agent.state_dict().items()}
        told = {**record, "updates": updates, **more}
        return BaselineCheckpoint(method, config, sizes, dims, numbers, weights, preset, told)

    def keep(updates: int) -> None:
        if updates in snapshots:
            checkpoint(updates).save(out / f"after-{updates}")

    about = {"method": method, "revision": chosen.revision, "dataset": preset.name, "data": episodes.digest()}
    about |= {**asdict(config), "seeds": list(numbers), **notes}
    outcome = fit(learner, training, device, out, progress=progress, on_checkpoint=keep, about=about)
    trained = checkpoint(outcome.steps, outcome=asdict(outcome))
    trained.save(out)
    return trained


def _check_actions(method: str, episodes: Episodes) -> None:
    if episodes.actions.ndim != 2 or episodes.actions.shape[1] == 0:
        raise UserError(f"{method} learns from actions, and field 'actions' has shape {list(episodes.actions.shape)}")
    if not episodes.actions.any():
        raise UserError(f"{method} learns from actions, and those of this dataset are all 0")
    if (largest := float(np.abs(episodes.actions).max())) > LARGEST_ACTION:
        raise UserError(f"{method} acts within -1 and 1, and actions of this dataset reach {largest:.4g}; scale them")


def _check_training(config: Any, training: TrainConfig, snapshots: Sequence[int]) -> None:
    """Refuse a loop that would not train as the method's config says, or keep the agents that are asked for."""
    expected = train_config(config, training.steps)
    for name in ("batch", "learning_rate", "schedule", "warmup", "weight_decay", "beta2", "clip", "ema"):
        if (given := getattr(training, name)) != (own := getattr(expected, name)):
            raise UserError(f"the method's {name} is {own}, not {given}; make loop settings with train_config")
    for updates in snapshots:
        if updates % math.lcm(training.checkpoint_every, training.updates_per_replay):
            every = f"{training.checkpoint_every} updates, in replays of {training.updates_per_replay}"
            raise UserError(f"agents after {updates} updates cannot be kept where checkpoints come every {every}")
