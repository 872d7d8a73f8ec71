"""What the planned numbers mean: which dimensions of an observation are planned, and which of those are places.

A *position group* is the place of one thing that moves, x and y in metres: the agent first, then a ball, say.
Everything geometric asks these groups alone: steps, gaps, walls, reach, support, the roadmap, tracking, loops and
pictures. All other planned dimensions are *posture*; a plan's posture is judged by the model's reconstruction error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from compdiffuser.types import Array, UserError

if TYPE_CHECKING:
    from torch import Tensor

States = TypeVar("States", "Tensor", Array)


class Group(NamedTuple):
    """The place of one thing that moves."""

    name: str
    columns: tuple[int, ...]
    """Where x and y, and perhaps z, stand."""


AGENT = Group("agent", (0, 1))


@dataclass(frozen=True)
class Space:
    """Planned dimensions of an observation, and the position groups among them."""

    dims: tuple[int, ...] = (0, 1)
    """Observation dimensions that are planned, in the order of a planned state."""
    positions: tuple[Group, ...] = (AGENT,)
    """Groups of columns of a planned state; the first is the agent's."""

    def __post_init__(self) -> None:
        whole = all(type(dim) is int for dim in (*self.dims, *self.columns))
        if not (self.dims and whole) or len(set(self.dims)) < len(self.dims) or min(self.dims) < 0:
            raise UserError(f"planned dimensions are different ones from 0 on, not {list(self.dims)}")
        columns = self.columns
        if not columns or len(set(columns)) < len(columns) or not set(columns) <= set(range(len(self.dims))):
            given = [list(group) for group in self.positions]
            raise UserError(f"positions are different columns of the {len(self.dims)} planned ones, not {given}")

    @property
    def columns(self) -> list[int]:
        """Columns of all positions, group after group."""
        return [column for group in self.positions for column in group.columns]

    @property
    def sizes(self) -> list[int]:
        """How many numbers each position group has."""
        return [len(group.columns) for group in self.positions]

    @property
    def only_positions(self) -> bool:
        """Whether a planned state is nothing but positions, in their order."""
        return self.columns == list(range(len(self.dims)))

    @property
    def only_places(self) -> bool:
        """Whether no posture is planned."""
        return len(self.columns) == len(self.dims)

    @property
    def names(self) -> tuple[str, ...]:
        """What each number of a planned state is, such as "agent x"."""
        named = {
            column: f"{name} {axis}"
            for name, columns in self.positions
            for axis, column in zip("xyz", columns, strict=False)
        }
        return tuple(named.get(column, f"observation {dim}") for column, dim in enumerate(self.dims))

    def planned(self, observations: States) -> States:
        """Of observations [..., obs], the planned states [..., D]. Raises UserError where they are too narrow."""
        if observations.shape[-1] <= max(self.dims):
            there = f"observations have dimensions 0 to {observations.shape[-1] - 1}"
            raise UserError(f"{there}, there is no dimension {max(self.dims)}")
        return observations[..., list(self.dims)]

    def weights(self, share: float | None) -> list[float] | None:
        """What each dimension counts, 1 on average, where positions have this `share` of the whole.

        None where all count alike: no share is asked for, or there is no posture.
        """
        places, rest = len(self.columns), len(self.dims) - len(self.columns)
        if share is None or not rest:
            return None
        each = {True: share / places, False: (1 - share) / rest}
        return [each[column in self.columns] * len(self.dims) for column in range(len(self.dims))]

    def places(self, states: States) -> States:
        """All positions of planned states, [..., D] -> [..., P]: what distances are measured in."""
        return states if self.only_positions else states[..., self.columns]

    def distances(self, differences: Array) -> Array:
        """How far each group is, in metres: of differences between places [..., P], their lengths [..., groups]."""
        ends = list(accumulate(len(columns) for _, columns in self.positions))
        parts = np.split(differences, ends[:-1], axis=-1)
        return np.stack([np.linalg.norm(part, axis=-1) for part in parts], axis=-1)

    def furthest(self, differences: Array) -> Array:
        """How far the group is that is furthest, in metres: of differences between places [..., P], [...]."""
        return self.distances(differences).max(axis=-1)

    def agent(self, states: States) -> States:
        """The agent's position, [..., D] -> [..., 2]."""
        return states[..., list(self.positions[0].columns)]

    def groups(self, states: States) -> dict[str, States]:
        """Each group's positions by name, [..., D] -> [..., 2]."""
        return {name: states[..., list(columns)] for name, columns in self.positions}

    def to_dict(self) -> dict[str, Any]:
        return {"dims": list(self.dims), "positions": [[name, list(columns)] for name, columns in self.positions]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Space:
        groups = (Group(str(name), tuple(columns)) for name, columns in values["positions"])
        return cls(tuple(values["dims"]), tuple(groups))

    @classmethod
    def of(cls, dims: Sequence[int], known: Iterable[Group] = (AGENT,)) -> Space:
        """The space of observation dimensions `dims`, in which groups that are `known` stay position groups.

        `known` groups name observation dimensions. Where none is planned as a whole, the first two planned dimensions
        count as the agent's place.
        """
        dims = tuple(dims)
        groups = [
            Group(name, tuple(dims.index(dim) for dim in columns))
            for name, columns in known
            if set(columns) <= set(dims)
        ]
        return cls(dims, tuple(groups) or (Group("agent", tuple(range(min(2, len(dims))))),))


PLANE = Space()
"""x and y of the agent, the first two numbers of an observation."""


def apart(one: Array, other: Array) -> Array:
    """Metres [...] between things at [..., n] and [..., m], in the numbers that both have: one of them may fly."""
    shared = min(one.shape[-1], other.shape[-1])
    return np.asarray(np.linalg.norm(one[..., :shared] - other[..., :shared], axis=-1))
