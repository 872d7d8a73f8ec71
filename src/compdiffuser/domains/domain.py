"""A world, as one record: what is simulated, which body moves in it, what is planned, and which tasks are set.

`Domain.open()` gives a `World`, a simulator at work. Recording, evaluation, films and the page all drive that one
interface. A world of your own is a class with `reset`, `place` and `step`, and a `Domain` that names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from compdiffuser.checks import finite, unknown, whole
from compdiffuser.domains.body import BODIES, Body
from compdiffuser.domains.controller import Controller
from compdiffuser.domains.mazes import Maze
from compdiffuser.domains.space import PLANE, Group, Space
from compdiffuser.types import Array, UserError

Entry = TypeVar("Entry")


class Stepped(NamedTuple):
    """What a step came to."""

    observation: Array
    """[obs]"""
    success: bool
    """Whether the goal is reached, by the world's own test."""
    unstable: bool = False
    """Whether the simulation blew up; the episode cannot go on."""


class World(Protocol):
    """A simulator at work. It lives in the process that uses it; the same seed gives the same episode.

    One further member is used where a world has it: `scene()`, MuJoCo's model and the present qpos, with which
    episodes are filmed; a world without it is filmed on its map.
    """

    def reset(self, task: int, seed: int) -> tuple[Array, Array]:
        """Observation [obs] and goal [obs] of a task, numbered from 1."""

    def place(self, start: Array, goal: Array, seed: int) -> tuple[Array, Array]:
        """The same from any place to any other: positions [P], those of all groups of the domain's space."""

    def step(self, action: Array) -> Stepped:
        """Act [act]."""

    def close(self) -> None: ...


Demonstrate = Callable[[Any, np.random.Generator], Sequence[tuple[Array, Array]]]
"""Acts in an opened world: one episode, as observations and the actions taken in them."""


@dataclass(frozen=True)
class Domain:
    """Everything that is known of one world."""

    name: str
    make: Callable[[], World] | None = None
    """Opens a simulator; sent to worker processes, so it must pickle. None: data without a simulator."""
    body: Body = BODIES["point"]
    space: Space = PLANE
    """What is planned, unless asked otherwise."""
    maze: Maze | None = None
    """Where walls are known. Drawing and checking need no simulator."""
    tasks: int = 0
    """Tasks that the world numbers from 1."""
    family: str = "point"
    """Settings that were tuned for a kind of world are looked up by it."""
    long_horizon: bool = False
    """Whether its tasks take so long that OGBench discounts less."""
    controller: Controller | None = None
    """What follows plans here; None: a controller that is learned from the data."""
    demonstrate: Demonstrate | None = None
    """Records an episode of a world of one's own; ours have recipes in `data.recipes`."""
    environment: str | None = None
    """The benchmark's name of the simulator, for manifests."""
    official: bool = False
    """Whether OGBench publishes its datasets."""
    position_dims: tuple[Group, ...] = (Group("agent", (0, 1)),)
    """Observation dimensions that are positions; they stay so in whatever space is planned."""
    goal_groups: tuple[str, ...] = ()
    """Position groups whose place at the goal counts, such as the ball's; empty: all."""
    title: str | None = None
    """What people call it, such as "Ant, giant maze"; None: its name."""
    goal_radius: float | None = None
    """Metres from the goal within which a task is solved; None: whoever asks has a usual distance."""

    def __post_init__(self) -> None:
        if not self.name:
            raise UserError("a world needs a name, and this one is empty")
        whole(self, "tasks", least=0)
        sizes = [len(group.columns) for group in (self.position_dims[0], *self.space.positions[:1])]
        if self.maze is not None and sizes != [2, 2]:
            told = f"the agent's place in '{self.name}' has {max(sizes)} numbers"
            raise UserError(f"a map is seen from above, x and y, but {told}; leave the maze out")
        if self.goal_radius is not None:
            finite(self, "goal_radius", least=0)
        known = [name for name, _ in self.position_dims]
        if strange := [name for name in self.goal_groups if name not in known]:
            raise UserError(f"the goal of '{self.name}' asks for '{strange[0]}'; its positions are {', '.join(known)}")

    @property
    def asked(self) -> tuple[Group, ...]:
        """The planned position groups that count at the goal; all of them where none that counts is planned."""
        groups = self.space.positions
        return tuple(group for group in groups if group.name in self.goal_groups) or groups

    def open(self) -> World:
        """A simulator at work. Raises UserError where there is none."""
        if self.make is None:
            raise UserError(f"'{self.name}' has no simulator; register a Domain of that name that makes one")
        return self.make()

    def planning(self, dims: Sequence[int]) -> Domain:
        """The same world with other planned dimensions. Raises UserError where the agent's place is not among them."""
        agent = self.position_dims[0].columns
        missing = [column for column in agent if column not in dims]
        if missing and (self.make is not None or self.maze is not None):
            needed = f"the agent's place, dimensions {', '.join(map(str, agent))}"
            raise UserError(f"plans in {self.name} hold {needed}, and {missing[0]} is not among {list(dims)}")
        return replace(self, space=Space.of(dims, self.position_dims))

    def check_room(self, states: Mapping[str, Sequence[float]], margin: float = 0.0) -> None:
        """Raise UserError where a named planned state puts something into a wall, or closer to one than `margin`."""
        if self.maze is None:
            return
        for what, state in states.items():
            if len(state) != len(self.space.dims):
                continue  # whoever plans says what is wrong with it
            for name, place in self.space.groups(np.asarray(state, float)).items():
                alone = len(self.space.positions) == 1
                self.maze.check_room({what if alone else f"{what}'s {name}": place}, margin)


class Catalogue(dict[str, Entry]):
    """Entries by name. A *family* of names, a pattern, has entries that are made when asked for, and lists none."""

    def __init__(self, entries: Iterable[tuple[str, Entry]] = ()) -> None:
        super().__init__(entries)
        self.families: dict[re.Pattern[str], Callable[[str], Entry]] = {}

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._family(name) is not None

    def __missing__(self, name: str) -> Entry:
        family = self._family(name)
        if family is None:
            raise KeyError(name)
        return family(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401, this is what it asks for

    def _family(self, name: object) -> Callable[[str], Entry] | None:
        fits = (make for pattern, make in self.families.items() if isinstance(name, str) and pattern.fullmatch(name))
        return next(fits, None)


DOMAINS: Catalogue[Domain] = Catalogue()
"""Every world that commands know; `compdiffuser.register` adds yours."""


def domain(name: str) -> Domain:
    """The record of a world. Raises UserError with the nearest name."""
    if name in DOMAINS:
        return DOMAINS[name]
    raise unknown("world", name, DOMAINS, "worlds")
