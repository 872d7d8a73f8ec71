"""Waypoints on the way: an agent heads for nothing behind one before it has been there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from compdiffuser.planning.plan import Plan
from compdiffuser.planning.steering.steering import passing_times
from compdiffuser.types import Array

CLOSE = 0.5
"""Of the distance that counts, how near to a waypoint an agent goes where it can."""


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
    close: float | None = None
    """Metres that come first: it counts as passed at `within` only where agents get no nearer."""

    def reached(self, state: Array, tried: bool = True) -> bool:
        """Whether a planned state [D] is there; `tried` says that there is no getting nearer."""
        near = self.within if tried or self.close is None else self.close
        return float(np.linalg.norm(state[self.columns] - self.place)) <= near


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


def through(track: Array, times: Array, stops: Sequence[Stop], near: float) -> tuple[Array, Array, list[Stop]]:
    """A track [n, D], its times [n] and its stops, led to the places themselves of stops that ask for `near` or nearer.

    A plan may pass at the very limit of what counts; who follows it is a little beside it, and would miss the place.
    """
    led = [number for number, stop in enumerate(stops) if stop.within <= near]
    at = [stops[number].index for number in led]
    places = track[at]
    for state, number in zip(places, led, strict=True):
        state[stops[number].columns] = stops[number].place
    after = [index + 1 for index in at]
    moved = [replace(stop, index=stop.index + sum(number <= each for number in led)) for each, stop in enumerate(stops)]
    found = [replace(stop, close=CLOSE * stop.within) if stop.within <= near else stop for stop in moved]
    return np.insert(track, after, places, axis=0), np.insert(times, after, times[at]), found
