"""Waypoints on the way: an agent heads for nothing behind one before it has been there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compdiffuser.planning.plan import Plan
from compdiffuser.planning.steering import passing_times
from compdiffuser.types import Array


@dataclass(frozen=True)
class Stop:
    """A waypoint of a plan that is followed."""

    index: int
    """Of the state that passes it."""
    columns: list[int]
    """Of a planned state, where what passes it stands."""
    place: Array
    within: float
    """Metres."""

    def reached(self, state: Array) -> bool:
        """Whether a planned state [D] is there."""
        return float(np.linalg.norm(state[self.columns] - self.place)) <= self.within


def stops_of(plan: Plan, within: float, followed: Array | None = None) -> list[Stop]:
    """The waypoints of a plan in their order, each with the state that passes it.

    `within` counts where a waypoint names no distance; `followed` are the times [n] of the states that are followed.
    """
    groups = {group.name: group for group in plan.space.positions}
    columns = [list(groups.get(stop.of or "", plan.space.positions[0]).columns) for stop in plan.via]
    near = [stop.within or within for stop in plan.via]
    times = passing_times([plan.states[:, each] for each in columns], plan.via, near)
    if followed is not None:
        times = np.searchsorted(followed, times).tolist()
    found = zip(times, columns, plan.via, near, strict=True)
    return [Stop(time, own, np.array(stop.place), distance) for time, own, stop, distance in found]
