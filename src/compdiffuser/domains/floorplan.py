"""Maps of polygons: a rectangle to move in, and obstacles of any shape in it, such as shelves and thin walls.

A `FloorPlan` is asked what a `Maze` is asked. Whether something touches an obstacle is computed exactly, between states
too. For what needs cells, such as the page, it also has a grid in which every cell that an obstacle touches is a wall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from compdiffuser.checks import brief, is_finite
from compdiffuser.domains.mazes import Maze
from compdiffuser.types import Array, UserError

MOST_CORNERS, MOST_CELLS = 10_000, 250_000
PROBES = 5
"""Points along each side of a cell that are looked at."""
ROWS = 2_000
"""Points, or segments, that are looked at together."""


@dataclass(frozen=True, eq=False)
class FloorPlan(Maze):
    """Obstacles in a rectangle; everything outside the rectangle counts as one."""

    bounds: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0)
    """Left, right, bottom and top, in metres."""
    obstacles: tuple[Array, ...] = ()
    """Polygons [n, 2], corner after corner."""
    room: float = 0.0
    """Metres that an agent needs between its centre and an obstacle."""

    is_grid: ClassVar[bool] = False

    @classmethod
    def of(
        cls,
        name: str,
        bounds: Sequence[float],
        obstacles: Sequence[Any],
        room: float = 0.0,
        cell: float | None = None,
    ) -> FloorPlan:
        """A map from its polygons; `cell` is the side of its grid's cells, else a fiftieth of the shorter side.

        Raises UserError for bounds in the wrong order and for polygons that cannot be.
        """
        if len(bounds) != 4 or not all(map(is_finite, bounds)) or bounds[0] >= bounds[1] or bounds[2] >= bounds[3]:
            raise UserError(f"bounds are left < right and bottom < top, finite, not {brief(list(bounds))}")
        left, right, bottom, top = (float(each) for each in bounds)
        polygons = tuple(_polygon(corners, number) for number, corners in enumerate(obstacles))
        if sum(map(len, polygons)) > MOST_CORNERS:
            raise UserError(f"a map has at most {MOST_CORNERS} corners, not {sum(map(len, polygons))}")
        if not is_finite(room) or room < 0:
            raise UserError(f"the room of an agent is 0 or more metres, not {brief(room)}")
        unit = min(right - left, top - bottom) / 50 if cell is None else cell
        if not is_finite(unit) or unit <= 0 or (right - left) * (top - bottom) / unit**2 > MOST_CELLS:
            raise UserError(f"cells of {brief(unit)} m do not make a grid of at most {MOST_CELLS} cells")
        shape = max(round((top - bottom) / unit), 1), max(round((right - left) / unit), 1)
        origin = (left + unit / 2, bottom + unit / 2)
        given = (float(unit), origin, 1, (left, right, bottom, top), polygons, float(room))
        walls = cls(name, np.zeros(shape, bool), *given)._touched()
        walls.flags.writeable = False
        return cls(name, walls, *given)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "bounds": list(self.bounds), "obstacles": [each.tolist() for each in self.obstacles],
            "room": self.room, "cell": self.unit,
        }  # fmt: skip

    @property
    def extent(self) -> tuple[float, float, float, float]:
        return self.bounds

    @property
    def clearance(self) -> float:
        return self.room

    @property
    def longest_step(self) -> float | None:
        """None: a polygon does not say how fast anything moves in it."""
        return None

    @cached_property
    def _sides(self) -> tuple[Array, Array, Array]:
        """Where all sides begin and end, [m, 2] each, and the number of each obstacle's first side."""
        if not self.obstacles:
            return np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, int)
        ends = np.cumsum([len(polygon) for polygon in self.obstacles])
        after = [np.roll(polygon, -1, axis=0) for polygon in self.obstacles]
        return np.concatenate(self.obstacles), np.concatenate(after), np.append(0, ends[:-1])

    def in_wall(self, xy: Array, margin: float = 0.0) -> Array:
        """[...] bool: whether the points xy [..., 2] lie in an obstacle grown by `margin`, or outside the rectangle."""
        points = np.asarray(xy, float)
        flat = points.reshape(-1, points.shape[-1])
        left, right, bottom, top = self.bounds
        inside = (flat > (left + margin, bottom + margin)) & (flat < (right - margin, top - margin))
        hit: Array = np.asarray(~inside.all(axis=1))
        for first in range(0, len(flat) if self.obstacles else 0, ROWS):
            part = flat[first : first + ROWS]
            within = _within(part, *self._sides)
            near = _distance(part, *self._sides[:2]) < abs(margin) if margin else np.zeros(len(part), bool)
            hit[first : first + ROWS] |= (within | near) if margin >= 0 else (within & ~near)
        return hit.reshape(points.shape[:-1])

    def walled(self, path: Array, parts: int = 1) -> Array:
        """Which steps of a path [n, 2] touch an obstacle, [n − 1] bool: exactly, however thin it is."""
        path = np.asarray(path, float)
        ends = self.in_wall(path)
        hit: Array = np.asarray(ends[:-1] | ends[1:])
        a, b, _ = self._sides
        for first in range(0, len(path) - 1, ROWS):
            here = path[first : min(first + ROWS, len(path) - 1), None]
            there = path[first + 1 : first + 1 + len(here), None]
            hit[first : first + len(here)] |= _meet(here, there, a, b).any(axis=1)
        return hit

    def _touched(self) -> Array:
        """[rows, cols] bool: cells that an obstacle touches."""
        rows, cols = self.walls.shape
        steps = (np.arange(PROBES) + 0.5) / PROBES
        x = self.bounds[0] + (np.arange(cols)[:, None] + steps).reshape(-1) * self.unit
        y = self.bounds[2] + (np.arange(rows)[:, None] + steps).reshape(-1) * self.unit
        points = np.stack(np.meshgrid(x, y), axis=-1)
        hit: Array = np.asarray(self.in_wall(points))
        for polygon in self.obstacles:  # thinner than the probes are apart
            for a, b in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
                along = np.linspace(a, b, 2 + int(np.linalg.norm(b - a) / (self.unit / PROBES)))
                j = np.clip(((along[:, 0] - self.bounds[0]) / self.unit * PROBES).astype(int), 0, len(x) - 1)
                i = np.clip(((along[:, 1] - self.bounds[2]) / self.unit * PROBES).astype(int), 0, len(y) - 1)
                hit[i, j] = True
        return np.asarray(hit.reshape(rows, PROBES, cols, PROBES).any(axis=(1, 3)))


