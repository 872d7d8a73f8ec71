"""The planners a server offers: by name from a list made at the start, loaded once.

A request's name is looked up in that list and never becomes a path.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compdiffuser.artifact import CONFIG
from compdiffuser.domains.mazes import Maze
from compdiffuser.domains.space import Space
from compdiffuser.files import pretrained_folder
from compdiffuser.planning.checkpoint import locate
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
        world = self.get(name).preset.domain
        if world.maze is not None:
            world.check_room(states, CLEARANCE * world.maze.unit)

    def describe(self, name: str) -> ModelReply:
        planner = self.get(name)
        preset = planner.preset
        layout = preset.maze
        return ModelReply(
            name=name,
            dim=planner.model.dim,
            horizon=planner.model.horizon,
            overlap=planner.model.overlap,
            max_chunks=preset.chunks.most,
            low=_plain(planner.normalizer.low),
            high=_plain(planner.normalizer.high),
            maze=None if layout is None else _maze(layout),
            example=None if layout is None else _example(layout, preset.space),
            drivable=preset.domain.make is not None and layout is not None and preset.space.only_positions,
        )


def _shipped() -> dict[str, Path]:
    return {path.parent.name: path.parent for path in sorted(pretrained_folder().glob(f"*/{CONFIG}"))}


def _plain(numbers: object) -> list[float]:
    return [round(float(number), 4) for number in np.asarray(numbers)]


def _maze(layout: Maze) -> MazeReply:
    plain = layout.to_dict()
    del plain["name"]
    return MazeReply(**plain, clearance=CLEARANCE * layout.unit)


def _example(layout: Maze, space: Space) -> dict[str, list[float]] | None:
    """From the first free cell to one about `EXAMPLE_STEPS` steps away; None where postures are planned."""
    if not space.only_positions:
        return None
    start = layout.free_cells[0]
    steps: Array = layout.distances(start)
    goal = min(layout.free_cells, key=lambda cell: (abs(int(steps[cell]) - EXAMPLE_STEPS), cell))
    ends = {"start": layout.center(start).tolist(), "goal": layout.center(goal).tolist()}
    return {what: place * len(space.positions) for what, place in ends.items()}
