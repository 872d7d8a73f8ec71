"""Where along its plan an agent is, and which planned state it should head for next.

E plans of different lengths lie side by side in one padded array, so that a step of all episodes is a few array
operations. Followed by progress, a plan is first rid of its loops: chunks that were given more states than the way
needs hover or travel back and forth, and an agent gains nothing from repeating that. Where an agent and a ball move,
metres along a plan are those of whichever moves further.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from compdiffuser.types import Array

Length = Callable[[Array], Array]
"""From differences between places [..., P] to metres [...]: of all positions together, or of the furthest group."""

NEAR = 0.3
"""Metres off its place that count as much as a posture that is off by what is usual in a plan."""


def receding_chunks(n_chunks: int, executed: int, planned: int, delta: int) -> int:
    """K for a new plan: ceil((1 − max(h_exe − δ, 0) / h_comp) · K), at least 1 (the paper's appendix on replanning).

    `executed` of the `planned` states of a plan with `n_chunks` chunks are behind the agent.
    """
    share = 1 - max(executed - delta, 0) / planned
    # Rounding keeps 0.1 · 10 at 1 chunk, not at the 2 that the last bit of a float would make of it.
    return max(1, math.ceil(round(share * n_chunks, 9)))


def euclidean(differences: Array) -> Array:
    """Lengths [...] of differences [..., P]."""
    return np.asarray(np.linalg.norm(differences, axis=-1))


def without_loops(path: Array, radius: float, length: Length = euclidean) -> Array:
    """Indexes of the states that remain of a path [T, P] when every return to within `radius` of a state is cut out.

    The path is of all positions: who goes back for a ball has not been there before, since the ball has moved.
    """
    kept, here = [0], 0
    while here < len(path) - 1:
        near = np.flatnonzero(length(path[here + 1 :] - path[here]) <= radius)
        here = here + 1 + (int(near[-1]) if len(near) else 0)
        kept.append(here)
    return np.array(kept)


def without_loops_between(path: Array, stops: Sequence[int], radius: float, length: Length = euclidean) -> Array:
    """As `without_loops`, leg by leg: who goes into a dead end for a waypoint comes back the same way."""
    legs = [
        begin + without_loops(path[begin : end + 1], radius, length)
        for begin, end in pairwise([0, *stops, len(path) - 1])
    ]
    return np.concatenate([legs[0], *(leg[1:] for leg in legs[1:])])


def pad_paths(paths: list[Array]) -> Array:
    """Paths [T_e, D] of different lengths as one array [E, T, D]; each goes on with its last state."""
    longest = max(len(path) for path in paths)
    return np.stack([np.concatenate([path, np.repeat(path[-1:], longest - len(path), axis=0)]) for path in paths])


def _ahead(index: Array, last: Array, window: int) -> Array:
    """Indexes [E, window] of the states that follow `index` [E], not past `last` [E]."""
    return np.minimum(index[:, None] + np.arange(window), last[:, None])


def nearest_ahead(paths: Array, index: Array, last: Array, place: Array, window: int) -> Array:
    """The index [E] of the state of paths [E, T, P] nearest to `place` [E, P] among `window` states from `index` on."""
    ahead = _ahead(index, last, window)
    states = np.take_along_axis(paths, ahead[:, :, None], axis=1)
    best = np.linalg.norm(states - place[:, None], axis=2).argmin(axis=1)
    return np.take_along_axis(ahead, best[:, None], axis=1)[:, 0]


def look_ahead(
    paths: Array, index: Array, last: Array, distance: float | Array, window: int, length: Length = euclidean
) -> Array:
    """The index [E] of the first state at least `distance` (one for all, or [E]) along paths [E, T, P] from `index`."""
    ahead = _ahead(index, last, window)
    states = np.take_along_axis(paths, ahead[:, :, None], axis=1)
    along = length(np.diff(states, axis=1)).cumsum(axis=1)
    far = along >= np.broadcast_to(distance, len(paths))[:, None]
    step = np.where(far.any(axis=1), far.argmax(axis=1) + 1, window - 1)
    return np.take_along_axis(ahead, step[:, None], axis=1)[:, 0]


def scale_of(states: Array, places: Sequence[int]) -> Array:
    """What each number [D] of states [T, D] is divided by where `places` and all other columns are compared at once."""
    others = max(states.shape[1] - len(places), 1)
    scale = np.maximum(states.std(axis=0), 1e-3) * np.sqrt(others)
    scale[list(places)] = NEAR
    return np.asarray(scale)
