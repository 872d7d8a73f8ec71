"""Pictures of plans: chunks in the order of their colours, start, goal, the path an agent really took, one episode or
several side by side, and a film of the denoising. Figures are built without pyplot, so that a library user's own
plotting state is left alone.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from PIL import Image

from compdiffuser.data.mazes import Maze
from compdiffuser.files import replacing
from compdiffuser.plotting.mazes import draw_maze
from compdiffuser.types import Array, UserError

_INK = "#1f2430"
_REACHED, _FAILED = "#1b7f4b", "#b3261e"


@dataclass(frozen=True)
class Panel:
    """One episode in a picture of several."""

    title: str
    reached: bool
    start: Array
    """[2]"""
    goal: Array
    """[2]"""
    executed: Array
    """[n, 2], where the agent went."""
    chunks: Array | None = None
    """[K, H, D], what it had planned; None where it acts without a plan."""


def chunk_colors(n_chunks: int) -> Array:
    """[K, 4] colours that grow lighter along the plan; the map's brightest end is left out, it vanishes on white."""
    return colormaps["plasma"](np.linspace(0.1, 0.88, n_chunks) if n_chunks > 1 else [0.45])


def plot_plan(
    chunks: Array,
    *,
    maze: Maze | None = None,
    start: Array | None = None,
    goal: Array | None = None,
    executed: Array | None = None,
    title: str | None = None,
    png: str | os.PathLike[str] | None = None,
) -> Figure:
    """A figure of chunks [K, H, D] (dimensions 0 and 1), with the `executed` path [n, 2] as a thin dark line."""
    points = [np.asarray(part, float)[..., :2].reshape(-1, 2) for part in (chunks, start, goal) if part is not None]
    figure, (ax,) = _figure(maze, np.concatenate(points), title=bool(title))
    _draw_episode(ax, chunks, executed, start, goal)
    if title:
        ax.set_title(title, fontsize=10, color=_INK, pad=8)
    if png is not None:
        _write(figure, png)
    return figure


def plot_episodes(
    panels: Sequence[Panel],
    maze: Maze,
    *,
    title: str | None = None,
    png: str | os.PathLike[str] | None = None,
) -> Figure:
    """Episodes in one maze side by side: each one's plan, and over it the path that was taken."""
    if not panels:
        raise UserError("a picture of episodes needs at least one")
    figure, axes = _figure(maze, np.zeros((0, 2)), title=True, panels=len(panels), inches=4.0)
    for ax, panel in zip(axes, panels, strict=True):
        _draw_episode(ax, panel.chunks, panel.executed, panel.start, panel.goal)
        ax.set_title(panel.title, fontsize=10, color=_REACHED if panel.reached else _FAILED, pad=8)
    if title:
        figure.suptitle(title, fontsize=12, color=_INK)
    if png is not None:
        _write(figure, png)
    return figure


def plan_map(
    maze: Maze, chunks: Array | None, start: Array, goal: Array, width: int
) -> tuple[Image.Image, Callable[[Array], Array]]:
    """A small picture of a plan, `width` pixels wide, and the pixels [n, 2] on it of places [n, 2] in the maze."""
    figure, (ax,) = _figure(maze, np.zeros((0, 2)), title=False, dpi=width / 2.5, inches=2.5)
    _draw_episode(ax, chunks, None, start, goal)
    picture = _picture(figure)
    return picture, lambda places: ax.transData.transform(places) * (1, -1) + (0, picture.height)


def check_picture(png: str | os.PathLike[str]) -> str:
    """The format that a picture's name asks for; a sentence where it cannot be written."""
    ending = Path(png).suffix.lstrip(".").lower() or "png"
    if ending not in FigureCanvasAgg.get_supported_filetypes():
        raise UserError(f"cannot write a picture as '.{ending}', as '{png}' asks; use .png, .svg or .pdf")
    return ending


