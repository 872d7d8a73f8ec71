"""Gymnasium-robotics' PointMaze-v3, as Ghugare et al. set it up: a ball that is pushed, tasks between cells."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from functools import partial

import numpy as np

from compdiffuser.domains.controller import Controller
from compdiffuser.domains.domain import Domain, Stepped
from compdiffuser.domains.mazes import Cell, maze
from compdiffuser.domains.simulators import MujocoWorld, open_simulator
from compdiffuser.domains.space import PLANE
from compdiffuser.types import Array

TASKS: dict[str, tuple[tuple[Cell, Cell], ...]] = {
    "UMaze": (((3, 1), (1, 1)), ((1, 1), (3, 1))),
    "Medium": (
        ((6, 6), (6, 3)),
        ((6, 6), (6, 1)),
        ((6, 5), (6, 3)),
        ((6, 5), (6, 1)),
        ((1, 1), (6, 5)),
        ((1, 6), (6, 6)),
    ),
    "Large": (
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


class RoboticsWorld(MujocoWorld):
    """A maze whose tasks are pairs of cells; goals have velocity 0."""

    def __init__(self, size: str) -> None:
        self.tasks = TASKS[size]
        with contextlib.redirect_stderr(io.StringIO()):  # it greets with news about other environments
            self.env = open_simulator(f"gymnasium_robotics:PointMaze_{size}-v3", continuing_task=False)

    def reset(self, task: int, seed: int) -> tuple[Array, Array]:
        return self.between(*self.tasks[task - 1], seed)

    def between(self, start: Cell, goal: Cell, seed: int) -> tuple[Array, Array]:
        """Observation and goal of an episode from one cell to another."""
        cells = {"reset_cell": np.array(start), "goal_cell": np.array(goal)}
        packed, _ = self.env.reset(seed=seed, options=cells)
        observation = packed["observation"]
        return observation, np.concatenate([packed["desired_goal"], np.zeros(len(observation) - 2)])

    def place(self, start: Array, goal: Array, seed: int) -> tuple[Array, Array]:
        observation, observed = self.reset(1, seed)
        point = self.env.point_env
        self.env.goal = goal.copy()
        self.env.update_target_site_pos()
        point.set_state(start, np.zeros_like(point.data.qvel))
        still = np.zeros(len(observation) - 2)
        return np.concatenate([start, still]), np.concatenate([goal, observed[2:]])

    def step(self, action: Array) -> Stepped:
        packed, _, _, _, info = self.env.step(action)
        observation = packed["observation"]
        return Stepped(observation, bool(info["success"]), self.blew_up(observation))

    @property
    def goal(self) -> Array:
        """x and y of the goal."""
        return self.env.goal


@dataclass(frozen=True)
class PointVelocityController(Controller):
    """An action is a force; observations are x, y and their velocities.

    A proportional pull towards the target, and damping so that the ball does not overshoot into a wall.
    """

    stiffness: float = 10.0
    damping: float = 1.0
    look_ahead: float = 0.3
    space = PLANE

    def __call__(self, observations: Array, targets: Array) -> Array:
        pull = self.stiffness * (targets[:, :2] - observations[:, :2])
        return np.clip(pull - self.damping * observations[:, 2:4], -1.0, 1.0)


ROBOTICS: tuple[Domain, ...] = tuple(
    Domain(
        name=f"robotics-pointmaze-{size.lower()}",
        make=partial(RoboticsWorld, size),
        maze=maze(f"robotics-{size.lower()}"),
        tasks=len(tasks),
        controller=PointVelocityController(),
        environment=f"PointMaze_{size}-v3",
        title=f"Point with inertia, {'U' if size == 'UMaze' else size.lower()} maze",
    )
    for size, tasks in TASKS.items()
)
