"""An ant and a ball in toy form: observations, plans to a ball and along with it, and the controller that they need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from compdiffuser.domains import BODIES, domain
from compdiffuser.following.inverse_dynamics import InverseController
from compdiffuser.following.network import InverseDynamics, InverseDynamicsConfig
from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.plan import Plan
from compdiffuser.presets import ExecutionConfig, Preset

ARENA = domain("antsoccer-arena")
SOCCER = Preset(
    "antsoccer-toy", replace(ARENA, maze=None), execution=ExecutionConfig(replan_distance=2.0, max_replans=3)
)
SMALL = InverseDynamicsConfig(42, 8, "ant-ball", ARENA.space, horizons=(8, 120), hidden=(32,), frame="heading")


def seen(places) -> np.ndarray:
    """Observations [E, 42] of ants on their feet, ants and balls at places [E, 4]."""
    observations = np.zeros((len(places), BODIES["ant-ball"].width))
    observations[:, [0, 1, 15, 16]] = places
    observations[:, 2:4] = (0.5, 1.0)
    observations[:, 18] = 1.0
    return observations


def controller(**changes) -> InverseController:
    torch.manual_seed(0)
    return InverseController(InverseDynamics(replace(SMALL, **changes)).eval(), (0.1, 0.2))


def walk_then_dribble(start, goal, spacing: float = 0.1, behind: float = 0.5) -> np.ndarray:
    """States [T, 4]: straight to the ball, then with it along the x axis, the ant `behind` metres behind it."""
    ant, ball = np.array(start[:2], float), np.array(start[2:], float)
    reached = ball - [behind, 0.0]
    walk = np.linspace(ant, reached, 1 + round(np.linalg.norm(reached - ant) / spacing))
    roll = np.linspace(ball, goal[2:], 1 + round(np.linalg.norm(goal[2:] - ball) / spacing))
    return np.concatenate(
        [np.concatenate([walk, np.tile(ball, (len(walk), 1))], 1), np.concatenate([roll - [behind, 0.0], roll], 1)[1:]]
    )


class StraightPlanner:
    """Walks and dribbles straight, and remembers from where it was asked to plan."""

    def __init__(self, dims: tuple[int, ...] = ARENA.space.dims) -> None:
        self.space, self.starts = ARENA.planning(dims).space, []

    def plan_batch(self, starts, goals, n_chunks="auto", *, seed=0) -> list[Plan]:
        self.starts += [start.copy() for start in starts]
        return [self._plan(start, goal) for start, goal in zip(starts, goals, strict=True)]

    def _plan(self, start, goal) -> Plan:
        path = walk_then_dribble(self.space.places(start), self.space.places(goal))
        states = np.tile(start, (len(path), 1))
        states[:, self.space.columns] = path
        return Plan(states, states[None], start, goal, overlap=0, verdict=Verdict({"steps": 0.5}), space=self.space)
