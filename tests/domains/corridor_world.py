"""A world of one's own, as an example: a point in an L-shaped corridor, recorded, planned in, followed and served.

It needs no MuJoCo. A world is a class with `reset`, `place`, `step` and `close`, and a `Domain` that names it.
"""

import numpy as np

from compdiffuser.domains import Controller, Domain, Stepped
from compdiffuser.domains.mazes import Maze
from compdiffuser.presets import ChunkConfig, EvaluationConfig, Preset, RecordingConfig

MAZE = Maze.drawn("corridor", ["######", "#....#", "####.#", "####.#", "######"], unit=1.0, origin=(0.0, 0.0))
LENGTH, STRIDE = 5.0, 0.1  # of the corridor's middle line, and of the longest step along each axis; metres


def along(metres):
    """Points [..., 2] on the corridor's middle line, this far from its first cell."""
    return np.stack([np.minimum(1 + metres, 4), 1 + np.maximum(metres - 3, 0)], axis=-1)


class Corridor:
    """Observations are x and y; actions are steps along x and y. Task 1 leads to the far end, task 2 back."""

    def reset(self, task, seed):
        ends = along(np.array([0.0, LENGTH] if task == 1 else [LENGTH, 0.0]))
        start, goal = ends + np.random.default_rng(seed).uniform(-0.2, 0.2, (2, 2))
        return self.place(start, goal, seed)

    def place(self, start, goal, seed):
        self.at, self.goal = np.array(start, float), np.array(goal, float)
        return self.at.copy(), self.goal.copy()

    def step(self, action):
        moved = self.at + np.clip(action, -STRIDE, STRIDE)
        self.at = self.at if MAZE.in_wall(moved) else moved
        return Stepped(self.at.copy(), success=bool(np.linalg.norm(self.at - self.goal) < 0.3))

    def close(self):
        pass


class Steps(Controller):
    """Straight towards the planned state."""

    look_ahead = 0.3

    def __call__(self, observations, targets):
        return np.clip(targets - observations, -STRIDE, STRIDE)


def demonstrate(world, rng):
    """A short walk along the corridor, in either direction: the long ones are for the planner to find."""
    begin, end = rng.uniform(0, LENGTH, 2)
    path = along(np.linspace(begin, np.clip(end, begin - 2, begin + 2), 40)) + rng.normal(0, 0.01, (40, 2))
    return list(zip(path, np.diff(path, axis=0, append=path[-1:]), strict=True))


WORLD = Domain("corridor", Corridor, maze=MAZE, tasks=2, controller=Steps(), demonstrate=demonstrate)
RECORDING, CHUNKS = RecordingConfig("demonstrations", episodes=200, steps=40), ChunkConfig(horizon=24, overlap=8)
DATA = Preset("corridor-v0", WORLD, RECORDING, CHUNKS, evaluation=EvaluationConfig(step_limit=200, episodes=1))
