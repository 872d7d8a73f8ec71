"""Planned numbers as places in the world: how much room states have, and whether problems and steering fit together.

Signed distances change by at most a metre per metre. So half of what two states have together, less half of what lies
between them, is room that everything on the line between them has: no thin wall is stepped over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.domains.mazes import Maze
from compdiffuser.domains.space import Group, Space
from compdiffuser.planning.recorded.calibration import MARGIN, Calibration
from compdiffuser.planning.roads.roadmap import Clear
from compdiffuser.planning.steering.regions import Grown, Region, bare
from compdiffuser.planning.steering.steering import Steering, Waypoint, check_cost, told_room
from compdiffuser.types import Array, UserError

POINTS_APART, MOST_PARTS = 0.1, 16
"""Metres between the points of a step that are looked at, and how many there are at most where distances are known."""
LEAST_ROOM = 1e-3
"""Metres of room by which the ends of a line clear all of it; with less, points between them are looked at too."""


@dataclass(frozen=True)
class Ground:
    """A space, and how its numbers are measured."""

    space: Space
    normalizer: Normalizer
    calibration: Calibration

    @cached_property
    def step(self) -> float:
        """Metres between neighbouring states that nearly all of the data's stay below."""
        return self._in_metres(self.calibration.step)

    @cached_property
    def parts(self) -> int:
        """Points of a step that are looked at, enough for nearly all of the data's; of longer ones less room is known.

        It is the same for all plans, so that what is found of one depends on no other.
        """
        return min(self._parts(self.calibration.step), MOST_PARTS)

    @cached_property
    def most_parts(self) -> int:
        """As many as the longest step of a certified plan needs, for functions: between points nothing is known."""
        return self._parts(self.calibration.longest_step())

    def gap(self, group: Group) -> float:
        """Metres that a certified plan may end from its goal."""
        moves = self.calibration.moves
        number = self.space.positions.index(group) if len(moves) > 1 else 0
        return moves[number].gap * float(self._spread(group).max())

    def metres(self, places: Tensor, group: Group) -> Tensor:
        """Normalized places [..., size] of a group, in metres."""
        return self.normalizer.part(group.columns).denormalize(places)

    def normalized(self, place: Sequence[float], group: Group) -> Tensor:
        """A place in metres, normalized: [size]."""
        return self.normalizer.part(group.columns).normalize(torch.tensor(place, dtype=torch.float32))

    def concerned(self, name: str | None) -> list[Group]:
        """The position groups of that name; all of them where it is None. Raises UserError for an unknown one."""
        found = [group for group in self.space.positions if name in (None, group.name)]
        if not found:
            known = ", ".join(group.name for group in self.space.positions)
            raise UserError(f"there is no '{name}' in these plans, but {known}")
        return found

    def passing(self, stop: Waypoint) -> Group:
        """The group that passes a waypoint."""
        return self.space.positions[0] if stop.of is None else self.concerned(stop.of)[0]

    def room(self, regions: Sequence[Region], states: Tensor) -> Tensor:
        """Metres that states [..., D], in the data's units, are away from each region: [R, ...]."""
        return torch.stack(
            [
                torch.stack(
                    [region.distance(states[..., list(group.columns)]) for group in self.concerned(region.group)]
                ).amin(dim=0)
                for region in regions
            ]
        )

    def between(self, states: Tensor, parts: int) -> tuple[Tensor, Tensor]:
        """Points on the way of states [M, H, D], so many in each step: [M, n, D], and the metres between [M, n − 1]."""
        shares = torch.arange(parts, device=states.device, dtype=states.dtype) / parts
        steps = states[:, :-1, None] + shares[:, None] * states.diff(dim=1)[:, :, None]
        points = torch.cat([steps.flatten(1, 2), states[:, -1:]], dim=1)
        return points, self._apart(states).repeat_interleave(parts, dim=1) / parts

    def clear(self, steering: Steering, number: int, base: Array) -> Clear:
        """Whether straight lines of the group of that number are free, while all else is as in the state `base` [D]."""
        group = self.space.positions[number]
        regions = [region for region in steering.avoid if region.group in (None, group.name)]

        def clear(places: Tensor, lines: Tensor) -> Tensor:
            free = torch.ones(lines.shape[1], dtype=torch.bool, device=places.device)
            asked = slice(None) if steering.valid is not None else self._near(regions, group, places, lines)
            shares = torch.linspace(0, 1, 9, device=places.device)[:, None]
            begin, end = (places[side[asked], None] for side in lines)
            points = self.metres(begin + shares * (end - begin), group)  # [n, 9, size]
            apart = points.diff(dim=1).norm(dim=-1)
            found = torch.ones(len(points), dtype=torch.bool, device=places.device)
            for region in regions:
                found &= (on_lines(region.distance(points), apart) >= 0).all(dim=1)
            if steering.valid is not None and len(points):
                states = np.tile(base.astype(np.float32), (points.shape[0] * points.shape[1], 1))
                states[:, list(group.columns)] = points.flatten(0, 1).cpu().numpy()
                told = torch.from_numpy(told_room(steering.valid(states), len(states)) >= 0)
                found &= told.view(points.shape[:2]).all(dim=1).to(places.device)
            free[asked] = found
            return free

        return clear

    def check_places(self, regions: Sequence[Region], stops: Sequence[Waypoint]) -> None:
        """Raises UserError for regions and waypoints of groups that are not there, or of other numbers than theirs."""
        for region in regions:
            for group in self.concerned(region.group):
                self._check_region(region, group)
        for stop in stops:
            group = self.passing(stop)
            if len(stop.place) != len(group.columns):
                raise UserError(f"a waypoint is {len(group.columns)} numbers here, not {list(stop.place)}")

    def check(self, steering: Steering, start: Array, goal: Array, asked: Sequence[Group], maze: Maze | None) -> None:
        """Raises UserError where a start [D], a goal [D] and their steering do not fit together."""
        self.check_places(steering.avoid, steering.via)
        for what, state, groups in (("start", start, self.space.positions), ("goal", goal, tuple(asked))):
            for group in groups:
                name = what if len(self.space.positions) == 1 else f"{what}'s {group.name}"
                self._check_place(name, state[list(group.columns)], group, steering)
        for stop in steering.via:
            group = self.passing(stop)
            limits = torch.from_numpy(self.normalizer.part(group.columns).limits)
            if bool((self.normalized(stop.place, group).abs() > limits + MARGIN).any()):
                raise UserError(f"the waypoint {list(stop.place)} lies outside the data")
            if maze is not None:
                maze.check_room({"waypoint": stop.place[: len(maze.origin)]})
            self._check_place("waypoint", np.array(stop.place), group, steering)
        if steering.valid is not None:
            ends = np.stack([start, goal]).astype(np.float32)
            told = told_room(steering.valid(ends), 2)
            for what, state, room in zip(("start", "goal"), ends, told, strict=True):
                if room < 0:
                    raise UserError(f"the {what} {state.round(3).tolist()} is not valid")
        if steering.prefer is not None:
            line = torch.linspace(0, 1, 16)[:, None] * torch.from_numpy(goal - start) + torch.from_numpy(start)
            # A cost may have no slope where a plan stands still; nobody asks for one there.
            check_cost(steering.prefer, line + 1e-3 * torch.arange(16.0)[:, None])

    def _near(self, regions: Sequence[Region], group: Group, places: Tensor, lines: Tensor) -> Tensor:
        """The numbers of lines [2, n] between places [N, P] that may meet a region; their ends clear the others."""
        ends = self.metres(places, group)
        here, there = lines
        apart = (ends[there] - ends[here]).norm(dim=-1)
        near = torch.zeros(len(apart), dtype=torch.bool, device=ends.device)
        for region in regions:
            room = region.distance(ends)  # each place is an end of many lines
            near |= (room[there] + room[here] - apart) / 2 < LEAST_ROOM
        return near.nonzero()[:, 0]

    def _check_region(self, region: Region, group: Group) -> None:
        if region.axes > len(group.columns):
            raise UserError(f"{region} needs places of {region.axes} numbers, and these have {len(group.columns)}")
        width = float((2 * self._spread(group) * self.normalizer.part(group.columns).limits).max())
        if isinstance(region, Grown) and region.margin > width:
            raise UserError(f"a margin of {region.margin:g} m is wider than the data, which is {width:.4g} m wide")

    def _check_place(self, what: str, place: Array, group: Group, steering: Steering) -> None:
        for region in steering.avoid:
            # One that only lacks its margin may be on its way out.
            inside = float(bare(region).distance(torch.from_numpy(place).double())) < 0
            if inside and region.group in (None, group.name):
                raise UserError(f"the {what} {[round(float(x), 4) for x in place]} lies in {bare(region)}")

    def _apart(self, states: Tensor) -> Tensor:
        """Metres between neighbouring states [M, H, D], of the group that goes furthest: [M, H − 1]."""
        steps = states.diff(dim=1)
        return torch.stack([steps[..., list(group.columns)].norm(dim=-1) for group in self.space.positions]).amax(dim=0)

    def _parts(self, step: float) -> int:
        """Points in a step of a normalized length."""
        return max(math.ceil(self._in_metres(step) / POINTS_APART), 1)

    def _in_metres(self, distance: float) -> float:
        """A normalized distance along the widest axis of a position."""
        low, high = (np.array(each)[self.space.columns] for each in (self.normalizer.low, self.normalizer.high))
        return distance * float((high - low).max()) / 2

    def _spread(self, group: Group) -> Array:
        return self.normalizer.units[list(group.columns)]


def on_lines(room: Tensor, apart: Tensor) -> Tensor:
    """Room [..., n − 1] on the lines between points with room [..., n] that lie so far apart [..., n − 1]."""
    return (room[..., 1:] + room[..., :-1] - apart) / 2
