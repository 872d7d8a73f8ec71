"""OGBench's mazes with doors that close: every free cell has a block of wall that can be made solid for an episode."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from compdiffuser.domains import Domain
from compdiffuser.domains.mazes import Cell, Maze
from compdiffuser.domains.ogbench import OgbenchWorld
from compdiffuser.types import Array


class WalledWorld(OgbenchWorld):
    """A maze in which cells can be closed by real walls."""

    def __init__(self, environment: str) -> None:
        super().__init__(environment)
        plain = self.env
        walled = type("Walled", (type(plain),), {"update_tree": _with_blocks})
        options = {"maze_type": plain._maze_type, "maze_unit": plain._maze_unit, "terminate_at_goal": False}
        self.env = walled(**options)
        plain.close()
        self._body = super(next(kind for kind in walled.__mro__ if kind.__name__ == "MazeEnv"), self.env)

    def close_cells(self, cells: tuple[Cell, ...]) -> None:
        """Make the blocks of these cells solid, and no others."""
        model = self.env.model
        for geom in range(model.ngeom):
            name = model.geom(geom).name
            if name.startswith("door_"):
                solid = tuple(int(part) for part in name.split("_")[1:]) in cells
                model.geom_contype[geom] = model.geom_conaffinity[geom] = int(solid)


class Walled(NamedTuple):
    """A problem of `compdiffuser.evaluation.problems` with cells that are closed."""

    start: Array
    goal: Array
    seed: int
    closed: tuple[Cell, ...] = ()

    def check(self, domain: Domain) -> None:
        """All that is drawn here is possible."""

    def begin(self, world: Any) -> tuple[Array, Array]:
        world.close_cells(self.closed)
        return world.place(np.asarray(self.start, float), np.asarray(self.goal, float), self.seed)


def walled(domain: Domain) -> Domain:
    """The same world with doors."""
    return replace(domain, make=partial(WalledWorld, domain.environment))


def with_walls(maze: Maze, cells: tuple[Cell, ...]) -> Maze:
    """The maze with these cells closed."""
    walls = maze.walls.copy()
    for cell in cells:
        walls[cell] = True
    return replace(maze, walls=walls)


def _with_blocks(self: Any, tree: Any) -> None:
    # Solid at first: what touches nothing when the model is compiled is never looked at again.
    super(type(self), self).update_tree(tree)
    body = tree.find(".//worldbody")
    unit, half = self._maze_unit, self._maze_unit / 2
    height = self._maze_height / 2 * unit
    for i, j in np.argwhere(self.maze_map == 0):
        ET.SubElement(
            body, "geom", name=f"door_{i}_{j}", type="box", contype="1", conaffinity="1", material="wall",
            pos=f"{j * unit - self._offset_x} {i * unit - self._offset_y} {height}",
            size=f"{half} {half} {height}", rgba="0 0 0 0",
        )  # fmt: skip
