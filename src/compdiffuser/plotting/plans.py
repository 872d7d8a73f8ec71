"""Pictures of plans: chunks in the order of their colours, start, goal, the path an agent really took, one episode or
several side by side, and a film of the denoising. Figures are built without pyplot, so that a library user's own
plotting state is left alone.

A `Space` says which planned dimensions are positions. Those of the agent are drawn as full lines, of anything else that
moves as dashed ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from PIL import Image

from compdiffuser.domains import PLANE, Space
from compdiffuser.domains.mazes import Maze
from compdiffuser.plotting.drawing import (
    ASIDE,
    INK,
    NOTHING,
    Marks,
    blank_figure,
    chunk_colors,
    draw_chunks,
    draw_ends,
    draw_marks,
)
from compdiffuser.plotting.groups import DASHES, planes, points, track_planes
from compdiffuser.plotting.output import check_gif, rendered, write_gif, write_picture
from compdiffuser.types import Array, UserError

_REACHED, _FAILED = "#1b7f4b", "#b3261e"


@dataclass(frozen=True)
class Panel:
    """One episode in a picture of several."""

    title: str
    reached: bool
    start: Array
    """[D]"""
    goal: Array
    """[D]"""
    executed: Array
    """[n, P], positions on the way."""
    chunks: Array | None = None
    """[K, H, D], what it had planned; None where it acts without a plan."""


def plot_plan(
    chunks: Array,
    *,
    space: Space = PLANE,
    maze: Maze | None = None,
    start: Array | None = None,
    goal: Array | None = None,
    executed: Array | None = None,
    title: str | None = None,
    png: str | os.PathLike[str] | None = None,
    marks: Marks = NOTHING,
    others: Sequence[Array] = (),
) -> Figure:
    """A figure of chunks [K, H, D], with the `executed` positions [n, P] as a thin dark line.

    `others` are the states [T, D] of plans that take other ways, drawn below as thin grey lines.
    """
    figure, (ax,) = blank_figure(maze, points(space, chunks, start, goal), title=bool(title))
    draw_marks(ax, marks)
    for states in others:
        for group, path in enumerate(planes(space, states)):
            style: Any = DASHES if group else "-"
            ax.plot(*path.T, color=ASIDE, linewidth=1.6, zorder=2.5, linestyle=style)
    _draw_episode(ax, space, chunks, executed, start, goal)
    if title:
        ax.set_title(title, fontsize=10, color=INK, pad=8)
    if png is not None:
        write_picture(figure, png)
    return figure


def plot_episodes(
    panels: Sequence[Panel],
    maze: Maze | None,
    *,
    space: Space = PLANE,
    title: str | None = None,
    png: str | os.PathLike[str] | None = None,
) -> Figure:
    """Episodes in one world side by side: each one's plan, and over it the path that was taken."""
    if not panels:
        raise UserError("a picture of episodes needs at least one")
    room = [points(space, panel.chunks, panel.start, panel.goal) for panel in panels]
    room += [track for panel in panels for track in track_planes(space, panel.executed)]
    figure, axes = blank_figure(maze, np.concatenate(room), title=True, panels=len(panels), inches=4.0)
    for ax, panel in zip(axes, panels, strict=True):
        _draw_episode(ax, space, panel.chunks, panel.executed, panel.start, panel.goal)
        ax.set_title(panel.title, fontsize=10, color=_REACHED if panel.reached else _FAILED, pad=8)
    if title:
        figure.suptitle(title, fontsize=12, color=INK)
    if png is not None:
        write_picture(figure, png)
    return figure


def plan_map(
    maze: Maze | None,
    chunks: Array | None,
    start: Array,
    goal: Array,
    width: int,
    *,
    space: Space = PLANE,
    room: Array | None = None,
    inches: float = 2.5,
) -> tuple[Image.Image, Callable[[Array], Array]]:
    """A picture of a plan, `width` pixels wide, and the pixels [n, 2] on it of places [n, 2] in the world.

    The smaller the width in `inches`, the thicker its lines. Without a maze the picture holds the points `room` [n, 2].
    """
    seen = points(space, chunks, start, goal) if room is None else room
    figure, (ax,) = blank_figure(maze, seen, title=False, dpi=width / inches, inches=inches)
    _draw_episode(ax, space, chunks, None, start, goal)
    picture = rendered(figure)
    return picture, lambda places: ax.transData.transform(places) * (1, -1) + (0, picture.height)


def animate_denoising(
    frames: Array,
    gif: str | os.PathLike[str],
    *,
    space: Space = PLANE,
    maze: Maze | None = None,
    start: Array | None = None,
    goal: Array | None = None,
    milliseconds: int = 60,
) -> Path:
    """A looping GIF of frames [F, K, H, D] from noise to plan; the last frame stays for a while."""
    check_gif(gif)
    frames = np.asarray(frames, float)
    if frames.ndim != 4 or len(frames) == 0:
        raise UserError(f"a film of the denoising needs frames [F, K, H, D], got shape {frames.shape}")
    figure, (ax,) = blank_figure(maze, points(space, frames[-1]), title=True, dpi=72)
    draw_ends(ax, space, start, goal)
    colors = np.repeat(chunk_colors(frames.shape[1]), frames.shape[2], axis=0)
    pictures = []
    for number, chunks in enumerate(frames):
        # Dots: noise drawn as lines would be a scribble over the whole maze.
        clouds = [cloud.reshape(-1, 2).T for cloud in planes(space, chunks)]
        drawn = [
            ax.scatter(x, y, s=3 if group else 7, color=colors, linewidths=0, zorder=3)
            for group, (x, y) in enumerate(clouds)
        ]
        ax.set_title(f"step {number} of {len(frames) - 1}", fontsize=10, color=INK, pad=8)
        pictures.append(rendered(figure))
        for dots in drawn:
            dots.remove()
    durations = [milliseconds] * (len(pictures) - 1) + [1500]
    # One palette for all frames, taken from the last and clearest.
    write_gif(pictures, durations, pictures[-1].quantize(255, method=Image.Quantize.FASTOCTREE), gif)
    return Path(gif)


def _draw_episode(
    ax: Axes, space: Space, chunks: Array | None, executed: Array | None, start: Array | None, goal: Array | None
) -> None:
    """The plan, over it the `executed` positions [n, P] as a thin dark line, start and goal."""
    tracks = [] if executed is None or not len(executed) else track_planes(space, executed)
    if chunks is not None:
        for group, lines in enumerate(planes(space, chunks)):
            draw_chunks(ax, lines, (4.4 if tracks else 2.8) * (0.6 if group else 1), bool(group))
    halo = [Stroke(linewidth=1.8, foreground="white"), Normal()]
    for group, path in enumerate(tracks):
        style: Any = DASHES if group else "-"
        ax.plot(*path.T, color=INK, linewidth=0.9, zorder=5, path_effects=halo, linestyle=style)
    draw_ends(ax, space, start, goal)
