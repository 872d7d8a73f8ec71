"""Draws a maze: walls as quiet grey squares, or obstacles as polygons, everything else left to what is drawn on it."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Polygon, Rectangle

from compdiffuser.domains.floorplan import FloorPlan
from compdiffuser.domains.mazes import Maze

WALL = "#c9ccd1"
EDGE = "#b4b8be"


def draw_maze(ax: Axes, maze: Maze) -> None:
    """The walls of a maze on an axes without ticks or frame, in metres, with equal aspect."""
    if isinstance(maze, FloorPlan):
        left, right, bottom, top = maze.extent
        patches: list[Patch] = [Polygon(corners, closed=True) for corners in maze.obstacles]
        ax.add_patch(Rectangle((left, bottom), right - left, top - bottom, fill=False, edgecolor=EDGE, linewidth=1.2))
    else:
        patches = _squares(maze)
    ax.add_collection(PatchCollection(patches, facecolor=WALL, edgecolor=EDGE, linewidth=0.4, zorder=0))
    left, right, bottom, top = maze.extent
    ax.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[])
    ax.set_aspect("equal")
    for spine in ax.spines.values():
        spine.set_visible(False)


def _squares(maze: Maze) -> list[Patch]:
    """The walls of a grid."""
    corners = [maze.center((i, j)) - maze.unit / 2 for i, j in zip(*maze.walls.nonzero(), strict=True)]
    return [Rectangle((float(x), float(y)), maze.unit, maze.unit) for x, y in corners]
