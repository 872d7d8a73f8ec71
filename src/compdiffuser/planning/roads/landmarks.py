"""Landmarks: places spread evenly over recorded states, and what lies around them.

A few thousand are compared with everything, exactly. Where there are more, that would take minutes and gigabytes:
they are then chosen by a grid, and k-d trees find what is near.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.spatial import KDTree
from torch import Tensor

FEW = 2048  # landmarks that are compared with everything
BISECTIONS = 20  # by which the side of a grid is found
JOINS = 32  # of a landmark, at most: in many dimensions everything is beside everything
ELEMENTS = 2**20  # distances computed at a time, so that they stay in a cache
TOLL = 20.0  # how many times its length an edge costs where there is least data, at most


def spread(points: Tensor, count: int) -> tuple[Tensor, float]:
    """Up to `count` of the points [S, P], each the furthest from those before it; and how far others are from them."""
    if count > FEW:
        return thinned(points, count)
    chosen = [0]
    away = distances(points, points[:1])[:, 0]
    while len(chosen) < count:
        furthest = int(away.argmax())
        if away[furthest] <= 0:
            break
        chosen.append(furthest)
        away = torch.minimum(away, distances(points, points[furthest, None])[:, 0])
    return points[chosen], float(away.max())


def thinned(points: Tensor, count: int) -> tuple[Tensor, float]:
    """Up to `count` of the points [S, P], the first in each box of a grid; and how far others are from them."""
    array = points.numpy()
    widest = float(np.ptp(array, axis=0).max()) + 1e-6
    low, high = widest / len(array), 2 * widest
    kept = np.array([0])
    for _ in range(BISECTIONS):
        side = (low + high) / 2
        boxes = np.floor(array / side).astype(np.int64)
        boxes -= boxes.min(axis=0)
        # One number for each box: rows of numbers take ten times as long to sort.
        found = np.unique(np.ravel_multi_index(tuple(boxes.T), tuple(boxes.max(axis=0) + 1)), return_index=True)[1]
        if len(found) > count:
            low = side
        else:
            high, kept = side, found
    chosen = array[np.sort(kept)]
    return torch.from_numpy(chosen), float(KDTree(chosen).query(array)[0].max())


def neighbours(places: Tensor, radius: float) -> Tensor:
    """The pairs [2, E] of places [N, P] that lie within `radius` of each other, for each place the nearest `JOINS`."""
    count = min(JOINS, len(places))
    if len(places) > FEW:
        near, which = map(torch.from_numpy, KDTree(places.numpy()).query(places.numpy(), range(1, count + 1)))
    else:
        near, which = torch.cdist(places, places).topk(count, largest=False)
    place, rank = (near <= radius).nonzero().T
    return torch.stack([place, which[place, rank]])


def rarity(places: Tensor, states: Tensor, radius: float) -> Tensor:
    """What rarity of states [S, P] around places [N, P] costs: its square, from 1 where they are usual to `TOLL`."""
    if len(places) > FEW:
        counted = KDTree(states.numpy()).query_ball_point(places.numpy(), radius, return_length=True)
        crowd = torch.from_numpy(counted).float()
    else:
        parts = places.split(max(1, ELEMENTS // len(states)))
        crowd = torch.cat([distances(part, states).le(radius).sum(dim=1) for part in parts]).float()
    return (crowd.quantile(0.75) / crowd.clamp(min=1)).square().clamp(1, TOLL)


def nearest(points: Tensor, landmarks: Tensor) -> Tensor:
    """The number [S] of the landmark [N, P] nearest to each point [S, P]."""
    if len(landmarks) > FEW:
        return torch.from_numpy(KDTree(landmarks.numpy()).query(points.numpy())[1])
    return distances(points, landmarks).argmin(dim=1)


def distances(points: Tensor, others: Tensor) -> Tensor:
    """Distances of points [S, P] from others [N, P]: [S, N]. Several times faster than `norm`, with the same bits."""
    # Not by a matrix product, whose digits depend on the size of the batch.
    return torch.cdist(points, others, compute_mode="donot_use_mm_for_euclid_dist")
