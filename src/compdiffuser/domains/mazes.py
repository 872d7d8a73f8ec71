"""The mazes: which cells are walls, where a cell lies in metres, and how many steps apart two cells are.

OGBench puts the centre of cell (i, j) at x = 4j − 4, y = 4i − 4. Gymnasium-robotics centres its maze on the origin with
cells of one metre and row 0 at the top. The layouts are kept here so that drawing and checking need no simulator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from compdiffuser.checks import brief, finite, is_finite
from compdiffuser.types import Array, UserError

Cell = tuple[int, int]

NEIGHBOURS: tuple[Cell, ...] = ((-1, 0), (0, -1), (1, 0), (0, 1))
"""Steps to the neighbouring cells, in the order in which OGBench's oracle prefers them when distances are equal."""


CLEARANCE, LONGEST_STEP = 0.15, 0.25
"""Shares of a cell: the room that an agent needs, and the longest step it can make."""


@dataclass(frozen=True, eq=False)
class Maze:
    """A grid of square cells, each free or a wall; everything outside the grid counts as wall."""

    name: str
    walls: Array
    """[rows, cols] bool."""
    unit: float
    """Side of a cell in metres."""
    origin: tuple[float, float]
    """x and y of the centre of cell (0, 0)."""
    row_sign: int = 1
    """+1 where y grows with the row, −1 where row 0 is at the top."""

    is_grid: ClassVar[bool] = True
    """Whether its cells are all there is; a map of polygons has cells for some uses alone."""

    def __post_init__(self) -> None:
        finite(self, "unit")
        if not (self.unit > 0 and self.row_sign in (-1, 1) and all(map(is_finite, self.origin))):
            given = f"{self.unit}, {self.origin} and {self.row_sign}"
            raise UserError(f"a maze has a unit above 0, a finite origin and a row sign of 1 or -1, not {brief(given)}")

    @classmethod
    def drawn(cls, name: str, rows: Sequence[str], unit: float, origin: tuple[float, float], row_sign: int = 1) -> Maze:
        """A maze from its picture, row by row: `#` is a wall, `.` or a space is free.

        Raises UserError where rows are not equally long, or hold other marks.
        """
        pictured = not isinstance(rows, str) and all(isinstance(row, str) for row in rows)
        if not pictured or not rows or len({len(row) for row in rows}) > 1 or not rows[0]:
            raise UserError(f"the rows of maze '{brief(name)}' are one or more and equally long, not {brief(rows)}")
        if others := sorted(set("".join(rows)) - set("#. ")):
            raise UserError(f"a maze is drawn with '#' for walls and '.' for free cells, and not with '{others[0]}'")
        walls = np.array([[mark == "#" for mark in row] for row in rows])
        walls.flags.writeable = False
        return cls(name, walls, float(unit), (float(origin[0]), float(origin[1])), row_sign)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"name": self.name, **self.grid()}

    def grid(self) -> dict[str, Any]:
        """Its cells, ready for JSON."""
        rows = ["".join("#" if wall else "." for wall in row) for row in self.walls]
        return {"rows": rows, "unit": self.unit, "origin": list(self.origin), "row_sign": self.row_sign}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Maze:
        """The maze, or the map of polygons, that `to_dict` described."""
        if "obstacles" in values:
            from compdiffuser.domains.floorplan import FloorPlan

            return FloorPlan.of(**values)
        return Maze.drawn(**values)

    @property
    def clearance(self) -> float:
        """Metres that an agent needs between its centre and a wall."""
        return CLEARANCE * self.unit

    @property
    def longest_step(self) -> float | None:
        """Metres; an environment step that is longer is a jump that no agent can follow."""
        return LONGEST_STEP * self.unit

    def walled(self, path: Array, parts: int = 1) -> Array:
        """Which steps of a path [n, 2] pass through a wall, [n − 1] bool; looked at in as many `parts` each."""
        path = np.asarray(path)
        shares = np.linspace(0, 1, parts, endpoint=False)[:, None]
        passed = path[:-1, None] + shares * np.diff(path, axis=0)[:, None]  # [n − 1, parts, 2]
        hit: Array = np.asarray(self.in_wall(passed).any(axis=1))
        hit[-1:] |= self.in_wall(path[-1])
        return hit

    @property
    def free_cells(self) -> list[Cell]:
        """The cells that are not walls, row by row."""
        return [(int(i), int(j)) for i, j in np.argwhere(~self.walls)]

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the grid, outer walls included."""
        rows, cols = self.walls.shape
        (x0, y0), (x1, y1) = self.center((0, 0)), self.center((rows - 1, cols - 1))
        half = self.unit / 2
        return float(x0 - half), float(x1 + half), float(min(y0, y1) - half), float(max(y0, y1) + half)

    def center(self, cell: Cell | Array) -> Array:
        """Centres [..., 2] (x, y) of cells [..., 2] (row, column)."""
        ij = np.asarray(cell, dtype=np.float64)
        x = self.origin[0] + ij[..., 1] * self.unit
        y = self.origin[1] + ij[..., 0] * self.unit * self.row_sign
        return np.stack([x, y], axis=-1)

    def cells(self, xy: Array) -> Array:
        """Rows and columns [..., 2] of the cells in which the points xy [..., 2] lie; may be outside the grid."""
        xy = np.asarray(xy, dtype=np.float64)
        j = (xy[..., 0] - self.origin[0]) / self.unit
        i = (xy[..., 1] - self.origin[1]) / self.unit * self.row_sign
        return np.floor(np.stack([i, j], axis=-1) + 0.5).astype(np.int64)

    def cell(self, xy: Any) -> Cell:
        """Row and column of the cell in which one point (x, y) lies."""
        i, j = self.cells(np.asarray(xy))
        return int(i), int(j)

    def in_wall(self, xy: Array, margin: float = 0.0) -> Array:
        """[...] bool: whether the points xy [..., 2] lie in a wall grown by `margin` on every side.

        A negative margin shrinks the walls. The margin is at most half a cell, so that four probes around a point
        see every wall that is near.
        """
        if abs(margin) > self.unit / 2:
            raise UserError(f"a wall margin is at most half a cell ({self.unit / 2} m), not {margin} m")
        xy = np.asarray(xy, dtype=np.float64)
        probes = [(margin * sx, margin * sy) for sx in (-1, 1) for sy in (-1, 1)] if margin else [(0.0, 0.0)]
        hits = np.stack([self._wall_at(xy + np.array(probe)) for probe in probes])
        return np.asarray(hits.any(axis=0) if margin >= 0 else hits.all(axis=0))

    def check_room(self, places: Mapping[str, Sequence[float] | Array], margin: float = 0.0) -> None:
        """Raise UserError for a place in a wall, or closer to one than `margin`; outside the grid all pass."""
        left, right, bottom, top = self.extent
        for what, place in places.items():
            xy = np.asarray(place)
            if left <= xy[0] <= right and bottom <= xy[1] <= top and self.in_wall(xy, margin):
                fault = "lies in a wall" if self.in_wall(xy) else "is too close to a wall"
                room = f"; an agent needs {margin:g} m of room" if margin else ""
                raise UserError(f"the {what} {[round(float(x), 4) for x in xy]} {fault}{room}")

    def _wall_at(self, xy: Array) -> Array:
        padded = np.pad(self.walls, 1, constant_values=True)
        ij = np.clip(self.cells(xy) + 1, 0, np.array(padded.shape) - 1)
        return padded[ij[..., 0], ij[..., 1]]

    def distances(self, goal: Cell, within: frozenset[Cell] | None = None) -> Array:
        """[rows, cols] steps through free cells to the goal cell, −1 where it cannot be reached.

        `within` restricts the paths to a set of cells.
        """
        if self.walls[goal]:
            raise UserError(f"cell {goal} of maze '{self.name}' is a wall, so nothing can reach it")
        rows, cols = self.walls.shape
        steps = np.full((rows, cols), -1)
        steps[goal] = 0
        queue = deque([goal])
        while queue:
            i, j = queue.popleft()
            for di, dj in NEIGHBOURS:
                near = (i + di, j + dj)
                inside = 0 <= near[0] < rows and 0 <= near[1] < cols
                if inside and not self.walls[near] and steps[near] < 0 and (within is None or near in within):
                    steps[near] = steps[i, j] + 1
                    queue.append(near)
        return steps


_ROWS = {
    "arena": """
        ########
        #......#
        #......#
        #......#
        #......#
        #......#
        #......#
        ########""",
    "umaze": """
        #####
        #...#
        ###.#
        #...#
        #####""",
    "medium": """
        ########
        #..##..#
        #..#...#
        ##...###
        #..#...#
        #.#..#.#
        #...#..#
        ########""",
    "large": """
        ############
        #....#.....#
        #.##.#.#.#.#
        #......#...#
        #.####.###.#
        #..#.#.....#
        ##.#.#.#.###
        #..#...#...#
        ############""",
    "giant": """
        ################
        #.#......##....#
        #.#.##.#.#..##.#
        #...#..#...#...#
        #.###.######.#.#
        #...#...#....#.#
        ###.#.#..#.#.###
        #...#..#...#...#
        #.#.#.######.#.#
        #.###...#...##.#
        #.....#...#....#
        ################""",
}

MAZES: tuple[str, ...] = ("medium", "large", "giant", "arena", "robotics-umaze", "robotics-medium", "robotics-large")


@cache
def maze(name: str) -> Maze:
    """The maze of that name: OGBench's by size, gymnasium-robotics' with the prefix `robotics-`."""
    if name not in MAZES:
        raise UserError(f"unknown maze '{name}'; known mazes: {', '.join(MAZES)}")
    rows = _ROWS[name.removeprefix("robotics-")].split()
    if not name.startswith("robotics-"):
        return Maze.drawn(name, rows, unit=4.0, origin=(-4.0, -4.0))
    height, width = len(rows), len(rows[0])
    return Maze.drawn(name, rows, unit=1.0, origin=(0.5 - width / 2, height / 2 - 0.5), row_sign=-1)
