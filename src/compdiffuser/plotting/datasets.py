"""A picture of a dataset: every trajectory faintly, and on top what one recording can reach.

Where episodes are confined to regions, each region has a colour; elsewhere a few episodes stand out, from the dot where
they start to the ring where they end. Where there is something to move, a ball say, episodes in which it moves have one
colour and those in which it lies have another; its own paths are dashed, and squares are where it starts and ends.
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

from compdiffuser.data.statistics import MOVED
from compdiffuser.domains import Space
from compdiffuser.domains.mazes import Maze
from compdiffuser.files import replacing
from compdiffuser.plotting.groups import DASHES, planes
from compdiffuser.plotting.mazes import draw_maze
from compdiffuser.plotting.output import check_picture, write_picture
from compdiffuser.types import Array, Episodes

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7b5fc4", "#b8860b")
FAINT = "#5b7fa6"
MOVING, LYING = "#d55e00", "#0072b2"
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
    legend = regions > 1 or bool(others)
    figure = Figure(figsize=_size(maze, lines=bool(title) + legend), dpi=110, layout="constrained")
    ax = figure.add_subplot()
    if maze is None:
        ax.set_aspect("equal")
    else:
        draw_maze(ax, maze)
    if regions > 1:
        _draw_regions(ax, paths, regions)
    elif others:
        _draw_moved(ax, paths, others, " or ".join(group.name for group in space.positions[1:]))
    else:
        _faint(ax, paths, FAINT)
        anyone = np.ones(len(paths), bool)
        for episode, color in zip(_far_apart(paths, [anyone] * len(COLORS)), COLORS, strict=False):
            _draw_path(ax, paths[episode], color)
    if legend:
        columns = regions if regions > 1 else 2
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=columns, frameon=False, fontsize=8, handlelength=1.0
        )  # fmt: skip
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


def _draw_moved(ax: Axes, paths: list[Array], others: list[list[Array]], what: str) -> None:
    """Episodes in which something else moves, and those in which it lies: all faintly, a few of both on top."""
    lengths = [[np.hypot(*np.ptp(path, axis=0)) for path in group] for group in (paths, *others)]
    moved = np.max(lengths[1:], axis=0) > MOVED
    turns = []
    for kind, color, told in ((~moved, LYING, "lies"), (moved, MOVING, "moves")):
        if not kind.any():
            continue
        seen = others[0] if kind is moved else paths
        _faint(ax, [seen[episode] for episode in np.flatnonzero(kind)], color)
        ax.plot([], [], color=color, linewidth=2.5, label=f"the {what} {told}: {kind.mean():.0%} of episodes")
        turns.append(kind & (lengths[0] >= np.median(np.array(lengths[0])[kind])))  # the longer half
    for episode in _far_apart(paths, turns * 3):
        color = MOVING if moved[episode] else LYING
        _draw_path(ax, paths[episode], color)
        for group in others:
            _draw_path(ax, group[episode], color, agent=False)


def _faint(ax: Axes, paths: list[Array], color: str) -> None:
    """Many paths as a background; the fewer, the stronger."""
    few = MOST_DRAWN / len(paths)
    alpha, width = min(0.6, 0.3 * math.sqrt(few)), min(1.2, 0.6 * math.sqrt(few))
    ax.add_collection(LineCollection(paths, colors=color, linewidths=width, alpha=alpha))


def _draw_path(ax: Axes, path: Array, color: str, agent: bool = True) -> None:
    """One path [L, 2] from its start to its end: an agent's from dot to ring, another's dashed, between squares."""
    dashed: Any = DASHES
    mark, size, edge = ("o", 6, 1.8) if agent else ("s", 5, 1.4)
    line: dict[str, Any] = (
        {"linewidth": 1.8, "solid_capstyle": "round"} if agent else {"linewidth": 1.2, "linestyle": dashed}
    )
    ax.plot(*path.T, color=color, **line)
    ax.plot(*path[0], marker=mark, color=color, markersize=size, markeredgecolor="white", markeredgewidth=1.0)
    ax.plot(*path[-1], marker=mark, color="white", markersize=size + agent, markeredgecolor=color, markeredgewidth=edge)


def _far_apart(paths: list[Array], turns: list[Array]) -> list[int]:
    """Episodes whose middles lie far from one another, so that the highlighted ones do not cover each other.

    In each turn one is chosen of those that it admits [n], as long as there are some.
    """
    middles = np.array([path[: max(len(path) // 2, 1)].mean(axis=0) for path in paths])
    nearest = -middles.sum(axis=1)  # to begin with, the one at the lower left
    chosen: list[int] = []
    for admitted in turns:
        left = admitted.copy()
        left[chosen] = False
        if left.any():
            best = int(np.argmax(np.where(left, nearest, -np.inf)))
            away = np.linalg.norm(middles - middles[best], axis=1)
            nearest = np.minimum(nearest, away) if chosen else away
            chosen.append(best)
    return chosen


def _size(maze: Maze | None, lines: int) -> tuple[float, float]:
    """Inches, with the maze's proportions, about the same area for every maze, and room for lines of text."""
    if maze is None:
        return 5.0, 5.0
    rows, cols = maze.walls.shape
    scale = math.sqrt(24.0 / (rows * cols))
    return cols * scale, rows * scale + 0.27 * lines


def _write(figure: Figure, png: Path) -> None:
    if check_picture(png) != "png":
        return write_picture(figure, png)
    from PIL import Image

    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    # A palette is enough for these few hues and makes a picture that is small enough to keep beside the text.
    picture = (
        Image.open(buffer).convert("RGB").quantize(200, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    )
    with replacing(png) as temporary:
        picture.save(temporary, format="PNG", optimize=True)
