"""Films of episodes on the world's map, from above: the plan, and the tracks of everything that moves.

Worlds that MuJoCo does not draw are filmed this way; the films that it does draw show such a map in a corner.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from compdiffuser.domains import PLANE, Space
from compdiffuser.domains.mazes import Maze
from compdiffuser.plotting.groups import points, track_planes
from compdiffuser.plotting.plans import plan_map
from compdiffuser.plotting.video import SIZE, Shot
from compdiffuser.types import Array

_BODY, _OTHER = "#1f2430", "#5c6370"


class Tracker:
    """A map with a plan on which the agent, and what else moves, leave their tracks; `width` pixels wide."""

    def __init__(
        self,
        maze: Maze | None,
        space: Space,
        start: Array,
        goal: Array,
        width: int,
        inches: float = 2.5,
        pen: int = 3,
        room: Array | None = None,
    ) -> None:
        self.space, self.pen = space, pen
        self._drawing = (maze, start, goal, width, inches, room)
        self._drawn: Any = self  # the plan on the map; nothing is at first

    def draw(self, chunks: Array | None, places: Array) -> Image.Image:
        """The map with the plan [K, H, D] that is followed and the positions [n, P] so far."""
        if self._drawn is not chunks:
            self._drawn = chunks
            maze, start, goal, width, inches, room = self._drawing
            self._map, self._pixels = plan_map(
                maze, chunks, start, goal, width, space=self.space, room=room, inches=inches
            )  # fmt: skip
        picture = self._map.copy()
        pen = ImageDraw.Draw(picture)
        for group, track in reversed(list(enumerate(track_planes(self.space, places)))):  # the agent on top
            dots = [tuple(dot) for dot in self._pixels(track)]
            (x, y), radius = dots[-1], self.pen * (2 if group else 3)
            color = _OTHER if group else _BODY
            pen.line(dots, fill=color, width=self.pen)
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color, outline="white", width=self.pen)
        return picture


def map_frames(
    shots: Sequence[Shot],
    maze: Maze | None,
    start: Array,
    goal: Array,
    space: Space = PLANE,
    size: tuple[int, int] = SIZE,
) -> Generator[Array]:
    """One frame [height, width, 3] for every shot; `start` [D] and `goal` [D] are planned states."""
    places = np.array([shot.places for shot in shots])
    plans = {id(shot.chunks): shot.chunks for shot in shots}.values()
    room = np.concatenate([points(space, start, goal, *plans), *track_planes(space, places)])
    tracker = Tracker(maze, space, start, goal, 2 * size[0], inches=4.0, pen=5, room=room)
    for number, shot in enumerate(shots):
        yield np.asarray(_fitted(tracker.draw(shot.chunks, places[: number + 1]), size))


def _fitted(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """The picture as large as fits into a white frame, in its middle."""
    scale = min(size[0] / picture.width, size[1] / picture.height)
    small = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.Resampling.BOX)
    frame = Image.new("RGB", size, "white")
    frame.paste(small, ((size[0] - small.width) // 2, (size[1] - small.height) // 2))
    return frame
