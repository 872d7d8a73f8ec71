"""How an agent that makes no progress gets free: it steps to one side, to the other, and back the way it came.

A corner holds an agent that pushes straight against it, and a leg behind the corner holds it also where it pushes past.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compdiffuser.following.tracking import Length, euclidean
from compdiffuser.types import Array

SIDES = np.array([1, -1, 0, -1, 1, 0])
"""Of turns 1, 2, …: 1 leads to the left, −1 to the right, and 0 back; who comes back tries the other side first."""
RETREAT = 0.75
"""Metres that an agent goes back at most, in those off its plan that make it lost."""


def freed(targets: Array, here: Array, turns: Array, step: float, behind: Callable[[int], Array]) -> Array:
    """Where agents `here` [E, 2] head for instead of their targets [E, 2], by their turns [E]; none in turn 0.

    A step to a side is of so many metres; `behind` gives the place [2] that an agent goes back to.
    """
    sides = np.where(turns > 0, SIDES[(turns - 1) % len(SIDES)], 0)
    ahead = targets - here
    ahead = ahead / np.maximum(np.linalg.norm(ahead, axis=1, keepdims=True), 1e-9)
    moved = targets + step * sides[:, None] * np.stack([-ahead[:, 1], ahead[:, 0]], axis=1)
    for e in np.flatnonzero((turns > 0) & (sides == 0)).tolist():
        moved[e] = behind(e)
    return np.asarray(moved)


def look_back(path: Array, index: int, distance: float, length: Length = euclidean) -> int:
    """The index of the last state of a path [T, P] at least `distance` along it before that of `index`, or 0."""
    along = length(np.diff(path[: index + 1], axis=0))[::-1].cumsum()
    return max(0, int(index - 1 - np.searchsorted(along, distance)))
