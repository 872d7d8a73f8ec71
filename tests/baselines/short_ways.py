"""Problems in the medium maze whose start and goal lie a given number of cells apart, driven in the real simulator."""

from __future__ import annotations

from functools import cache

import numpy as np

from compdiffuser.data.mazes import maze
from compdiffuser.data.recording import open_simulator

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
def simulator():
    return open_simulator("pointmaze-medium-v0")


def success(policy, cells_apart: int = 2, count: int = 20, limit: int = 300) -> float:
    """Share of the goals that a policy reaches within `limit` steps; a cell is about 20 steps wide."""
    env, reached = simulator(), 0
    for number, (start, goal) in enumerate(pairs(cells_apart, count)):
        np.random.seed(number)  # noqa: NPY002
        env.action_space.seed(number)
        options = {"task_info": {"init_ij": start, "goal_ij": goal}}
        observation, info = env.reset(seed=number, options=options)
        policy.reset(observation[None], info["goal"][None])
        for _ in range(limit):
            observation, _, _, _, told = env.step(policy.act(observation[None], np.ones(1, bool))[0])
            if told["success"]:
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
