"""What the pictures of the documentation are made of: rows and grids of panels, mazes, chunks, verdicts, small files.

Verdicts come from two sources that need not agree: the certificate, which knows the model only, and the maze's own
walls.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from PIL import Image

from compdiffuser.domains import PLANE
from compdiffuser.planning.plan import Plan
from compdiffuser.plotting.drawing import GOAL, START, chunk_colors, draw_chunks
from compdiffuser.plotting.mazes import draw_maze
from compdiffuser.types import Array

GOOD, BAD, WALLED = "#1b7f4b", "#b3261e", "#ef9a92"


def row(count: int, widths: tuple[float, ...] | None = None) -> tuple[Figure, list[Axes]]:
    """A figure of panels side by side."""
    ratios = list(widths or (1,) * count)
    width = 11.0 / sum(ratios)
    figure = Figure(figsize=(11.0, 0.74 * width + 0.6), dpi=120, layout="constrained")
    return figure, list(figure.subplots(1, count, width_ratios=ratios, squeeze=False)[0])


def pairs(count: int = 4, ratio: float = 0.76) -> tuple[Figure, list[Axes]]:
    """A figure of panels, two in a row, each `ratio` times as high as wide: large enough to follow a path by eye."""
    rows = -(-count // 2)
    figure = Figure(figsize=(9.0, rows * (4.4 * ratio + 0.45)), dpi=120, layout="constrained")
    return figure, list(figure.subplots(rows, 2, squeeze=False).flat)


def maze(ax: Axes, plan: Plan) -> None:
    """Walls, start and goal; what noise scatters beyond the maze is cut off."""
    assert plan.maze is not None
    draw_maze(ax, plan.maze)
    ax.autoscale(False)
    for place, size, marker, color in ((plan.start, 35, "o", START), (plan.goal, 90, "*", GOAL)):
        ax.scatter(
            *PLANE.agent(place), s=size, marker=marker, color=color, edgecolors="white", linewidths=0.8, zorder=8
        )


def chunks(ax: Axes, states: Any, alpha: float = 1.0, width: float = 1.6) -> None:
    """Chunks [K, H, 2] as plain lines."""
    lines = [PLANE.agent(chunk) for chunk in states]
    ax.add_collection(LineCollection(lines, colors=chunk_colors(len(lines)), linewidths=width, alpha=alpha, zorder=3))


def unmerged(ax: Axes, plan: Plan) -> None:
    """A plan's chunks as they are before they are merged: a dot where each begins, a ring where it ends.

    What lies in a wall stands out in red.
    """
    colors = chunk_colors(plan.n_chunks)
    for chunk in plan.chunks:
        in_walls(ax, chunk, plan)
    draw_chunks(ax, plan.chunks, 2.2, False)
    first, last = plan.chunks[:, 0], plan.chunks[:, -1]
    ax.scatter(*last.T, s=30, color="white", edgecolors=colors, linewidths=1.4, zorder=6)
    ax.scatter(*first.T, s=17, color=colors, edgecolors="white", linewidths=0.7, zorder=7)


def in_walls(ax: Axes, states: Array, plan: Plan) -> None:
    """Underlay the steps of a path [n, 2] that lie in a wall."""
    assert plan.maze is not None
    steps = np.stack([states[:-1], states[1:]], axis=1)[plan.maze.walled(states, plan.stride)]  # [m, 2, 2]
    ax.add_collection(
        LineCollection(list(steps), colors=WALLED, linewidths=9, capstyle="round", zorder=2), autolim=False
    )


def verdict(ax: Axes, plan: Plan, what: str, score: bool = True) -> None:
    """The certificate, with the score where it can be compared, and what the maze says; red where that is a fault."""
    certificate = "certified" if plan.ok else "not certified"
    told = f"score {plan.score:.3f}, {certificate}" if score else certificate
    title(ax, f"{what}: {found(plan)}\n{told}", plan.fault() is None)


def title(ax: Axes, text: str, good: bool) -> None:
    ax.set_title(text, fontsize=9, color=GOOD if good else BAD)


def found(plan: Plan) -> str:
    """What the maze says of a plan."""
    fault = plan.fault()
    return "free of walls" if fault is None else "through a wall" if "wall" in fault else "with a jump"


def write(figure: Figure, png: Path) -> None:
    """A palette of 128 colours keeps the file small."""
    buffer = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(buffer, format="png", facecolor="white", bbox_inches="tight", pad_inches=0.06)
    picture = Image.open(buffer).convert("RGB").quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    png.parent.mkdir(parents=True, exist_ok=True)
    picture.save(png, optimize=True)
    print(f"{png} ({png.stat().st_size // 1000} kB)")
