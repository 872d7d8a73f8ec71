"""Draws a maze: walls as quiet grey squares, everything else left to what is drawn on it."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from compdiffuser.domains.mazes import Maze

WALL = "#c9ccd1"
EDGE = "#b4b8be"


def draw_maze(ax: Axes, maze: Maze) -> None:
    """The walls of a maze on an axes without ticks or frame, in metres, with equal aspect."""
    corners = [maze.center((i, j)) - maze.unit / 2 for i, j in zip(*maze.walls.nonzero(), strict=True)]
    squares = [Rectangle((float(x), float(y)), maze.unit, maze.unit) for x, y in corners]
    ax.add_collection(PatchCollection(squares, facecolor=WALL, edgecolor=EDGE, linewidth=0.4, zorder=0))
    left, right, bottom, top = maze.extent
    ax.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[])
    ax.set_aspect("equal")
    for spine in ax.spines.values():
        spine.set_visible(False)
