"""Perfect plans, followed: points by their own controllers, an ant by the shipped expert."""

import numpy as np
from oracle import OraclePlanner

from compdiffuser.domains import Controller
from compdiffuser.experts.policy import load_expert
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.settings import Following


class SteeredAnt(Controller):
    """The shipped expert, told the direction of the target."""

    look_ahead, spacing, stall, patience = 1.2, 0.3, 25, 100

    def __init__(self):
        self.expert, _ = load_expert("ant")

    def __call__(self, observations, targets):
        away = targets[:, :2] - observations[:, :2]
        directions = away / np.linalg.norm(away, axis=1, keepdims=True)
        return self.expert.act(observations, directions)


def oracle_follower(task) -> PlanFollower:
    controller = SteeredAnt() if task.domain.body.has_legs else None
    return PlanFollower(OraclePlanner(task.maze.name, spacing=0.02), task, Following(), controller)