def animate_denoising(
    frames: Array,
    gif: str | os.PathLike[str],
    *,
    maze: Maze | None = None,
    start: Array | None = None,
    goal: Array | None = None,
    milliseconds: int = 60,
) -> Path:
    """A looping GIF of frames [F, K, H, D] from noise to plan; the last frame stays for a while."""
    frames = np.asarray(frames, float)
    if frames.ndim != 4 or len(frames) == 0:
        raise UserError(f"a film of the denoising needs frames [F, K, H, D], got shape {frames.shape}")
    figure, (ax,) = _figure(maze, frames[-1, ..., :2].reshape(-1, 2), title=True, dpi=72)
    _draw_ends(ax, start, goal)
    colors = np.repeat(chunk_colors(frames.shape[1]), frames.shape[2], axis=0)
    pictures = []
    for number, chunks in enumerate(frames):
        # Dots: noise drawn as lines would be a scribble over the whole maze.
        x, y = chunks[..., :2].reshape(-1, 2).T
        drawn = ax.scatter(x, y, s=7, color=colors, linewidths=0, zorder=3)
        ax.set_title(f"step {number} of {len(frames) - 1}", fontsize=10, color=_INK, pad=8)
        pictures.append(_picture(figure))
        drawn.remove()
    durations = [milliseconds] * (len(pictures) - 1) + [1500]
    # One palette for all frames, taken from the last and clearest.
    write_gif(pictures, durations, pictures[-1].quantize(255, method=Image.Quantize.FASTOCTREE), gif)
    return Path(gif)


def _figure(
    maze: Maze | None, points: Array, title: bool, dpi: float = 160, panels: int = 1, inches: float = 6.0
) -> tuple[Figure, list[Axes]]:
    """A figure as high as the maze (or the points [n, 2]) asks for, with nothing but the drawing on its axes.

    `inches` is the width of a panel: the smaller, the thicker its lines are.
    """
    if maze is not None:
        left, right, bottom, top = maze.extent
    else:
        (left, bottom), (right, top) = points.min(axis=0), points.max(axis=0)
        margin = 0.06 * max(right - left, top - bottom, 1e-6)
        left, right, bottom, top = left - margin, right + margin, bottom - margin, top + margin
    ratio = float(np.clip((top - bottom) / max(right - left, 1e-9), 0.4, 1.6))
    columns = math.ceil(math.sqrt(panels))
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


def _draw_episode(
    ax: Axes, chunks: Array | None, executed: Array | None, start: Array | None, goal: Array | None
) -> None:
    """The plan, over it the `executed` path [n, 2] as a thin dark line, start and goal."""
    driven = executed is not None and len(executed) > 0
    if chunks is not None:
        _draw_chunks(ax, chunks, width=4.4 if driven else 2.8)
    if driven:
        path = np.asarray(executed, float)
        halo = [Stroke(linewidth=1.8, foreground="white"), Normal()]
        ax.plot(path[:, 0], path[:, 1], color=_INK, linewidth=0.9, zorder=5, path_effects=halo)
    _draw_ends(ax, start, goal)


def _draw_chunks(ax: Axes, chunks: Array, width: float) -> None:
    """Every chunk as one line in its colour, later ones on top; a white halo keeps crossings readable."""
    lines = [np.asarray(chunk, float)[:, :2] for chunk in chunks]
    collection = LineCollection(
        lines,
        colors=chunk_colors(len(lines)),
        linewidths=width,
        capstyle="round",
        joinstyle="round",
        path_effects=[Stroke(linewidth=width + 1.8, foreground="white", alpha=0.8), Normal()],
        zorder=3,
    )
    ax.add_collection(collection, autolim=False)


def _draw_ends(ax: Axes, start: Array | None, goal: Array | None) -> None:
    """Start as a circle, goal as a star."""
    for point, marker, size, color in ((start, "o", 90, "#2a9d8f"), (goal, "*", 260, "#e63946")):
        if point is not None:
            x, y = np.asarray(point, float)[:2]
            ax.scatter([x], [y], s=size, marker=marker, color=color, edgecolors="white", linewidths=1.3, zorder=6)


def _picture(figure: Figure) -> Image.Image:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white")
    return Image.open(buffer).convert("RGB")


def _write(figure: Figure, png: str | os.PathLike[str]) -> None:
    """Write the picture; its format follows the file's ending."""
    ending = check_picture(png)
    with replacing(Path(png)) as temporary:
        figure.savefig(temporary, format=ending, facecolor="white")


def write_gif(
    pictures: Sequence[Image.Image], durations: list[int], palette: Image.Image, gif: str | os.PathLike[str]
) -> None:
    """A looping GIF that shows each picture for its milliseconds, all with one palette: colours do not flicker."""
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    with replacing(Path(gif)) as temporary:
        frames[0].save(
            temporary, format="GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True
        )
