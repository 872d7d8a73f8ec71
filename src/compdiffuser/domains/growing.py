"""Worlds of any size, known by their names alone: a point in a maze that is drawn from a seed.

`pointmaze-NxM-seed-S` is OGBench's point in the maze of N rows and M columns that `domains.generated` draws from seed
S: its simulator, its noise on starts and goals, its test of success, and five tasks of our own.
"""

from __future__ import annotations

import re
from functools import cache, partial
from typing import Any

import numpy as np

from compdiffuser.domains.domain import Domain
from compdiffuser.domains.generated import TASKS, drawn_maze, far_apart, longest_way
from compdiffuser.domains.mazes import Cell, Maze
from compdiffuser.domains.ogbench import OgbenchWorld, PointController
from compdiffuser.domains.simulators import open_simulator, tidied
from compdiffuser.types import Array

GROWN = re.compile(r"pointmaze-(\d+x\d+-seed-\d+)")
"""Names of these worlds."""
REPLACED = "ogbench.locomaze:pointmaze-medium-v0"
"""The environment whose walls and tasks are replaced."""


class GrownWorld(OgbenchWorld):
    """A point in the maze of a name such as `24x32-seed-0`."""

    def _opened(self, environment: str) -> Any:
        maze = drawn_maze(environment)
        tasks = far_apart(maze)
        usual = open_simulator(REPLACED)
        usual.close()

        # OGBench makes its class inside a function.
        class Grown(type(usual)):  # type: ignore[misc]
            def update_tree(self, tree: Any) -> None:
                self.maze_map = maze.walls.astype(int)
                super().update_tree(tree)
                in_few_blocks(tree, maze)

            def set_tasks(self) -> None:
                self.task_infos = [
                    {"task_name": f"task{number}", "init_ij": start, "goal_ij": goal}
                    for number, (start, goal) in enumerate(tasks, 1)
                ]

        return tidied(Grown(maze_type="medium", terminate_at_goal=False))


def in_few_blocks(tree: Any, maze: Maze) -> None:
    """Walls as rows of cells in place of single ones: a step takes as long as there are blocks, used or not."""
    world = tree.find(".//worldbody")
    single = {block.get("name"): block for block in world.findall("geom[@material='wall']")}
    for block in single.values():
        world.remove(block)
    for cells in rows_of_walls(maze.walls):
        block = single["block_{}_{}".format(*cells[0])]
        x, y = maze.center(np.array(cells)).mean(axis=0)
        height, width = (np.ptp(cells, axis=0) + 1) * maze.unit / 2
        _, _, z = block.get("pos").split()
        block.set("pos", f"{x} {y} {z}")
        block.set("size", f"{width} {height} {z}")
        world.append(block)


def rows_of_walls(walls: Array) -> list[list[Cell]]:
    """The wall cells [rows, cols] as rows or columns of neighbours, each cell in the longer of its two."""
    across, down = _lengths(walls), _lengths(walls.T).T
    found = _rows(walls & (across >= down))
    return found + [[(i, j) for j, i in cells] for cells in _rows((walls & (across < down)).T)]


def _rows(walls: Array) -> list[list[Cell]]:
    """Neighbouring wall cells of each row."""
    found: list[list[Cell]] = []
    for i, j in np.argwhere(walls).tolist():
        if found and found[-1][-1] == (i, j - 1):
            found[-1].append((i, j))
        else:
            found.append([(i, j)])
    return found


def _lengths(walls: Array) -> Array:
    """How many neighbouring wall cells of its row each wall cell is one of."""
    lengths = np.zeros(walls.shape, int)
    for cells in _rows(walls):
        lengths[tuple(np.array(cells).T)] = len(cells)
    return lengths


@cache
def grown(name: str) -> Domain:
    """The world of a name `pointmaze-NxM-seed-S`. Raises UserError where there is no such maze."""
    drawn = name.partition("-")[2]
    return Domain(
        name=name,
        make=partial(GrownWorld, drawn),
        maze=drawn_maze(drawn),
        tasks=TASKS,
        long_horizon=True,
        controller=PointController(),
        environment=name,
        title=f"Point, maze {drawn.replace('-', ' ')}",
    )


def extent_of(world: Domain) -> tuple[int, int]:
    """Free cells of a world with a maze, and steps between those that are furthest apart."""
    assert world.maze is not None
    return len(world.maze.free_cells), longest_way(world.maze)
