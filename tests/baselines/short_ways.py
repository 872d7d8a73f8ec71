"""Problems in the medium maze whose start and goal lie a given number of cells apart, driven in the real simulator."""

from __future__ import annotations

from functools import cache

import numpy as np

from compdiffuser.domains import World, domain
from compdiffuser.domains.mazes import maze

MEDIUM = "pointmaze-medium-stitch-v0"
LAYOUT = maze("medium")


def pairs(cells_apart: int, count: int, seed: int = 0) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Random start and goal cells."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        goal = LAYOUT.free_cells[rng.integers(len(LAYOUT.free_cells))]
        starts = np.argwhere(LAYOUT.distances(goal) == cells_apart)
        if len(starts):
            found.append((tuple(map(int, starts[rng.integers(len(starts))])), goal))
    return found


@cache
def simulator() -> World:
    return domain("pointmaze-medium").open()


def success(policy, cells_apart: int = 2, count: int = 20, limit: int = 300) -> float:
    """Share of the goals that a policy reaches within `limit` steps; a cell is about 20 steps wide."""
    world, reached = simulator(), 0
    for number, (start, goal) in enumerate(pairs(cells_apart, count)):
        observation, target = world.between(start, goal, number)
        policy.reset(observation[None], target[None])
        for _ in range(limit):
            observation, reached_it, _ = world.step(policy.act(observation[None], np.ones(1, bool))[0])
            if reached_it:
                reached += 1
                break
    return reached / count


class RandomPolicy:
    """What can be reached without having learned anything."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def reset(self, observations, goals) -> None:
        pass

    def act(self, observations, active):
        return self.rng.uniform(-1, 1, (len(observations), 2))
