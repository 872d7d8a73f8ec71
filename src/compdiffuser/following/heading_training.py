"""Training of the heading estimator, and its errors in degrees on episodes that it never saw."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from compdiffuser.domains.body import true_heading
from compdiffuser.following.heading import HeadingConfig, HeadingEstimator, HeadingNetwork, HeadingTrack
from compdiffuser.presets import Preset
from compdiffuser.runs import only_writer
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.loop import Learner
from compdiffuser.training.run import run_training
from compdiffuser.types import Array, Episodes, UserError

SAMPLES = 65_536
"""States from which scales are measured."""
HELD_OUT, MOST_HELD_OUT = 0.1, 200
"""Share of episodes that are kept for measuring, and how many at most."""
SECOND = 40
"""Steps of the first second after a reset."""


@dataclass(frozen=True)
class HeadingLearner(Learner):
    """Regresses (cos, sin) of the heading by mean squared error; bodies that face up or down count for nothing."""

    module: HeadingNetwork
    observations: Tensor
    """[S, obs]"""
    facing: Tensor
    """[S, 3] cos and sin of the heading, and how far it counts."""
    batch: int

    def loss(self, module: nn.Module, generator: torch.Generator) -> Tensor:
        device = self.observations.device
        rows = torch.randint(len(self.observations), (self.batch,), device=device, generator=generator)
        facing = self.facing[rows]
        missed = (module(self.observations[rows]) - facing[:, :2]).square().sum(-1)
        return (missed * facing[:, 2]).mean()


@only_writer
def train_heading(
    episodes: Episodes,
    preset: Preset,
    out: Path,
    *,
    model: HeadingConfig | None = None,
    config: TrainConfig | None = None,
    device: torch.device | str = "cpu",
    manifest: dict[str, Any] | None = None,
    progress: bool = True,
) -> HeadingEstimator:
    """Learn where bodies face from `qpos`, and leave the estimator and its errors in `out`.

    Raises UserError for episodes without `qpos`, and for bodies whose observations hold their heading.
    """
    device, config = torch.device(device), config or TrainConfig()
    body = preset.domain.body
    body.check(episodes.observations)
    model = model or HeadingConfig(body.name)
    headings = recorded_headings(episodes)
    held = max(1, min(MOST_HELD_OUT, round(HELD_OUT * len(episodes))))
    rows = int(episodes.starts[-held]) if len(episodes) > held else len(headings)
    torch.manual_seed(config.seed)
    network = HeadingNetwork(model).to(device)
    observations = torch.as_tensor(episodes.observations[:rows].copy(), dtype=torch.float32, device=device)
    counts = 1 - network.body.vertical(episodes.observations[:rows])[:, 0] ** 2
    facing = np.stack([np.cos(headings[:rows]), np.sin(headings[:rows]), counts], axis=1)
    network.scale_to(observations[torch.randperm(rows)[:SAMPLES].to(device)])
    learner = HeadingLearner(
        network, observations, torch.as_tensor(facing, dtype=torch.float32, device=device), config.batch
    )  # fmt: skip
    about = {"dataset": preset.name, "data": episodes.digest(), **model.to_dict()}
    record = run_training(
        learner, config, device, out, about=about, own={"dataset": preset.name}, manifest=manifest, progress=progress
    )  # fmt: skip
    network = network.cpu().eval()
    errors = measure_heading(network, episodes[-held:])
    estimator = HeadingEstimator(network, {**record, "errors": errors})
    estimator.save(out)
    return estimator


def recorded_headings(episodes: Episodes) -> Array:
    """Radians [S], from the simulator's state that data records. Raises UserError where it does not."""
    if episodes.qpos is None:
        raise UserError("headings are learned from the field 'qpos', which these episodes do not have")
    return true_heading(episodes.qpos)


def measure_heading(network: HeadingNetwork, episodes: Episodes) -> dict[str, Any]:
    """Errors in degrees, ready for JSON: all along, in the first second after a reset, and of single observations."""
    length = int(episodes.lengths.min())
    rows = episodes.starts[:, None] + np.arange(length)
    observations, true = episodes.observations[rows], recorded_headings(episodes)[rows]
    track = HeadingTrack(network)
    found = np.stack([track(observations[:, step]) for step in range(length)], axis=1)
    with torch.no_grad():
        said = network(torch.from_numpy(np.array(observations.reshape(rows.size, -1), np.float32))).numpy()
    alone = np.arctan2(said[:, 1], said[:, 0]).reshape(rows.shape)
    up = ~network.body.fallen(observations)
    errors = {
        "all": _degrees(found, true),
        "upright": _degrees(found, true)[up],
        "first_second": _degrees(found, true)[:, :SECOND],
        "after_first_second": _degrees(found, true)[:, SECOND:],
        "single_observations": _degrees(alone, true)[up],
    }
    figures = {name: _figures(error) for name, error in errors.items() if error.size}
    return {"episodes": len(episodes), **figures}


def _degrees(found: Array, true: Array) -> Array:
    return np.degrees(np.abs(np.angle(np.exp(1j * (found - true)))))


def _figures(errors: Array) -> dict[str, float]:
    return {"median": round(float(np.median(errors)), 2), "of_90_percent": round(float(np.quantile(errors, 0.9)), 2)}
