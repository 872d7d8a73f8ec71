"""Mazes of any size, drawn from a seed, that are built as OGBench's are: narrow ways with loops and dead ends.

Ways grow like the branches of a tree, each free cell beside exactly one other. Some dead ends are then joined to a way
that is far off on foot, which makes loops, and other dead ends are filled in; what was filled in may be grown into
again. Of the free cells of OGBench's giant and large maze 7% and 7% are dead ends and 12% and 15% junctions, with 3.5
and 6.5 loops for every hundred; `character` counts them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import cache

import numpy as np

from compdiffuser.domains.mazes import NEIGHBOURS, Cell, Maze
from compdiffuser.types import Array, UserError

LEAST_SIDE, MOST_CELLS, MOST_SEED = 8, 16_384, 2**31 - 1
"""Rows and columns of the smallest maze, border included; cells of the largest, which takes seconds to draw."""
ROUNDS = 8  # of growing, joining and filling in
WANDER = 0.05  # probability that a branch grows from an older cell
STRAIGHT = 0.4  # probability that a way goes straight on where it can
DEAD_ENDS, LOOPS = 0.07, 0.05  # shares of the free cells
DETOUR = 12  # cells that the way round a new loop is longer than, where it is made
TASKS, FAR = 5, 0.8  # tasks, and the share of the longest way from its start that a goal lies off
NAMED = re.compile(r"(\d{1,9})x(\d{1,9})-seed-(\d{1,19})")


@cache
def drawn_maze(name: str) -> Maze:
    """The maze of a name `NxM-seed-S`: N rows and M columns of cells, border included, drawn from seed S.

    Raises UserError where there is no such maze: too small, too large, or a name of another form.
    """
    found = NAMED.fullmatch(name)
    if found is None:
        raise UserError(f"a drawn maze is named NxM-seed-S, such as 24x32-seed-0, not '{name}'")
    rows, cols, seed = map(int, found.groups())
    if min(rows, cols) < LEAST_SIDE:
        raise UserError(f"a maze has at least {LEAST_SIDE}x{LEAST_SIDE} cells, border included, not {rows}x{cols}")
    if rows * cols > MOST_CELLS:
        raise UserError(f"a maze has at most {MOST_CELLS:,} cells, not {rows}x{cols}, which are {rows * cols:,}")
    if seed > MOST_SEED or name != f"{rows}x{cols}-seed-{seed}":
        raise UserError(f"the seed of a maze is a whole number from 0 to {MOST_SEED}, written plainly, not '{name}'")
    rng = np.random.default_rng([rows, cols, seed])
    free = Drawing(rows, cols).made(rng)
    walls = ~np.array(free).reshape(rows, cols)
    walls.flags.writeable = False
    return Maze(name, walls, 4.0, (-4.0, -4.0))


class Drawing:
    """The free cells of a maze while it is made; cells are numbered row by row."""

    def __init__(self, rows: int, cols: int) -> None:
        self.cols = cols
        self.free = [False] * (rows * cols)
        self.count = 0
        inside = np.zeros((rows, cols), bool)
        inside[1:-1, 1:-1] = True
        self.inside: list[bool] = inside.ravel().tolist()
        self.steps = tuple(di * cols + dj for di, dj in NEIGHBOURS)

    def made(self, rng: np.random.Generator) -> list[bool]:
        """Make a maze; which cells are free."""
        self._put(self.cols + 1, True)
        for _ in range(ROUNDS):
            self._grow(rng)
            self._join(rng)
            self._fill(rng)
        return self.free

    def _put(self, cell: int, free: bool) -> None:
        self.count += free - self.free[cell]
        self.free[cell] = free

    def _beside(self, cell: int) -> Iterator[int]:
        """Free cells beside one."""
        return (cell + step for step in self.steps if self.free[cell + step])

    def _degree(self, cell: int) -> int:
        return sum(1 for _ in self._beside(cell))

    def _ends(self, rng: np.random.Generator) -> list[int]:
        """The dead ends, in random order."""
        found = [cell for cell in range(len(self.free)) if self.free[cell] and self._degree(cell) == 1]
        return [found[place] for place in rng.permutation(len(found))]

    def _loops(self) -> int:
        links = sum(self._degree(cell) for cell in range(len(self.free)) if self.free[cell]) // 2
        return links - self.count + 1

    def _grow(self, rng: np.random.Generator) -> None:
        """Branches from every free cell, until no wall is beside exactly one free cell."""
        growing = [cell for cell in range(len(self.free)) if self.free[cell]]
        growing = [growing[place] for place in rng.permutation(len(growing))]
        came: dict[int, int] = {}
        while growing:
            place = int(rng.integers(len(growing))) if rng.random() < WANDER else len(growing) - 1
            here = growing[place]
            open_to = [cell for step in self.steps if self._can_grow(cell := here + step)]
            if not open_to:
                growing.pop(place)
                continue
            ahead = here + came.get(here, 0)
            straight = ahead in open_to and rng.random() < STRAIGHT
            cell = ahead if straight else open_to[int(rng.integers(len(open_to)))]
            self._put(cell, True)
            came[cell] = cell - here
            growing.append(cell)

    def _can_grow(self, cell: int) -> bool:
        return self.inside[cell] and not self.free[cell] and self._degree(cell) == 1

    def _join(self, rng: np.random.Generator) -> None:
        """Join dead ends to ways beyond one wall, until there are enough loops."""
        missing = round(LOOPS * self.count) - self._loops()
        for end in self._ends(rng):
            if missing <= 0:
                return
            doors = [cell for step in self.steps if self._is_door(cell := end + step, end)]
            if doors and self._degree(end) == 1:
                self._put(doors[int(rng.integers(len(doors)))], True)
                missing -= 1

    def _is_door(self, cell: int, end: int) -> bool:
        """Whether to open a wall joins a dead end to one cell that is far off, and leaves no open square."""
        if not self.inside[cell] or self.free[cell] or self._degree(cell) != 2:
            return False
        (other,) = (beside for beside in self._beside(cell) if beside != end)
        # Around a corner, the cell between both would make a square of four.
        corner = end + other - cell
        return not (corner != cell and self.free[corner]) and not self._near(end, other)

    def _near(self, here: int, there: int) -> bool:
        """Whether a way of at most `DETOUR` steps leads from one cell to another."""
        steps, queue = {here: 0}, deque([here])
        while queue:
            cell = queue.popleft()
            if cell == there:
                return True
            for beside in self._beside(cell) if steps[cell] < DETOUR else ():
                if beside not in steps:
                    steps[beside] = steps[cell] + 1
                    queue.append(beside)
        return False

    def _fill(self, rng: np.random.Generator) -> None:
        """Fill in dead ends, cell by cell, until few are left."""
        while len(ends := self._ends(rng)) > DEAD_ENDS * self.count:
            for end in ends[: max(1, int(len(ends) - DEAD_ENDS * self.count))]:
                self._put(end, False)


def far_apart(maze: Maze) -> list[tuple[Cell, Cell]]:
    """Start and goal cells of the tasks of a drawn maze: each goal nearly as far from its start as any cell is."""
    shape = maze.walls.shape
    rng = np.random.default_rng([*shape, sum(map(ord, maze.name)), int(maze.walls.sum())])
    cells = maze.free_cells
    found = []
    for number in rng.choice(len(cells), TASKS, replace=len(cells) < TASKS):
        steps = maze.distances(cells[number])
        far = [cell for cell in cells if steps[cell] >= FAR * steps.max()]
        found.append((cells[number], far[int(rng.integers(len(far)))]))
    return found


def longest_way(maze: Maze) -> int:
    """Steps between two cells that are about as far apart as any: the furthest from the furthest from anywhere."""
    place = maze.free_cells[0]
    for _ in range(3):
        steps = maze.distances(place)
        place = divmod(int(steps.argmax()), steps.shape[1])
    return int(steps.max())


def character(walls: Array) -> dict[str, float]:
    """What a maze [rows, cols] is like: the share of its inner cells that are free and, of these, the shares of dead
    ends, of junctions and of cells that go straight on; and loops for every free cell."""
    free = np.pad(~walls, 1)
    shifted = [np.roll(free, step, (0, 1)) for step in NEIGHBOURS]
    degree = np.sum(shifted, axis=0)[free]
    straight = ((shifted[0] & shifted[2]) | (shifted[1] & shifted[3]))[free] & (degree == 2)
    count, inner = len(degree), (walls.shape[0] - 2) * (walls.shape[1] - 2)
    return {
        "free": count / inner,
        "dead_ends": float((degree == 1).mean()),
        "junctions": float((degree > 2).mean()),
        "straight": float(straight.mean()),
        "loops": (int(degree.sum()) // 2 - count + 1) / count,
    }
