"""One adapter per family of environments: make it, reset it to a numbered task, step it.

Adapters hide what differs (how a task is chosen, how observations are packed, what has to be seeded) behind flat
observations, goals in the same space, and a success flag. They live in worker processes.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any, Protocol

import numpy as np

from compdiffuser.data.recording import blew_up, open_simulator
from compdiffuser.presets import Preset
from compdiffuser.types import Array

Cells = tuple[tuple[int, int], tuple[int, int]]

ROBOTICS_TASKS: dict[str, tuple[Cells, ...]] = {
    "PointMaze_UMaze-v3": (((3, 1), (1, 1)), ((1, 1), (3, 1))),
    "PointMaze_Medium-v3": (
        ((6, 6), (6, 3)),
        ((6, 6), (6, 1)),
        ((6, 5), (6, 3)),
        ((6, 5), (6, 1)),
        ((1, 1), (6, 5)),
        ((1, 6), (6, 6)),
    ),
    "PointMaze_Large-v3": (
        ((7, 1), (7, 4)),
        ((7, 1), (7, 10)),
        ((7, 1), (1, 10)),
        ((7, 4), (7, 1)),
        ((7, 4), (7, 10)),
        ((7, 4), (1, 1)),
        ((7, 10), (7, 1)),
    ),
}
"""Start and goal cells of the point's test tasks in Ghugare et al.'s code (their ant has others)."""

OGBENCH_TASKS = 5
"""Tasks that every OGBench maze with a stitch dataset numbers from 1."""


class Environment(Protocol):
    def reset(self, task: int, seed: int) -> tuple[Array, Array]:
        """Observation [obs] and goal [obs] of a task, numbered from 1."""

    def step(self, action: Array) -> tuple[Array, bool, bool]:
        """Observation [obs], whether the goal is reached, whether the simulation became unstable."""


def task_count(preset: Preset) -> int:
    """How many numbered tasks a preset's environment has."""
    return len(ROBOTICS_TASKS.get(preset.environment, ())) or OGBENCH_TASKS


def make_environment(preset: Preset) -> Environment:
    """The adapter for a preset's environment."""
    import mujoco

    # Warnings are read from their counters; MuJoCo would also write them to a file in the user's folder.
    mujoco.set_mju_user_warning(lambda message: None)
    return RoboticsMaze(preset.environment) if preset.environment in ROBOTICS_TASKS else OgbenchMaze(preset.environment)


class OgbenchMaze:
    """OGBench's mazes, with their own tasks and success test."""

    def __init__(self, environment: str) -> None:
        self.env: Any = open_simulator(environment)

    def reset(self, task: int, seed: int) -> tuple[Array, Array]:
        # Start and goal noise come from np.random, the settling steps from the action space.
        np.random.seed(seed)  # noqa: NPY002
        self.env.action_space.seed(seed)
        observation, info = self.env.reset(seed=seed, options={"task_id": task})
        return observation, info["goal"]

    def step(self, action: Array) -> tuple[Array, bool, bool]:
        observation, _, _, _, info = self.env.step(action)
        return observation, bool(info["success"]), blew_up(self.env.data, observation)


class RoboticsMaze:
    """Gymnasium-robotics' PointMaze-v3; tasks are pairs of cells, goals get velocity 0."""

    def __init__(self, environment: str) -> None:
        self.tasks = ROBOTICS_TASKS[environment]
        # Importing gymnasium-robotics prints a notice about environments that are not used here.
        with contextlib.redirect_stderr(io.StringIO()):
            self.env: Any = open_simulator(environment, continuing_task=False)

    def reset(self, task: int, seed: int) -> tuple[Array, Array]:
        start, goal = self.tasks[task - 1]
        cells = {"reset_cell": np.array(start), "goal_cell": np.array(goal)}
        packed, _ = self.env.reset(seed=seed, options=cells)
        observation = packed["observation"]
        return observation, np.concatenate([packed["desired_goal"], np.zeros(len(observation) - 2)])

    def step(self, action: Array) -> tuple[Array, bool, bool]:
        packed, _, _, _, info = self.env.step(action)
        return packed["observation"], bool(info["success"]), blew_up(self.env.data, packed["observation"])
