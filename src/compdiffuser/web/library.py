"""The planners a server offers: by name from a list made at the start, loaded once.

A request's name is looked up in that list and never becomes a path.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compdiffuser.data.mazes import Maze
from compdiffuser.data.mazes import maze as maze_named
from compdiffuser.planning.checkpoint import CONFIG, locate, pretrained_folder
from compdiffuser.planning.controllers import CONTROLLERS
from compdiffuser.planning.planner import Planner
from compdiffuser.types import Array, UserError
from compdiffuser.web.messages import MazeReply, ModelReply

DEFAULT = "pointmaze-giant-stitch-v0"
CLEARANCE = 0.15
"""Room that an agent needs between its centre and a wall, in cells."""
EXAMPLE_STEPS = 12
"""Cells between the start and the goal that the page begins with, where the maze is large enough."""


class Unknown(LookupError):
    """No planner has that name."""


class Library:
    """Planners by name."""

    def __init__(self, names: Sequence[str] = (), device: str = "auto") -> None:
        self.device = device
        self._folders: dict[str, Path] = {} if names else _shipped()
        self._sources = {name: name for name in self._folders}
        for name in names:
            folder = locate(name)
            if folder.name in self._folders:
                raise UserError(
                    f"'{name}' and '{self._sources[folder.name]}' are both called '{folder.name}'; rename one of them"
                )
            self._folders[folder.name], self._sources[folder.name] = folder, name
        if not self._folders:
            raise UserError(f"there is no planner in '{pretrained_folder()}'; train one, and name it with --models")
        self.default = DEFAULT if DEFAULT in self._folders else next(iter(self._folders))
        self._loaded: dict[str, Planner] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        return list(self._folders)

    def source(self, name: str) -> str:
        """What `Planner.from_pretrained` and the command line take for this planner: its name, or its folder."""
        return self._sources[name]

    def get(self, name: str) -> Planner:
        """The planner of that name; loading it takes a moment the first time."""
        if name not in self._folders:
            raise Unknown(f"there is no model '{name}'; this server has {', '.join(self._folders)}")
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = Planner.from_pretrained(self._folders[name], self.device)
            return self._loaded[name]

    def load(self) -> None:
        """Load all, so that nobody waits for it later."""
        for name in self._folders:
            self.get(name)

    def check(self, name: str, states: dict[str, Sequence[float]]) -> None:
        """Refuse states without room for an agent, where the maze is known."""
        layout = layout_of(self.get(name))
        if layout is not None:
            layout.check_room(states, CLEARANCE * layout.unit)

    def describe(self, name: str) -> ModelReply:
        planner = self.get(name)
        layout = layout_of(planner)
        return ModelReply(
            name=name,
            dim=planner.model.dim,
            horizon=planner.model.horizon,
            overlap=planner.model.overlap,
            max_chunks=planner.preset.max_chunks,
            low=_plain(planner.normalizer.low),
            high=_plain(planner.normalizer.high),
            maze=None if layout is None else _maze(layout),
            example=None if layout is None else _example(layout),
            drivable=layout is not None and planner.model.dim == 2 and planner.preset.controller in CONTROLLERS,
        )


def layout_of(planner: Planner) -> Maze | None:
    """The maze that a planner was trained in, where it is one we know."""
    return maze_named(planner.preset.maze) if planner.preset.maze else None


def _shipped() -> dict[str, Path]:
    return {path.parent.name: path.parent for path in sorted(pretrained_folder().glob(f"*/{CONFIG}"))}


def _plain(numbers: object) -> list[float]:
    return [round(float(number), 4) for number in np.asarray(numbers)]


def _maze(layout: Maze) -> MazeReply:
    return MazeReply(
        rows=["".join("#" if wall else "." for wall in row) for row in layout.walls],
        unit=layout.unit,
        origin=list(layout.origin),
        row_sign=layout.row_sign,
        clearance=CLEARANCE * layout.unit,
    )


def _example(layout: Maze) -> dict[str, list[float]]:
    """From the first free cell to the one that lies about `EXAMPLE_STEPS` steps away."""
    start = layout.free_cells[0]
    steps: Array = layout.distances(start)
    goal = min(layout.free_cells, key=lambda cell: (abs(int(steps[cell]) - EXAMPLE_STEPS), cell))
    return {"start": layout.center(start).tolist(), "goal": layout.center(goal).tolist()}
