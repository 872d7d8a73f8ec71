"""What of a planned state is drawn: x and y of each position group, the agent's first.

Of places in space, and of joints, it is a projection.

The agent is drawn with full lines and filled marks, everything else that moves with dashed lines and hollow marks.
"""

from __future__ import annotations

import numpy as np

from compdiffuser.domains import Group, Space
from compdiffuser.types import Array, UserError

DASHES = (0, (2.0, 1.4))
"""Line style of everything but the agent."""


def planes(space: Space, states: Array) -> list[Array]:
    """x and y [..., 2] of each position group of planned states [..., D]."""
    return [_plane(group, np.asarray(states, float)[..., list(group.columns)]) for group in space.positions]


def track_planes(space: Space, places: Array) -> list[Array]:
    """The same of positions [n, P] that stand group after group; the agent's alone will do. Raises UserError."""
    ends = np.cumsum([len(group.columns) for group in space.positions])
    places = np.asarray(places, float)
    if places.ndim != 2 or places.shape[1] not in ends:
        known = " or ".join(f"[n, {count}]" for count in ends)
        raise UserError(f"a path that was taken holds positions {known}, not an array of shape {list(places.shape)}")
    tracks = np.split(places, ends[:-1], axis=-1)
    return [_plane(group, track) for group, track in zip(space.positions, tracks, strict=True) if track.shape[-1]]


def points(space: Space, *states: Array | None) -> Array:
    """[n, 2], all positions in planned states [..., D], so that a picture has room for them."""
    given = [each for each in states if each is not None]
    return np.concatenate([plane.reshape(-1, 2) for each in given for plane in planes(space, each)])


def check_plane(space: Space) -> None:
    """Raises UserError where a position cannot be drawn."""
    for group in space.positions:
        _check(group)


def _check(group: Group) -> None:
    if len(group.columns) < 2:
        raise UserError(f"a picture needs x and y; the {group.name}'s position has {len(group.columns)} dimension")


def _plane(group: Group, positions: Array) -> Array:
    """[..., 2]: x and y from above; in three dimensions as seen from a corner above, in more by star coordinates."""
    _check(group)
    count = len(group.columns)
    return positions if count == 2 else positions @ projection(count)


def projection(count: int) -> Array:
    """[count, 2], from positions of three or more numbers to a picture.

    Three are x, y and z, seen from a corner above: x leads right and down, y right and up, z straight up. More than
    three, such as the joints of an arm, each have a direction of their own on half a circle (star coordinates).
    """
    if count == 3:
        cosine, sine = np.cos(np.pi / 6), np.sin(np.pi / 6)
        return np.array([[cosine, -sine], [cosine, sine], [0.0, 1.0]])
    angles = np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
