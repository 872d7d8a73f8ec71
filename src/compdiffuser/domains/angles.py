"""Angles that wrap: on a circle, 179° lies beside −179°, and what is planned has no seam.

A joint that turns without end is planned as two numbers, cos and sin of its angle. Recorded angles go onto their
circles before training, and planned states come back as angles afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compdiffuser.types import Array, Episodes, UserError


def on_circles(angles: Array) -> Array:
    """Of angles [..., n] in radians, cos of all and then sin of all, [..., 2n]."""
    angles = np.asarray(angles, float)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)


def angles_of(points: Array) -> Array:
    """The angles [..., n] of points on circles [..., 2n], or near them, in (−π, π]."""
    cosine, sine = np.split(np.asarray(points, float), 2, axis=-1)
    return np.arctan2(sine, cosine)


def between(here: Array, there: Array) -> Array:
    """How far to turn from angles [..., n] to others, the short way round, in [−π, π)."""
    return (np.asarray(there, float) - np.asarray(here, float) + np.pi) % (2 * np.pi) - np.pi


def episodes_on_circles(episodes: Episodes, dims: Sequence[int]) -> Episodes:
    """The same episodes with cos and sin of the angles `dims`, all others of an observation after them.

    Raises UserError for a dimension that is not there.
    """
    width = episodes.observations.shape[1]
    if wrong := [dim for dim in dims if not 0 <= dim < width]:
        raise UserError(f"observations have dimensions 0 to {width - 1}, there is no dimension {wrong[0]}")
    rest = [dim for dim in range(width) if dim not in set(dims)]
    circles = on_circles(episodes.observations[:, list(dims)])
    observations = np.concatenate([circles, episodes.observations[:, rest]], axis=1).astype(np.float32)
    named = [episodes.names[dim] for dim in (*dims, *rest)] if episodes.names else []
    names = [f"{part} {name}" for part in ("cos", "sin") for name in named[: len(dims)]] + named[len(dims) :]
    return replace(episodes, observations=observations, names=tuple(names))
