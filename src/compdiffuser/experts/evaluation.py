"""How well an expert walks: distance, falls, turning on command, and survival wherever a maze puts it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from compdiffuser.data.stitch import Stitch
from compdiffuser.data.walking import ORIENTATION, uprightness
from compdiffuser.experts.bodies import Bodies
from compdiffuser.experts.policy import Expert
from compdiffuser.presets import PRESETS
from compdiffuser.types import Array, UserError

STEPS = 200
"""Steps of a measured episode."""


def walk(expert: Expert, bodies: Bodies, turn: float, noise: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Walk every body for `STEPS` steps; distance [E] along the commanded direction, and who fell [E].

    Directions are spread evenly and turn by `turn` radians half-way. A body that was on its back has fallen.
    """
    count = len(bodies.all)
    angles = rng.uniform(0, 2 * math.pi) + 2 * math.pi * np.arange(count) / count
    distance, fell = np.zeros(count), np.zeros(count, bool)
    for half, offset in enumerate((0.0, turn)):
        directions = np.stack([np.cos(angles + offset), np.sin(angles + offset)], axis=1)
        for body, direction in zip(bodies.all, directions, strict=True):
            if half == 0:
                body.reset(direction)
            body.direction = direction
        for _ in range(STEPS // 2):
            before = np.stack([body.position for body in bodies.all])
            actions = expert.act(bodies.states)
            actions = np.clip(actions + rng.normal(0.0, noise, actions.shape), -1.0, 1.0)
            bodies.step(actions)
            moved = np.stack([body.position for body in bodies.all]) - before
            distance += (moved * directions).sum(axis=1)
            fell |= ~np.array([body.upright for body in bodies.all])
    return distance, fell


def measure(expert: Expert, bodies: Bodies, rounds: int = 1, seed: int = 0) -> dict[str, float]:
    """Metres per 200 steps straight on and with a turn about, and the share of falls without and with noise 0.2."""
    if not bodies.all[0].config.directed:
        raise UserError(f"'{bodies.all[0].config.name}' takes no direction, so its walk is not measured")
    rng = np.random.default_rng(seed)
    runs = {
        "": [walk(expert, bodies, 0.0, 0.0, rng) for _ in range(rounds)],
        "_noise": [walk(expert, bodies, 0.0, 0.2, rng) for _ in range(rounds)],
        "_turn": [walk(expert, bodies, math.pi, 0.2, rng) for _ in range(rounds)],
    }
    figures = {f"distance{kind}": float(np.mean([run[0] for run in done])) for kind, done in runs.items()}
    return figures | {f"fell{kind}": float(np.mean([run[1] for run in done])) for kind, done in runs.items()}


def survival(expert: Expert, dataset: str, rounds: int = 1, seed: int = 0) -> dict[str, float]:
    """Reset in every free cell of a maze and walked as its stitch data: the share of episodes that end upright.

    `moved` is the share of episodes that end more than a cell away from their start.
    """
    recipe = Stitch(replace(PRESETS[dataset], episode_steps=STEPS + 1), expert)
    rng = np.random.default_rng(seed)
    paths = [recipe.record_from(cell, rng).arrays()["qpos"] for cell in recipe.maze.free_cells for _ in range(rounds)]
    ends = np.stack([path[-1] for path in paths])
    starts = np.stack([path[0] for path in paths])
    away = np.linalg.norm(ends[:, :2] - starts[:, :2], axis=1)
    return {
        "episodes": float(len(paths)),
        "upright": float(np.mean(uprightness(ends[:, ORIENTATION]) > 0)),
        "moved": float(np.mean(away > recipe.maze.unit)),
    }
