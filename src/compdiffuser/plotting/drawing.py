"""What pictures of plans are made of: figures with a maze on their axes, chunks in their colours, starts and goals.

Figures are built without pyplot, so that a library user's own plotting state is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke

from compdiffuser.domains import Space
from compdiffuser.domains.mazes import Maze
from compdiffuser.plotting.groups import DASHES, planes
from compdiffuser.plotting.mazes import draw_maze
from compdiffuser.types import Array

INK = "#1f2430"
START, GOAL = "#2a9d8f", "#e63946"
AVOIDED, PASSED, ASIDE = "#b3261e", "#1d6fb8", "#8b93a1"


@dataclass(frozen=True)
class Marks:
    """What steered a plan, to be drawn."""

    regions: Sequence[Array] = ()
    """Outlines [n, 2] of regions that it keeps out of."""
    stops: Sequence[Array] = ()
    """Places [2] that it passes, in order."""


NOTHING = Marks()


def draw_marks(ax: Axes, marks: Marks) -> None:
    """Regions as hatched areas, waypoints as numbered diamonds."""
    for outline in marks.regions:
        ax.fill(*np.asarray(outline).T, facecolor=(*to_rgb(AVOIDED), 0.16), edgecolor=AVOIDED, hatch="///", zorder=2)
    for number, (x, y) in enumerate(marks.stops, 1):
        ax.scatter([x], [y], s=130, marker="D", color=PASSED, edgecolors="white", linewidths=1.3, zorder=6)
        ax.annotate(str(number), (x, y), color="white", fontsize=7, ha="center", va="center", zorder=7)


def chunk_colors(n_chunks: int) -> Array:
    """[K, 4] colours that grow lighter along the plan; the map's brightest end is left out, it vanishes on white."""
    return colormaps["plasma"](np.linspace(0.1, 0.88, n_chunks) if n_chunks > 1 else [0.45])


def blank_figure(
    maze: Maze | None,
    room: Array,
    title: bool,
    dpi: float = 160,
    panels: int = 1,
    inches: float = 6.0,
    columns: int | None = None,
) -> tuple[Figure, list[Axes]]:
    """A figure as high as the maze asks for, with nothing but the drawing on its axes.

    Without a maze it holds the points `room` [n, 2], and has axes to read them by. The smaller a panel's width in
    `inches`, the thicker its lines. Panels stand in about as many `columns` as rows, unless told.
    """
    if maze is not None:
        left, right, bottom, top = maze.extent
    else:
        (left, bottom), (right, top) = room.min(axis=0), room.max(axis=0)
        margin = 0.06 * max(right - left, top - bottom, 1e-6)
        left, right, bottom, top = left - margin, right + margin, bottom - margin, top + margin
    ratio = float(np.clip((top - bottom) / max(right - left, 1e-9), 0.4, 1.6))
    columns = columns or math.ceil(math.sqrt(panels))
    rows = math.ceil(panels / columns)
    size = (inches * columns, (inches * ratio + 0.3 * title) * rows)
    figure = Figure(figsize=size, dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(rows, columns, number + 1) for number in range(panels)]
    for ax in axes:
        if maze is not None:
            draw_maze(ax, maze)
            ax.set_axis_off()
        else:
            ax.grid(color="#e3e6ec", linewidth=0.6)
            ax.tick_params(labelsize=8, color="#9aa1ad", labelcolor="#5c6370")
            for side in ax.spines.values():
                side.set_color("#c9ced6")
        ax.set_aspect("equal")
        ax.set_xlim(left, right)
        ax.set_ylim(bottom, top)
    return figure, axes


def draw_chunks(ax: Axes, lines: Array, width: float, dashed: bool, colors: Any = None) -> None:
    """Chunks [K, H, 2], each a line in its colour, unless told; later ones on top.

    A white halo keeps crossings readable.
    """
    collection = LineCollection(
        list(lines),
        colors=chunk_colors(len(lines)) if colors is None else colors,
        linewidths=width,
        linestyles=[DASHES] if dashed else "solid",
        capstyle="butt" if dashed else "round",
        joinstyle="round",
        path_effects=[Stroke(linewidth=width + 1.8, foreground="white", alpha=0.8), Normal()],
        zorder=3,
    )
    ax.add_collection(collection, autolim=False)


def draw_ends(ax: Axes, space: Space, start: Array | None, goal: Array | None, scale: float = 1.0) -> None:
    """Start as a circle, goal as a star; hollow for everything but the agent."""
    for state, marker, size, color in ((start, "o", 90, START), (goal, "*", 260, GOAL)):
        if state is None:
            continue
        for group, (x, y) in enumerate(planes(space, state)):
            face, edge, shrink = ("white", color, 0.6) if group else (color, "white", 1.0)
            ax.scatter(
                [x], [y], s=size * shrink * scale, marker=marker, color=face, edgecolors=edge, linewidths=1.3, zorder=6
            )  # fmt: skip
