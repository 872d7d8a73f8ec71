"""How an ant gets off its back: it rocks, until it rolls over onto its feet.

On its back an ant's feet point upwards and reach no ground, but its swinging legs move the torso. Each motor follows a
wave; all have one period, near that in which the torso rocks by itself. `benchmarks/rising.py` searches for such waves
in the simulator: they are not learned from recorded data.
"""

from __future__ import annotations

import numpy as np

from compdiffuser.types import Array

PERIOD = 7.448
"""Steps of a wave."""
PHASES = (3.256, 5.588, 0.226, 6.044, 3.101, 6.058, 6.280, 0.081)
"""Radians, of the hip and the ankle of each leg, as the simulator orders its motors."""
OFFSETS = (-0.763, -0.601, 0.912, 0.327, -0.639, 0.239, 0.137, 0.968)
AMPLITUDE = 2.5
"""Beyond 1, motors give their most for much of the wave."""
OUTWARD = np.array([1, 1, 1, 1, 1, -1, 1, -1])
"""The sense in which each joint moves, as seen from its leg."""
ATTEMPT = 100
"""Steps after which the next leg takes the part of the one before: a wall may be on one side."""


def rocking(steps: Array) -> Array:
    """Actions [n, 8] of ants that have rocked for so many steps [n]."""
    legs = waves(steps % ATTEMPT, PERIOD, np.array(PHASES), np.array(OFFSETS)).reshape(-1, 4, 2)
    first = (np.arange(4) - (steps // ATTEMPT)[:, None]) % 4
    return np.asarray(np.take_along_axis(legs, first[:, :, None], axis=1).reshape(-1, 8) * OUTWARD)


def waves(steps: Array, period: float, phases: Array, offsets: Array) -> Array:
    """How far each joint is driven outward [n, 8], from −1 to 1, in steps [n] of waves with phases and offsets [8]."""
    angle = 2 * np.pi * steps[:, None] / period + phases
    return np.asarray(np.clip(AMPLITUDE * np.sin(angle) + offsets, -1, 1))
