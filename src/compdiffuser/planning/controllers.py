"""Controllers: from where E agents are and where their plans want them next, to actions.

Each is a callable `(observations [E, obs], targets [E, D]) -> actions [E, act]` that also says how far ahead along a
plan its target should lie: close enough not to cut corners, far enough to keep moving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError


class Controller(Protocol):
    @property
    def look_ahead(self) -> float:
        """Metres between the agent's place on its plan and the target it is given."""

    def __call__(self, observations: Array, targets: Array) -> Array:
        """Actions [E, act] that take agents at `observations` [E, obs] towards `targets` [E, D]."""


@dataclass(frozen=True)
class PointController:
    """OGBench's point: an action displaces it, by up to `reach` metres along each axis."""

    reach: float = 0.2
    look_ahead: float = 0.5

    def __call__(self, observations: Array, targets: Array) -> Array:
        return np.clip((targets[:, :2] - observations[:, :2]) / self.reach, -1.0, 1.0)


@dataclass(frozen=True)
class PointVelocityController:
    """PointMaze-v3's ball: an action is a force; observations are x, y and their velocities.

    A proportional pull towards the target, and damping so that the ball does not overshoot into a wall.
    """

    stiffness: float = 10.0
    damping: float = 1.0
    look_ahead: float = 0.3

    def __call__(self, observations: Array, targets: Array) -> Array:
        pull = self.stiffness * (targets[:, :2] - observations[:, :2])
        return np.clip(pull - self.damping * observations[:, 2:4], -1.0, 1.0)


CONTROLLERS: dict[str, Callable[[], Controller]] = {
    "point": PointController,
    "point-velocity": PointVelocityController,
}


def controller_for(preset: Preset) -> Controller:
    """The controller a preset names."""
    if preset.controller not in CONTROLLERS:
        raise UserError(f"unknown controller '{preset.controller}'; known: {', '.join(CONTROLLERS)}")
    return CONTROLLERS[preset.controller]()