def rectangle(left: float, bottom: float, right: float, top: float) -> list[tuple[float, float]]:
    """The corners of a rectangle, as an obstacle."""
    return [(left, bottom), (right, bottom), (right, top), (left, top)]


def _polygon(corners: Any, number: int) -> Array:
    """Corners [n, 2] as given. Raises UserError for fewer than three, for no numbers, and for sides that cross."""
    try:
        polygon = np.array(corners, float)
    except (TypeError, ValueError):
        raise UserError(f"obstacle {number} is a list of corners (x, y), not {brief(corners)}") from None
    if polygon.ndim != 2 or polygon.shape[1] != 2 or len(polygon) < 3 or not np.isfinite(polygon).all():
        raise UserError(f"obstacle {number} has three or more corners (x, y), finite, not {brief(corners)}")
    if len(polygon) > 3 and (polygon[0] == polygon[-1]).all():  # a ring that is closed once more
        polygon = polygon[:-1].copy()
    after = np.roll(polygon, -1, axis=0)
    for side in range(len(polygon) - 2):
        others = np.arange(side + 2, len(polygon) - (side == 0))
        if _meet(polygon[side], after[side], polygon[others], after[others]).any():
            raise UserError(f"obstacle {number} crosses itself at its side from {polygon[side].tolist()}")
    polygon.flags.writeable = False
    return polygon


def _within(points: Array, a: Array, b: Array, first: Array) -> Array:
    """[n] bool: points [n, 2] inside a polygon, by how often a ray to the right leaves each of them."""
    x, y = points[:, :1], points[:, 1:]
    between = (a[:, 1] > y) != (b[:, 1] > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = x < (b[:, 0] - a[:, 0]) * (y - a[:, 1]) / (b[:, 1] - a[:, 1]) + a[:, 0]
    return np.asarray(np.logical_xor.reduceat(between & left, first, axis=1).any(axis=1))


def _distance(points: Array, a: Array, b: Array) -> Array:
    """[n] metres from points [n, 2] to the nearest side."""
    away, side = points[:, None] - a, b - a
    along = np.clip((away * side).sum(axis=-1) / np.maximum((side * side).sum(axis=-1), 1e-12), 0, 1)
    return np.asarray(np.linalg.norm(away - along[..., None] * side, axis=-1).min(axis=1))


def _meet(a: Array, b: Array, c: Array, d: Array) -> Array:
    """[n] bool: segments from a to b and from c to d have a point in common; sides that only touch do too."""

    def side(p: Array, q: Array, r: Array) -> Array:
        u, v = q - p, r - p
        return np.sign(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])

    return np.asarray((side(a, b, c) * side(a, b, d) <= 0) & (side(c, d, a) * side(c, d, b) <= 0) & _boxes(a, b, c, d))


def _boxes(a: Array, b: Array, c: Array, d: Array) -> Array:
    """[n] bool: the rectangles around two segments overlap, so that lines that only point at each other do not meet."""
    low, high = np.maximum(np.minimum(a, b), np.minimum(c, d)), np.minimum(np.maximum(a, b), np.maximum(c, d))
    return np.asarray((low <= high).all(axis=-1))
