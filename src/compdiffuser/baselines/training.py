"""From a dataset to a trained baseline on disk: goals in hindsight, several seeds at once, checkpoint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compdiffuser.baselines import method as method_named
from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.augmented import Augmentation
from compdiffuser.baselines.checkpoint import BaselineCheckpoint, check_seeds
from compdiffuser.baselines.config import AgentConfig
from compdiffuser.baselines.goals import Experience, GoalSampler, Trajectories, hindsight
from compdiffuser.baselines.learner import GoalLearner
from compdiffuser.baselines.presets import config_for, goal_dims
from compdiffuser.data.walking import standing
from compdiffuser.presets import Preset
from compdiffuser.runs import only_writer, processes
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.run import Record, run_training
from compdiffuser.types import Episodes, UserError

LARGEST_ACTION = 1.001  # of data that was clipped to 1 in other precision
REPLAY = 50  # updates per CUDA graph: enough to hide the host's part


def train_config(config: AgentConfig, steps: int, **changes: Any) -> TrainConfig:
    """The loop's settings for a method: Adam, nothing clipped or averaged, TF32 on a GPU.

    `steps` are rounded up to whole replays.
    """
    settings = {
        "learning_rate": config.learning_rate,
        "batch": config.batch,
        "schedule": config.schedule,
        "warmup": config.warmup,
        "weight_decay": config.weight_decay,
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


@only_writer
def train_baseline(
    method: str, episodes: Episodes, preset: Preset, out: Path, *, config: Any = None,
    training: TrainConfig | None = None, seeds: int = 1, device: torch.device | str = "cpu",
    manifest: dict[str, Any] | None = None, sample_goals: GoalSampler = hindsight,
    augment: Augmentation | None = None, compiled: bool | None = None, progress: bool = True,
    snapshots: Sequence[int] = (), notes: dict[str, Any] | None = None,
) -> BaselineCheckpoint:  # fmt: skip
    """Train `seeds` agents side by side on `episodes` and leave them in `out`.

    Seeds are counted from `training.seed`. Agents as they were after so many updates are kept in `out/after-UPDATES`
    for each of `snapshots`, which are multiples of `training.checkpoint_every`. `notes` join the record.
    An augmentation makes the goal sampler from the episodes, in the place of `sample_goals`. Episodes of a body that
    falls end before its fall.
    """
    revision = method_named(method).revision
    _check_run(method, seeds, episodes)
    device = torch.device(device)
    config = config or config_for(method, preset)
    training = training or train_config(config, 1_000_000)
    _check_training(config, training, snapshots)
    own_seeds = range(training.seed, training.seed + seeds)
    check_seeds(own_seeds)
    episodes = standing(episodes, preset.domain.body)
    agent, untrained = _untrained(method, episodes, preset, config, own_seeds)
    data = Trajectories.from_episodes(episodes, untrained.goal_dims, device)
    agent.to(device).check(data)
    if augment is not None:
        sample_goals = augment.sampler(data, training.seed)
    notes = {"augment": None, **(augment.notes() if augment else {}), **(notes or {})}
    fast = compiled if compiled is not None else device.type == "cuda"
    learner = GoalLearner(agent, Experience(data, sample_goals), training.updates_per_replay, compiled=fast)

    def checkpoint(updates: int, record: Record) -> BaselineCheckpoint:
        weights = {name: weight.detach().cpu() for name, weight in agent.state_dict().items()}
        return replace(untrained, weights=weights, record={**record, "updates": updates})

    def keep(updates: int, record: Record) -> None:
        if updates in snapshots:
            checkpoint(updates, record).save(out / f"after-{updates}")

    about = {"method": method, "revision": revision, "dataset": preset.name, "data": episodes.digest()}
    record = run_training(
        learner, training, device, out, progress=progress, on_checkpoint=keep, manifest=manifest,
        about={**about, **asdict(config), "seeds": list(untrained.seeds), **notes},
        own={"method": method, "compiled": fast, **notes},
        parameters=sum(p[0].numel() for p in agent.parameters() if p.requires_grad),
    )  # fmt: skip
    trained = checkpoint(record["outcome"]["steps"], record)
    trained.save(out)
    return trained


def _untrained(
    method: str, episodes: Episodes, preset: Preset, config: AgentConfig, seeds: Sequence[int]
) -> tuple[Agent, BaselineCheckpoint]:
    """A new agent, and its checkpoint without weights."""
    chosen, width = method_named(method), episodes.observations.shape[1]
    dims = goal_dims(preset, width, chosen.agent.whole_goals)
    sizes = Sizes(width, episodes.actions.shape[1], len(dims))
    agent: Agent = chosen.agent(config, sizes, tuple(seeds))
    return agent, BaselineCheckpoint(method, config, sizes, dims, tuple(seeds), {}, preset)


def _check_run(method: str, seeds: int, episodes: Episodes) -> None:
    if seeds < 1:
        raise UserError(f"at least 1 seed is trained, not {seeds}")
    if processes() > 1:
        raise UserError(f"{method} trains in one process; several seeds share it with --seeds-at-once")
    _check_actions(method, episodes)


def _check_actions(method: str, episodes: Episodes) -> None:
    if episodes.actions.ndim != 2 or episodes.actions.shape[1] == 0:
        raise UserError(f"{method} learns from actions, and this data has none")
    if not episodes.actions.any():
        raise UserError(f"{method} learns from actions, and those of this dataset are all 0")
    if (largest := float(np.abs(episodes.actions).max())) > LARGEST_ACTION:
        raise UserError(f"{method} acts within -1 and 1, and actions of this dataset reach {largest:.4g}; scale them")


def _check_training(config: AgentConfig, training: TrainConfig, snapshots: Sequence[int]) -> None:
    """Raises UserError for a loop that would not train as the method's config says, or not keep `snapshots`."""
    expected = train_config(config, training.steps)
    for name in ("batch", "learning_rate", "schedule", "warmup", "weight_decay", "beta2", "clip", "ema"):
        if (given := getattr(training, name)) != (own := getattr(expected, name)):
            raise UserError(f"the method's {name} is {own}, not {given}; make loop settings with train_config")
    for updates in snapshots:
        if not 0 < updates <= training.steps:
            raise UserError(f"agents are kept after 1 to {training.steps} updates, as many as are made, not {updates}")
        if updates % math.lcm(training.checkpoint_every, training.updates_per_replay):
            every = f"{training.checkpoint_every} updates, in replays of {training.updates_per_replay}"
            raise UserError(f"agents after {updates} updates cannot be kept where checkpoints come every {every}")
