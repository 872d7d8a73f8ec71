"""Controllers: from where E agents are and where their plans want them next, to actions.

Each is a callable `(observations [E, obs], targets [E, D]) -> actions [E, act]` that also says how far ahead along a
plan its target should lie: close enough not to cut corners, far enough to keep moving. Bodies have a controller that
is learned, see `planning.inverse_control`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from compdiffuser.planning.inverse_control import controller_of
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError


class Controller(Protocol):
    """Four further members are used where a controller has them:

    `spacing`, metres between the states that are kept of a plan (half of `look_ahead`); `stall`, steps without
    progress after which the agent is helped past a corner (8), and `patience`, after which it counts as stuck (50);
    `fallen(observations [E, obs])`, which agents [E] can do nothing because they lie on their backs (none).
    """

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


CONTROLLERS: dict[str, Callable[[Preset], Controller]] = {
    "point": lambda preset: PointController(),
    "point-velocity": lambda preset: PointVelocityController(),
    "inverse-dynamics": controller_of,
}


def controller_for(preset: Preset) -> Controller:
    """The controller a preset names; a learned one is loaded."""
    if preset.controller not in CONTROLLERS:
        raise UserError(f"unknown controller '{preset.controller}'; known: {', '.join(CONTROLLERS)}")
    return CONTROLLERS[preset.controller](preset)
