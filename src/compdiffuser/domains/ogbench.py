"""OGBench's mazes: a point, an ant or a humanoid that walks, and an ant that takes a ball along."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from compdiffuser.domains.body import BODIES
from compdiffuser.domains.controller import Controller
from compdiffuser.domains.domain import Domain, Stepped
from compdiffuser.domains.mazes import Cell, maze
from compdiffuser.domains.simulators import BlewUp, MujocoWorld, open_simulator
from compdiffuser.domains.space import AGENT, PLANE, Group, Space
from compdiffuser.types import Array, UserError

TASKS = 5
"""Tasks that every maze with a stitch dataset numbers from 1."""


class OgbenchWorld(MujocoWorld):
    """A maze with the benchmark's own tasks and success test."""

    def __init__(self, environment: str) -> None:
        self.env = self._opened(environment)
        # The maze's own step adds nothing but a test for success, a tenth of the time of recording.
        walled = next(kind for kind in type(self.env).__mro__ if kind.__name__ == "MazeEnv")
        self._body: Any = super(walled, self.env)

    def _opened(self, environment: str) -> Any:
        return open_simulator(f"ogbench.locomaze:{environment}", terminate_at_goal=False)

    def reset(self, task: int, seed: int) -> tuple[Array, Array]:
        return self._reset(seed, {"task_id": task})

    def between(self, start: Cell, goal: Cell, seed: int) -> tuple[Array, Array]:
        """Observation and goal of an episode from one cell to another, with the benchmark's noise on both."""
        return self._reset(seed, {"task_info": {"init_ij": start, "goal_ij": goal}})

    def place(self, start: Array, goal: Array, seed: int) -> tuple[Array, Array]:
        _, observed = self.reset(1, seed)
        self.env.set_goal(goal_xy=goal)
        self.env.set_xy(start)
        return self.env.get_ob(), np.concatenate([goal, observed[2:]])

    def step(self, action: Array) -> Stepped:
        observation, _, _, _, info = self.env.step(action)
        return Stepped(observation, bool(info["success"]), self.blew_up(observation))

    def advance(self, action: Array) -> Array:
        """A step that asks for nothing but the observation. Raises BlewUp."""
        observation: Array = self._body.step(action)[0]
        if self.blew_up(observation):
            raise BlewUp
        return observation

    @property
    def goal(self) -> Array:
        """x and y of the goal."""
        return self.env.cur_goal_xy

    def _reset(self, seed: int, options: dict[str, Any]) -> tuple[Array, Array]:
        # Start and goal noise come from np.random, the settling steps from the action space.
        np.random.seed(seed)  # noqa: NPY002
        self.env.action_space.seed(seed)
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info["goal"]


class SoccerWorld(OgbenchWorld):
    """An ant and a ball; the goal is the ball's."""

    def between(self, start: Cell, goal: Cell, seed: int, ball: Cell | None = None) -> tuple[Array, Array]:
        """As for an ant alone, from its cell; the ball starts in a cell of its own, or in the ant's."""
        cells = {"agent_init_ij": start, "ball_init_ij": start if ball is None else ball, "goal_ij": goal}
        return self._reset(seed, {"task_info": cells})

    def place(self, start: Array, goal: Array, seed: int) -> tuple[Array, Array]:
        """Positions are the ant's and the ball's; of the goal, the ball's is asked for. Raises UserError for others."""
        if len(start) != 4 or len(goal) != 4:
            raise UserError(
                f"a place here is x and y of the ant and of the ball, not {len(start)} and {len(goal)} numbers"
            )
        _, observed = self.reset(1, seed)
        ant, ball = start[:2], start[2:]
        target = goal[2:]
        self.env.set_goal(goal_xy=target)
        self.env.set_agent_ball_xy(ant, ball)
        goal_observation = observed.copy()
        goal_observation[:2] = goal[:2]
        goal_observation[15:17] = target
        return self.env.get_ob(), goal_observation


@dataclass(frozen=True)
class PointController(Controller):
    """The point's actions displace it, by up to `reach` metres along each axis."""

    reach: float = 0.2
    look_ahead: float = 0.5
    space = PLANE

    def __call__(self, observations: Array, targets: Array) -> Array:
        return np.clip((targets[:, :2] - observations[:, :2]) / self.reach, -1.0, 1.0)


def _walking(body: str, size: str) -> Domain:
    environment = f"{body}maze-{size}-v0"
    return Domain(
        name=f"{body}maze-{size}",
        make=partial(OgbenchWorld, environment),
        body=BODIES[body],
        maze=maze(size),
        tasks=TASKS,
        family=body,
        long_horizon=size == "giant" or body == "humanoid",
        controller=PointController() if body == "point" else None,
        environment=environment,
        official=True,
        title=f"{body.capitalize()}, {size} maze",
    )


def _soccer(size: str) -> Domain:
    environment = f"antsoccer-{size}-v0"
    known = (AGENT, Group("ball", (15, 16)))
    return Domain(
        name=f"antsoccer-{size}",
        make=partial(SoccerWorld, environment),
        body=BODIES["ant-ball"],
        space=Space.of((0, 1, 15, 16), known),
        maze=maze(size),
        tasks=TASKS,
        family="soccer",
        environment=environment,
        official=True,
        position_dims=known,
        goal_groups=("ball",),
        goal_radius=0.5,
        title=f"Ant and ball, {size}" + ("" if size == "arena" else " maze"),
    )


OGBENCH: tuple[Domain, ...] = (
    *(_walking(body, size) for body in ("point", "ant", "humanoid") for size in ("medium", "large", "giant")),
    *(_soccer(size) for size in ("arena", "medium")),
)
