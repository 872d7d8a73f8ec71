"""The planners a server offers: by name from a list made at the start, loaded once, and tried before they are offered.

A request's name is looked up in that list and never becomes a path.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from compdiffuser.artifact import CONFIG
from compdiffuser.checks import brief
from compdiffuser.domains import Domain
from compdiffuser.domains.mazes import Maze
from compdiffuser.evaluation import ends
from compdiffuser.files import pretrained_folder
from compdiffuser.following.controllers import controller_for, seen_columns
from compdiffuser.planning.checkpoint import locate
from compdiffuser.planning.planner import Planner
from compdiffuser.presets import Preset
from compdiffuser.types import UserError
from compdiffuser.web import examples
from compdiffuser.web.models import GroupReply, MazeReply, ModelReply

log = logging.getLogger("compdiffuser.web")

DEFAULT = "pointmaze-giant-stitch-v0"


class Unknown(LookupError):
    """No planner has that name."""


class NotReady(RuntimeError):
    """A planner has that name, but cannot plan."""


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
        self._named = bool(names)
        self._loaded: dict[str, Planner] = {}
        self._faults: dict[str, str] = {}
        self._described: dict[str, ModelReply] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """Planners that are ready, or that nobody has asked for yet."""
        return [name for name in self._folders if name not in self._faults]

    @property
    def default(self) -> str:
        return DEFAULT if DEFAULT in self.names else next(iter(self.names), DEFAULT)

    @property
    def not_ready(self) -> list[str]:
        """Planners that could not be loaded, or failed their trial."""
        return list(self._faults)

    def source(self, name: str) -> str:
        """What `Planner.from_pretrained` and the command line take for this planner: its name, or its folder."""
        return self._sources[name]

    def get(self, name: str) -> Planner:
        """The planner of that name; loading and trying it takes a moment the first time.

        Raises NotReady where that failed; why is for the log, since it may name places on this machine.
        """
        if name not in self._folders:
            raise Unknown(f"there is no model '{brief(name)}'; this server has {', '.join(self.names)}")
        with self._lock:
            if name not in self._loaded and name not in self._faults:
                self._load(name)
            if name in self._faults:
                raise NotReady(f"the model '{name}' is not ready; the server's log says why")
            return self._loaded[name]

    def load(self) -> None:
        """Load all, so that nobody waits for it later.

        Raises UserError where one that was named cannot be had, or none at all.
        """
        for name in self._folders:
            with suppress(NotReady):
                self.describe(name)
        if self._faults and (self._named or not self._loaded):
            raise UserError(next(iter(self._faults.values())))

    def _load(self, name: str) -> None:
        try:
            self._loaded[name] = tried(Planner.from_pretrained(self._folders[name], self.device))
        except UserError as error:
            self._faults[name] = str(error)
            log.error("the model '%s' is not ready: %s", name, error)
        except Exception as error:
            self._faults[name] = f"the model '{name}' failed its trial: {brief(error)}"
            log.exception("the model '%s' is not ready", name)

    def check(self, name: str, start: Sequence[float], goal: Sequence[float]) -> None:
        """Refuse ends without room for an agent, where the maze is known."""
        ends.check(self.get(name).preset.domain, start, goal)

    def describe(self, name: str) -> ModelReply:
        """What a client is told of a planner."""
        planner = self.get(name)
        if name not in self._described:
            self._described[name] = _described(name, planner)
        return self._described[name].model_copy(update={"title": self._title(name)})

    def _title(self, name: str) -> str:
        """What people call a planner; where several have a world in common, also what tells it apart."""
        own = self.get(name).preset
        same = [each.preset for each in self._loaded.values() if each.preset.domain.name == own.domain.name]
        notes = []
        if own.recording is not None and len({each.recording and each.recording.recipe for each in same}) > 1:
            notes.append(f"{own.recording.recipe} data")
        if len(own.space.dims) > min(len(each.space.dims) for each in same):
            notes.append(f"{len(own.space.dims)}D")
        if len(same) > len({(each.recording and each.recording.recipe, each.space.dims) for each in same}):
            notes.append(name)
        return _named(own.domain) + (f" ({', '.join(notes)})" if notes else "")


def _named(domain: Domain) -> str:
    return domain.title or domain.name


def _described(name: str, planner: Planner) -> ModelReply:
    preset = planner.preset
    domain, layout = preset.domain, preset.maze
    return ModelReply(
        name=name,
        title=_named(domain),
        dim=planner.model.dim,
        names=list(preset.space.names),
        groups=[
            GroupReply(name=group.name, columns=list(group.columns), asked=group in domain.asked)
            for group in preset.space.positions
        ],
        start_columns=ends.start_columns(domain),
        goal_columns=ends.goal_columns(domain),
        horizon=planner.model.horizon,
        overlap=planner.model.overlap,
        max_chunks=preset.chunks.most,
        low=_plain(planner.normalizer.low),
        high=_plain(planner.normalizer.high),
        maze=None if layout is None else _maze(layout),
        recorded=None if layout is not None else examples.recorded(planner),
        example=examples.example(planner),
        drivable=domain.make is not None and _followed(preset),
    )


def _followed(preset: Preset) -> bool:
    """Whether there is a controller that follows plans of a dataset."""
    try:
        seen_columns(controller_for(preset), preset)
    except UserError:
        return False
    return True


def tried(planner: Planner) -> Planner:
    """A planner that has made one small plan, in the middle of its data. Raises UserError where that is not finite."""
    start, goal = (planner.normalizer.denormalize(np.full(planner.model.dim, at, np.float32)) for at in (0, 0.5))
    quick = copy.copy(planner)
    quick.scaffold = None  # ways through the data take seconds, and are found when they are asked for
    sampler = replace(planner.config.sampler, steps=1, repeats=1)
    quick = quick.configured(replace(planner.config, sampler=sampler, scaffold=None))
    plan = quick.plan(start, goal, n_chunks=1, n_candidates=1)
    if not np.isfinite(plan.states).all():
        raise UserError(f"the planner '{planner.preset.name}' makes plans that are not finite")
    return planner


def _shipped() -> dict[str, Path]:
    return {path.parent.name: path.parent for path in sorted(pretrained_folder().glob(f"*/{CONFIG}"))}


def _plain(numbers: object) -> list[float]:
    return [round(float(number), 4) for number in np.asarray(numbers)]


def _maze(layout: Maze) -> MazeReply:
    return MazeReply(**layout.grid(), clearance=layout.clearance)
