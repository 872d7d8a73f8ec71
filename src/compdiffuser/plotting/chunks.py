"""Pictures of plans in which several things move: chunk by chunk, a panel each, as in the paper's figures 6 and 14.

Drawn over each other, a ball's path and that of whoever dribbles it are hard to tell apart, and no line shows when the
ball is waiting. A panel shows one chunk: the agent's path in the chunk's colour, all others dark and dashed, with marks
where each of them is when the chunk ends. The rest of the plan is a thin grey line.
"""

from __future__ import annotations

import math
import os
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compdiffuser.domains import PLANE, Space
from compdiffuser.domains.mazes import Maze
from compdiffuser.plotting.drawing import (
    GOAL,
    INK,
    NOTHING,
    START,
    Marks,
    blank_figure,
    chunk_colors,
    draw_chunks,
    draw_ends,
    draw_marks,
)
from compdiffuser.plotting.groups import DASHES, planes, points
from compdiffuser.plotting.output import write_picture
from compdiffuser.types import Array

COLUMNS = 6  # panels side by side
_QUIET = "#c3c8d0"


def plot_chunks(
    chunks: Array,
    overlap: int,
    *,
    space: Space = PLANE,
    maze: Maze | None = None,
    start: Array | None = None,
    goal: Array | None = None,
    title: str | None = None,
    png: str | os.PathLike[str] | None = None,
    marks: Marks = NOTHING,
) -> Figure:
    """A panel for each of the chunks [K, H, D], in the order of time, and a legend below."""
    count, horizon = chunks.shape[:2]
    room = points(space, chunks, start, goal)
    columns = math.ceil(count / math.ceil(count / COLUMNS))
    inches = 2.6 if count > 1 else 4.0
    figure, axes = blank_figure(maze, room, title=True, panels=count, inches=inches, columns=columns)
    paths, colors = planes(space, chunks), chunk_colors(count)
    for number, ax in enumerate(axes):
        draw_marks(ax, marks)
        _draw_rest(ax, paths)
        draw_ends(ax, space, start if number == 0 else None, goal if number == count - 1 else None, scale=0.5)
        for group, lines in enumerate(paths):
            color = INK if group else colors[number]
            draw_chunks(ax, lines[number : number + 1], 1.5 if group else 3.0, bool(group), color)
            _mark_end(ax, lines[number, -1], color, bool(group))
        first = number * (horizon - overlap)
        ax.set_title(f"{number + 1}: states {first}–{first + horizon - 1}", fontsize=8, color=INK, pad=4)
    figure.legend(
        handles=_legend(space, colors[0]), loc="outside lower center", ncols=min(columns + 1, 2 + len(paths)),
        fontsize=8, frameon=False, handlelength=3.5,
    )  # fmt: skip
    if title:
        figure.suptitle(title, fontsize=11, color=INK)
    if png is not None:
        write_picture(figure, png)
    return figure


def _draw_rest(ax: Axes, paths: list[Array]) -> None:
    """The whole plan, quietly."""
    for group, lines in enumerate(paths):
        style = [DASHES] if group else "solid"
        ax.add_collection(LineCollection(list(lines), colors=_QUIET, linewidths=0.9, linestyles=style, zorder=2), False)


def _mark_end(ax: Axes, place: Array, color: Any, hollow: bool) -> None:
    """Where something is when its chunk ends."""
    face, edge = ("white", color) if hollow else (color, "white")
    ax.scatter([place[0]], [place[1]], s=26 if hollow else 38, color=face, edgecolors=edge, linewidths=1.2, zorder=7)


def _legend(space: Space, color: Any) -> list[Line2D]:
    """What each line and mark stands for; the agent's is drawn in a chunk's `color`."""
    handles = []
    for group, (name, _) in enumerate(space.positions):
        face, edge, line = ("white", INK, INK) if group else (color, "white", color)
        handles.append(
            Line2D([], [], color=line, linewidth=1.5 if group else 3.0, linestyle=DASHES if group else "-", marker="o",
                   markersize=6, markerfacecolor=face, markeredgecolor=edge, label=f"{name}, and where it ends")
        )  # fmt: skip
    for marker, shade, label in (("o", START, "start"), ("*", GOAL, "goal")):
        handles.append(Line2D([], [], linestyle="", marker=marker, color=shade, markersize=8, label=label))
    return handles
