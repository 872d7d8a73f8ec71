"""A picture of a dataset: every trajectory faintly, and on top what one recording can reach.

Where episodes are confined to regions, each region has a colour; elsewhere a few episodes stand out, from the dot where
they start to the ring where they end. What an agent moves, a ball say, is drawn dashed in its episode's colour.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from compdiffuser.domains import Space
from compdiffuser.domains.mazes import Maze
from compdiffuser.files import replacing
from compdiffuser.plotting.groups import DASHES, planes
from compdiffuser.plotting.mazes import draw_maze
from compdiffuser.types import Array, Episodes

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7b5fc4", "#b8860b")
FAINT = "#5b7fa6"
MOST_DRAWN = 800
"""Faint trajectories: more only darken the picture."""


def plot_dataset(
    episodes: Episodes,
    maze: Maze | None,
    space: Space,
    png: Path,
    regions: int = 1,
    title: str | None = None,
) -> None:
    """Write a picture of the positions in a dataset; with `regions` above 1, episode e has colour e modulo regions."""
    paths, *others = _paths(episodes, space)
    figure = Figure(figsize=_size(maze, lines=bool(title) + (regions > 1)), dpi=110, layout="constrained")
    ax = figure.add_subplot()
    if maze is None:
        ax.set_aspect("equal")
    else:
        draw_maze(ax, maze)
    if regions > 1:
        _draw_regions(ax, paths, regions)
    else:
        _draw_reach(ax, paths, others)
    ax.autoscale_view()
    if title:
        ax.set_title(title, fontsize=10, color="#333333")
    _write(figure, png)


def _paths(episodes: Episodes, space: Space) -> list[list[Array]]:
    """For each position group, x and y [L, 2] in the first episodes, in order."""
    few = range(min(len(episodes), MOST_DRAWN))
    spans = [(episodes.starts[e], episodes.starts[e] + episodes.lengths[e]) for e in few]
    drawn = [planes(space, space.planned(episodes.observations[first:end])) for first, end in spans]
    return [list(paths) for paths in zip(*drawn, strict=True)]


def _draw_regions(ax: Axes, paths: list[Array], regions: int) -> None:
    for region in range(regions):
        color = COLORS[region % len(COLORS)]
        ax.add_collection(LineCollection(paths[region::regions], colors=color, linewidths=0.5, alpha=0.25))
        ax.plot([], [], color=color, linewidth=2.5, label=f"region {region + 1}")
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=regions, frameon=False, fontsize=8, handlelength=1.0
    )  # fmt: skip


def _draw_reach(ax: Axes, paths: list[Array], others: list[list[Array]]) -> None:
    """All agents' paths faintly, a few episodes on top, with what else moved in them."""
    dashed: Any = DASHES
    ax.add_collection(LineCollection(paths, colors=FAINT, linewidths=0.4, alpha=0.12))
    for episode, color in zip(_far_apart(paths, len(COLORS)), COLORS, strict=False):
        path = paths[episode]
        ax.plot(*path.T, color=color, linewidth=1.8, solid_capstyle="round")
        ax.plot(*path[0], marker="o", color=color, markersize=6, markeredgecolor="white", markeredgewidth=1.0)
        ax.plot(*path[-1], marker="o", color="white", markersize=7, markeredgecolor=color, markeredgewidth=1.8)
        for moved in (group[episode] for group in others):
            ax.plot(*moved.T, color=color, linewidth=1.2, linestyle=dashed)
            ax.plot(*moved[0], marker="s", color=color, markersize=5, markeredgecolor="white", markeredgewidth=1.0)
            ax.plot(*moved[-1], marker="s", color="white", markersize=5, markeredgecolor=color, markeredgewidth=1.4)


def _far_apart(paths: list[Array], count: int) -> list[int]:
    """Episodes whose middles lie far from one another, so that the highlighted ones do not cover each other."""
    middles = np.array([path[: max(len(path) // 2, 1)].mean(axis=0) for path in paths])
    chosen = [int(np.argmin(middles.sum(axis=1)))]
    nearest = np.linalg.norm(middles - middles[chosen[0]], axis=1)
    while len(chosen) < min(count, len(paths)):
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.linalg.norm(middles - middles[chosen[-1]], axis=1))
    return chosen


def _size(maze: Maze | None, lines: int) -> tuple[float, float]:
    """Inches, with the maze's proportions, about the same area for every maze, and room for lines of text."""
    if maze is None:
        return 5.0, 5.0
    rows, cols = maze.walls.shape
    scale = math.sqrt(24.0 / (rows * cols))
    return cols * scale, rows * scale + 0.27 * lines


def _write(figure: Figure, png: Path) -> None:
    from PIL import Image

    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    # A palette is enough for these few hues and makes a picture that is small enough to keep beside the text.
    picture = (
        Image.open(buffer).convert("RGB").quantize(200, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    )
    with replacing(png) as temporary:
        picture.save(temporary, format="PNG", optimize=True)
