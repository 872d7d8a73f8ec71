"""Goals that leave something open: the ball has to be somewhere, the ant may be where it likes.

A goal pins only the position groups that its domain asks for. Where the others are in the end is taken from the data:
from recorded segments that moved what is asked for to about the wanted place. Candidates try several such *endings*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.domains.domain import Domain
from compdiffuser.domains.space import Group, Space
from compdiffuser.planning.recorded.moves import MOVED, split_groups
from compdiffuser.planning.recorded.postures import Postures
from compdiffuser.planning.recorded.support import Support
from compdiffuser.types import Array

ENDINGS = 8


def whole_goals(goals: Any, starts: Array, space: Space, asked: Sequence[Group]) -> Any:
    """Goals [P, D] of those that name only what is `asked` for, [P, n]; any others as they were given.

    What a goal does not name is at the asked place, and in the posture of the start.
    """
    columns = [column for group in asked for column in group.columns]
    given = np.asarray(goals, dtype=object)
    if len(columns) == len(space.dims) or given.ndim != 2 or given.shape[1] != len(columns):
        return goals
    whole = np.resize(starts.astype(object), (len(given), len(space.dims)))
    first = list(asked[0].columns)
    for group in space.positions:
        for column, source in zip(group.columns, first, strict=False):
            whole[:, column] = given[:, columns.index(source)]
    whole[:, columns] = given
    return whole


def check_room(domain: Domain, start: Sequence[float], goal: Sequence[float], margin: float = 0.0) -> None:
    """Raise UserError where a start, or what a goal asks for, lies in a known wall or closer to one than `margin`.

    A start or goal of another number of dimensions passes: whoever plans says what is wrong with it.
    """
    domain.check_room({"start": start}, margin)
    (whole,) = whole_goals([goal], np.asarray([start], float), domain.space, domain.asked)
    if domain.maze is None or len(whole) != len(domain.space.dims):
        return
    for name, columns in domain.asked:
        what = f"goal's {name}" if len(domain.space.positions) > 1 else "goal"
        domain.maze.check_room({what: [float(whole[column]) for column in columns]}, margin)


def endings(
    goals: Array,
    normalizer: Normalizer,
    support: Support | None,
    space: Space,
    asked: Sequence[Group],
    postures: Postures | None = None,
) -> list[list[Array]]:
    """For each of the goals [P, D] some [D] that have what is `asked` for in its place; the first is the nearest.

    Only the goal itself where it asks for everything, or no segments are known. No goal asks for a posture: where
    some are known, endings have those of recorded states around them.
    """
    found = _placements(goals, normalizer, support, space, asked)
    if postures is None:
        return found
    return [_posed(ends, normalizer, space, postures) for ends in found]


def _posed(ends: list[Array], normalizer: Normalizer, space: Space, postures: Postures) -> list[Array]:
    """Goals [D] in postures of recorded states from around there; a single one in several."""
    given = normalizer.normalize(torch.from_numpy(np.stack(ends)))
    near = postures.near(space.agent(given), ENDINGS)  # [n, ENDINGS, D]
    posed = near[0].clone() if len(ends) == 1 else near[:, 0].clone()
    posed[:, space.columns] = given[:, space.columns].to(posed)
    return list(normalizer.denormalize(posed).numpy().astype(ends[0].dtype))


def _placements(
    goals: Array, normalizer: Normalizer, support: Support | None, space: Space, asked: Sequence[Group]
) -> list[list[Array]]:
    """For each of the goals, some that have what is not asked for where it was in recorded segments."""
    if len(asked) == len(space.positions) or support is None:
        return [[goal] for goal in goals]
    pushes = Pushes.of(support, [group in asked for group in space.positions])
    found = []
    for goal in goals:
        normalized = normalizer.normalize(torch.from_numpy(goal))
        places = pushes.endings([normalized[list(group.columns)] for group in space.positions])
        found.append([normalizer.denormalize(_placed(normalized, space, each)).numpy() for each in places])
    return found


def _placed(state: Tensor, space: Space, places: Sequence[Tensor]) -> Tensor:
    """The state [D] with the groups at other places."""
    moved = state.clone()
    for group, place in zip(space.positions, places, strict=True):
        moved[list(group.columns)] = place
    return moved


@dataclass(frozen=True)
class Pushes:
    """Where everything was after recorded segments that moved what is asked for."""

    last: list[Tensor]
    """The places [n, size] of each group."""
    asked: list[bool]
    """Of each group."""

    @classmethod
    def of(cls, support: Support, asked: list[bool]) -> Pushes:
        """Segments that moved something that is asked for; all of them where none did."""
        first, _, last = (split_groups(part, support.sizes) for part in support.segments.chunk(3, dim=1))
        apart = [(b - a).norm(dim=1) for a, b, wanted in zip(first, last, asked, strict=True) if wanted]
        moved = torch.stack(apart).amax(dim=0) > MOVED
        return cls([places[moved] if moved.any() else places for places in last], asked)

    def endings(self, goal: Sequence[Tensor]) -> list[list[Tensor]]:
        """Places of each group: what is asked for at the goal, the others as far from it as they were."""
        wanted = [number for number, asked in enumerate(self.asked) if asked]
        away = torch.stack([(self.last[number] - goal[number]).norm(dim=1) for number in wanted]).amax(dim=0)
        rows = away.topk(min(ENDINGS, len(away)), largest=False).indices
        return [[self._place(number, row, goal, wanted[0]) for number in range(len(goal))] for row in rows.tolist()]

    def _place(self, number: int, row: int, goal: Sequence[Tensor], beside: int) -> Tensor:
        if self.asked[number]:
            return goal[number]
        place = self.last[number][row].clone()
        shared = min(len(place), len(goal[beside]))
        place[:shared] += (goal[beside] - self.last[beside][row])[:shared]
        return place.clamp(-1, 1)
