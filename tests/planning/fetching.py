"""A toy world of two rooms with an agent and a ball: it walks while the ball lies, or walks with the ball before it."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import torch

from compdiffuser.data.windows import Windows
from compdiffuser.domains import Domain, Group, Space
from compdiffuser.domains.mazes import Maze
from compdiffuser.models import Denoiser, DenoiserConfig, DiT1dConfig
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.recorded.calibration import calibrate
from compdiffuser.planning.recorded.support import measure_support
from compdiffuser.planning.training import normalizer_of
from compdiffuser.presets import ChunkConfig, Preset
from compdiffuser.types import Episodes

HORIZON, OVERLAP, AHEAD = 24, 8, 0.5
KNOWN = (Group("agent", (0, 1)), Group("ball", (2, 3)))
ROOMS = Maze.drawn(
    "rooms", ["#########", "#...#...#", "#.......#", "#...#...#", "#########"], unit=2.0, origin=(-2.0, -2.0)
)
"""Two rooms of 6 × 6 m, x from −1 to 5 and from 7 to 13, and a door between them, y from 1 to 3."""
WORLD = Domain(
    "fetching", space=Space.of((0, 1, 2, 3), KNOWN), maze=ROOMS, position_dims=KNOWN, goal_groups=("ball",)
)  # fmt: skip
FETCHING = Preset("fetching-v0", WORLD, chunks=ChunkConfig(HORIZON, OVERLAP, most=6, scaffold=0.25))
DOOR = np.array([6.0, 2.0])


def place(rng: np.random.Generator) -> np.ndarray:
    """Somewhere in a room, not by the wall."""
    return rng.uniform([-0.5, -0.5], [4.5, 4.5]) + rng.integers(2) * np.array([8.0, 0.0])


def walk(start: np.ndarray, end: np.ndarray, length: int, ahead: float = 0.0) -> np.ndarray:
    """[length, 2], straight, or through the door, `ahead` of another who stops before the end."""
    corners = [start, end] if (start[0] < 6) == (end[0] < 6) else [start, DOOR, end]
    line = np.concatenate([np.linspace(a, b, 200) for a, b in pairwise(corners)])
    along = np.concatenate([[0], np.linalg.norm(np.diff(line, axis=0), axis=1).cumsum()])
    wanted = np.minimum(np.arange(length) * 0.25, along[-1] - AHEAD) + ahead
    return np.stack([np.interp(wanted, along, line[:, axis]) for axis in (0, 1)], axis=1)


@cache
def recorded(count: int = 400, length: int = 60, seed: int = 0) -> Episodes:
    """Half of the episodes walk, half take the ball along, a little behind it."""
    rng = np.random.default_rng(seed)
    states = np.zeros((count, length, 4))
    for number, episode in enumerate(states):
        ends = place(rng), place(rng)
        episode[:, :2] = walk(*ends, length)
        episode[:, 2:] = walk(*ends, length, AHEAD) if number % 2 else place(rng)
    observations = (states + rng.normal(0, 0.005, states.shape)).reshape(-1, 4).astype(np.float32)
    return Episodes.from_terminals(observations, observations[:, :2], np.arange(count * length) % length == length - 1)


@cache
def windows(seed: int = 0) -> Windows:
    normalizer = normalizer_of(recorded(), WORLD.space)
    return Windows.from_episodes(recorded(seed=seed), WORLD.space, normalizer, HORIZON)


@cache
def checkpoint() -> Checkpoint:
    """An untrained planner that knows its data."""
    torch.manual_seed(0)
    network = DiT1dConfig(width=16, depth=1, heads=2)
    denoiser = Denoiser(DenoiserConfig(HORIZON, OVERLAP, dim=4, network=network))
    support = measure_support(windows(), count=4096)
    normalizer = normalizer_of(recorded(), WORLD.space)
    return Checkpoint(denoiser, normalizer, calibrate(denoiser, windows(), OVERLAP), FETCHING, support=support)


def normalized(*states) -> torch.Tensor:
    """States [n, 4] in metres, as the planner sees them."""
    return checkpoint().normalizer.normalize(torch.tensor(np.array(states, np.float32)))


def metres(states: torch.Tensor) -> np.ndarray:
    return checkpoint().normalizer.denormalize(states).numpy()
