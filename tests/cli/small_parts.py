"""Planners and controllers that know nothing, small enough to be made in a test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import BODIES
from compdiffuser.following.heading import HeadingConfig, HeadingEstimator, HeadingNetwork
from compdiffuser.following.inverse_dynamics import InverseController, needs_estimate
from compdiffuser.following.network import InverseDynamics, InverseDynamicsConfig
from compdiffuser.models import Denoiser, DenoiserConfig, DiT1dConfig
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.recorded.calibration import calibrate
from compdiffuser.presets import ChunkConfig, EvaluationConfig, Preset, preset
from compdiffuser.types import Episodes

MOTORS = {"ant": 8, "ant-ball": 8, "humanoid": 21}


def small(name: str, dims: int | None = None, steps: int = 4) -> Preset:
    """A dataset with short chunks and short episodes, planning its first `dims` dimensions or its own."""
    task = preset(name) if dims is None else preset(name).planning(range(dims))
    limits = EvaluationConfig(step_limit=steps, benchmark_step_limit=steps, episodes=1)
    return replace(task, chunks=ChunkConfig(16, 4, most=2), evaluation=limits)


def small_planner(task: Preset, folder: Path) -> Path:
    """An untrained planner, with the normalizer of straight lines across the maze."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    left, right, bottom, top = task.maze.extent
    low, high = -np.ones(task.domain.body.width), np.ones(task.domain.body.width)
    for _, (x, y) in task.domain.position_dims:
        low[[x, y]], high[[x, y]] = (left, bottom), (right, top)
    start, end = rng.uniform(low, high, (2, 20, 1, len(low)))
    states = (start + (end - start) * np.linspace(0, 1, 25)[None, :, None]).reshape(-1, len(low)).astype(np.float32)
    episodes = Episodes.from_terminals(
        states, np.zeros((len(states), 1), np.float32), np.arange(len(states)) % 25 == 24
    )
    network = DiT1dConfig(width=16, depth=1, heads=2, patch=4)
    denoiser = Denoiser(DenoiserConfig(16, 4, dim=len(task.space.dims), network=network))
    normalizer = Normalizer.from_data(task.space.planned(states))
    windows = Windows.from_episodes(episodes, task.space, normalizer, 16)
    return Checkpoint(denoiser, normalizer, calibrate(denoiser, windows, 4), task).save(folder)


def small_controller(task: Preset, folder: Path) -> Path:
    """An untrained controller of a dataset's own space."""
    torch.manual_seed(0)
    body = task.domain.body
    frame = "world" if BODIES[body.name].heading(np.zeros((1, body.width))) is not None else "heading"
    config = InverseDynamicsConfig(
        body.width, MOTORS[body.name], body.name, task.space, hidden=(16,), frame=frame
    )  # fmt: skip
    estimator = HeadingEstimator(HeadingNetwork(HeadingConfig(hidden=(16,)))) if needs_estimate(config) else None
    speeds = (0.1,) * len(task.space.positions)
    return InverseController(InverseDynamics(config).eval(), speeds, estimator=estimator).save(folder)
