"""A map of cells as a region: its walls, and everything outside of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from compdiffuser.domains.mazes import Maze
from compdiffuser.planning.steering.geometry import to_boxes
from compdiffuser.planning.steering.regions import Box, Region
from compdiffuser.types import Array, UserError


@dataclass(frozen=True)
class Walls(Region):
    """The walls of a map of cells, and everything outside of the map."""

    kind: ClassVar[str] = "walls"
    maze: Maze
    of: str | None = None

    @classmethod
    def occupied(cls, cells: Array, unit: float, origin: tuple[float, float], row_sign: int = 1) -> Walls:
        """An occupancy grid [rows, cols]: true where a cell is taken; `origin` is the centre of cell (0, 0)."""
        taken = np.asarray(cells)
        if taken.ndim != 2 or taken.dtype != bool or not taken.size:
            raise UserError(f"an occupancy map is [rows, cols] of bool, not {taken.dtype} of {list(taken.shape)}")
        return cls(Maze("map", taken, float(unit), (float(origin[0]), float(origin[1])), row_sign))

    def distance(self, places: Tensor) -> Tensor:
        left, right, bottom, top = self.maze.extent
        around = Box((left, bottom), (right, top)).distance(places)
        walls, free = _bounds(self, places.dtype, places.device)
        far = places.new_full(places.shape[:-1], torch.inf)
        # One of the two is 0: to walls from where it is free, to free cells from inside a wall.
        to_wall = torch.minimum(_nearest(places, walls, far), (-around).clamp(min=0))
        return to_wall - _nearest(places, free, far)

    def numbers(self) -> list[float]:
        return []

    def __str__(self) -> str:
        return f"the walls of '{self.maze.name}'" + (f"@{self.of}" if self.of else "")

    @cached_property
    def _boxes(self) -> tuple[Array, Array]:
        """Walls and free cells as few boxes [n, 2, 2]: runs of a row, joined with equal ones of the next."""
        return _joined(self.maze, self.maze.walls), _joined(self.maze, ~self.maze.walls)


@lru_cache(maxsize=64)
def _bounds(walls: Walls, dtype: torch.dtype, device: torch.device) -> list[Tensor]:
    """Low and high corners [2, b, 2] of its walls and of its free cells, copied to a device once."""
    return [torch.tensor(boxes.swapaxes(0, 1), dtype=dtype, device=device) for boxes in walls._boxes]


def _nearest(places: Tensor, bounds: Tensor, otherwise: Tensor) -> Tensor:
    """Distance of places [..., n] from the nearest of some boxes [2, b, 2], 0 inside one: [...]."""
    low, high = bounds
    if not len(low):
        return otherwise
    return to_boxes(places, low, high).clamp(min=0).amin(dim=-1)


def _joined(layout: Maze, cells: Array) -> Array:
    open_runs: dict[tuple[int, int], int] = {}
    boxes: list[tuple[int, int, int, int]] = []
    for row in range(len(cells) + 1):
        line = cells[row] if row < len(cells) else np.zeros(cells.shape[1], bool)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]])))
        runs = {(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)}
        boxes += [(first, row - 1, *run) for run, first in open_runs.items() if run not in runs]
        open_runs = {run: open_runs.get(run, row) for run in runs}
    half = layout.unit / 2
    ends = [(layout.center((top, left)), layout.center((bottom, right))) for top, bottom, left, right in boxes]
    return np.array([[np.minimum(a, b) - half, np.maximum(a, b) + half] for a, b in ends]).reshape(-1, 2, 2)
