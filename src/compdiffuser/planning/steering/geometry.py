"""Plane geometry that regions are made of: distances from boxes, and sides of polygons that meet."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.types import Array


def like(numbers: tuple[Any, ...], places: Tensor) -> Tensor:
    """Numbers as a tensor of the same kind as `places`; copied to a device once, as a GPU is waited for to do so."""
    return _copied(numbers, places.dtype, places.device)


@lru_cache(maxsize=1024)
def _copied(numbers: tuple[Any, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device)


def to_boxes(places: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Signed distances of places [..., n] from boxes [b, n]: [..., b]."""
    beyond = (places[..., None, : low.shape[1]] - (low + high) / 2).abs() - (high - low) / 2
    return beyond.clamp(min=0).norm(dim=-1) + beyond.amax(dim=-1).clamp(max=0)


def crossing(corners: Array) -> tuple[int, int] | None:
    """Two sides that meet where they should not; sides are numbered by the corners at which they begin."""
    count = len(corners)
    begin, end = corners, np.roll(corners, -1, axis=0)
    if (begin == end).all(axis=1).any():
        side = int((begin == end).all(axis=1).argmax())
        return side, (side + 1) % count

    def turn(a: Array, b: Array, c: Array) -> Array:
        return np.sign(_cross(b - a, c - a))

    for side in range(count - 1):
        others = np.arange(side + 1, count)
        a, b, c, d = begin[side], end[side], begin[others], end[others]
        meets = (turn(a, b, c) * turn(a, b, d) <= 0) & (turn(c, d, a) * turn(c, d, b) <= 0)
        # On one line, only sides whose ranges overlap meet.
        apart = (np.maximum(c, d) < np.minimum(a, b)) | (np.minimum(c, d) > np.maximum(a, b))
        meets &= ~apart.any(axis=1)
        beside = (others == side + 1) | ((side == 0) & (others == count - 1))
        # Neighbours share a corner; they only meet elsewhere where one folds back onto the other.
        shared = np.where((others == side + 1)[:, None], end[side], begin[side])
        mine = np.where((others == side + 1)[:, None], a, b) - shared
        theirs = np.where((others == side + 1)[:, None], d, c) - shared
        folds = (_cross(mine, theirs) == 0) & ((mine * theirs).sum(axis=1) > 0)
        meets = np.where(beside, folds, meets)
        if meets.any():
            return side, int(others[meets.argmax()])
    return None


def _cross(a: Array, b: Array) -> Array:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
