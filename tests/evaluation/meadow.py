"""A world of a few lines, without MuJoCo: an agent walks as its actions say and takes along a ball that is near."""

from __future__ import annotations

import numpy as np

from compdiffuser.domains import Domain, Group, Space, Stepped
from compdiffuser.domains.mazes import Maze
from compdiffuser.presets import EvaluationConfig, Preset

FENCE = Maze.drawn("fence", ["#######", "#.....#", "#.....#", "#.....#", "#######"], unit=1.0, origin=(0.0, 0.0))


class Meadow:
    """Observations are x and y of the agent and of the ball; the goal is the ball's."""

    def reset(self, task, seed):
        noise = np.random.default_rng(seed).uniform(-0.1, 0.1, 4)
        return self.place(np.array([1, 1, 2, 1]) + noise, np.array([0, 0, 5, float(task)]), seed)

    def place(self, start, goal, seed):
        self.state, self.goal = np.resize(start, 4).astype(float), np.resize(goal, 4).astype(float)
        return self.state.copy(), self.goal.copy()

    def step(self, action):
        if not np.isfinite(action).all():
            return Stepped(self.state.copy(), False, unstable=True)
        move = np.clip(action, -0.2, 0.2)
        near = np.linalg.norm(self.state[:2] - self.state[2:]) < 0.3
        self.state += np.concatenate([move, near * move])
        return Stepped(self.state.copy(), bool(np.linalg.norm(self.state[2:] - self.goal[2:]) < 0.2))

    def close(self):
        self.state = None


KNOWN = (Group("agent", (0, 1)), Group("ball", (2, 3)))
MEADOW = Domain(
    "meadow", Meadow, space=Space.of((0, 1, 2, 3), KNOWN), maze=FENCE, tasks=3, position_dims=KNOWN
)  # fmt: skip
BALL = Preset("meadow-v0", MEADOW, evaluation=EvaluationConfig(step_limit=200, episodes=1))
WALK = BALL.planning((0, 1))
"""Only the agent is planned: a placement puts the ball where the agent is."""


class Herder:
    """A policy: to the ball, then with it to its goal."""

    def reset(self, observations, goals):
        self.goals = goals

    def act(self, observations, active):
        agent, ball, target = observations[:, :2], observations[:, 2:], self.goals[:, 2:]
        far = np.linalg.norm(agent - ball, axis=1, keepdims=True) >= 0.3
        return np.where(far, ball - agent, target - ball)
