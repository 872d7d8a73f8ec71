"""What is known at test time about the world and the wish: regions, a validity test, waypoints, a cost.

One value, `Steering`, is asked by everything that makes a plan. The roadmap loses edges that enter a region, denoising
is guided out of regions, towards waypoints and down the cost, and the judge refuses what enters a region, is not valid
or misses a waypoint. So a certified plan is certified for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.checks import brief, is_finite
from compdiffuser.planning.steering.regions import Region, grown
from compdiffuser.types import Array, UserError

Cost = Callable[[Tensor], Tensor]
"""`cost(states [n, T, D]) -> [n]`, in the data's units and differentiable; lower is preferred. Chunks are asked too."""
Valid = Callable[[Array], Array]
"""`valid(states [n, D]) -> [n]`, in the data's units: bool, or metres of room, below 0 where a state is not valid."""
ROOM = 1.0
"""Metres of room that a valid state counts for where only yes or no is told, and a state that is not valid lacks."""
MOST_WAYPOINTS, MOST_REGIONS = 64, 256


@dataclass(frozen=True)
class Waypoint:
    """A place that is passed on the way."""

    place: tuple[float, ...]
    """In metres."""
    of: str | None = None
    """The position group that passes it; None: the agent."""
    within: float | None = None
    """Metres; None: as near as a certified plan comes to its goal."""

    def __post_init__(self) -> None:
        try:
            place = () if isinstance(self.place, str) else tuple(float(number) for number in self.place)
        except (TypeError, ValueError):
            place = ()
        if not 1 <= len(place) <= 3 or not all(map(is_finite, place)):
            raise UserError(f"a waypoint is the finite numbers of a place, not {brief(self.place)}")
        object.__setattr__(self, "place", place)
        if self.within is not None and not (is_finite(self.within) and self.within > 0):
            raise UserError(f"a waypoint is passed within a distance above 0, not {brief(self.within)}")

    def __str__(self) -> str:
        """As on the command line, such as "20,16" or "4,4@ball~0.2"."""
        written = ",".join(f"{number:.12g}" for number in self.place)
        near = "" if self.within is None else f"~{self.within:.12g}"
        return written + (f"@{self.of}" if self.of else "") + near


def waypoint(text: str) -> Waypoint:
    """The waypoint of a text such as "20,16", or "20,16~0.5", passed within 0.5 m. Raises UserError for others."""
    rest, near, within = str(text).partition("~")
    written, _, of = rest.partition("@")
    try:
        place = tuple(float(part) for part in written.split(","))
        return Waypoint(place, of.strip() or None, float(within) if near else None)
    except ValueError:
        form = "x,y, and perhaps @ with the name of what passes, and ~ with metres within which"
        raise UserError(f"a waypoint is written {form}, not '{brief(text)}'") from None


@dataclass(frozen=True)
class Steering:
    """All that one plan is steered by."""

    via: tuple[Waypoint, ...] = ()
    """Passed in this order."""
    avoid: tuple[Region, ...] = ()
    """With their margins."""
    valid: Valid | None = None
    prefer: Cost | None = None
    guidance: float = 1.0
    """Strength of the guidance while denoising; 0: none."""
    routed: bool = True
    """Whether the way through the data is looked for with all this in mind."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "via", _stops(self.via))
        object.__setattr__(self, "avoid", grown(self.avoid, 0.0))
        if len(self.via) > MOST_WAYPOINTS or len(self.avoid) > MOST_REGIONS:
            given = f"{len(self.via)} and {len(self.avoid)}"
            raise UserError(f"at most {MOST_WAYPOINTS} waypoints and {MOST_REGIONS} regions steer a plan, not {given}")
        for what, function in (("valid", self.valid), ("prefer", self.prefer)):
            if function is not None and not callable(function):
                raise UserError(f"{what} is a function of states, not {brief(function)}")
        if not is_finite(self.guidance) or self.guidance < 0:
            raise UserError(f"guidance is a number from 0 on, not {brief(self.guidance)}")

    @classmethod
    def of(
        cls,
        via: Sequence[Any] = (),
        avoid: Sequence[Region] = (),
        valid: Valid | None = None,
        prefer: Cost | None = None,
        margin: float = 0.0,
        within: float | None = None,
    ) -> Steering:
        """What a caller gives: places or waypoints, regions and a margin around them. Raises UserError."""
        return cls(_stops(via, within), grown(avoid, margin), valid, prefer)

    def __bool__(self) -> bool:
        return bool(self.via or self.avoid or self.valid or self.prefer)

    def joined(self, known: Steering) -> Steering:
        """This and what is `known` for good, such as a map."""
        if not known:
            return self
        return replace(self, avoid=known.avoid + self.avoid, valid=_both(known.valid, self.valid))

    @property
    def walled(self) -> bool:
        """Whether there are places where a plan must not be."""
        return bool(self.avoid or self.valid)


def _stops(via: Any, within: float | None = None) -> tuple[Waypoint, ...]:
    """Places or waypoints as waypoints. Raises UserError for what is no list of them."""
    if isinstance(via, str) or not isinstance(via, Sequence | np.ndarray):
        raise UserError(f"via is a list of places, not {brief(via)}")
    return tuple(
        replace(stop, within=stop.within or within) if isinstance(stop, Waypoint) else Waypoint(stop, within=within)
        for stop in via
    )


@dataclass(frozen=True)
class Course:
    """A steering, and what the data knows of a way under it."""

    steering: Steering
    marks: tuple[float, ...] = ()
    """For each waypoint the share of the way after which it is passed."""
    closed: bool = False
    """Whether all ways that the data knows are closed: then a plan shows where, and nothing guides it."""
    way: Tensor | None = None
    """[n, P], normalized: what positions are held to at first, where a plan has no scaffold to begin from."""


def passing_times(paths: Sequence[Array], stops: Sequence[Waypoint], within: Sequence[float]) -> list[int]:
    """When waypoints are passed in order: for each, the path [T, size] of the group that passes it, and how near.

    That is the first moment from which on it gets no nearer, once it is near enough; else the nearest.
    """
    times: list[int] = []
    for path, stop, near in zip(paths, stops, within, strict=True):
        since = times[-1] if times else 0
        away = np.linalg.norm(np.asarray(path[since:], float) - np.array(stop.place), axis=1)
        close = np.flatnonzero(away <= near)
        first = int(close[0]) if len(close) else int(away.argmin())
        while first + 1 < len(away) and away[first + 1] < away[first]:
            first += 1
        times.append(since + first)
    return times


def told_room(values: Any, count: int) -> Array:
    """What a validity function said, as metres of room [n]. Raises UserError for anything but bools or floats [n]."""
    told = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if told.shape != (count,) or told.dtype.kind not in "bf":  # a whole 0 may mean no, or no room beside a wall
        given = f"{told.dtype} of shape {list(told.shape)}"
        raise UserError(f"valid tells a bool, or metres as a float, for each of {count} states, not {given}")
    if told.dtype.kind == "b":
        return np.where(told, ROOM, -ROOM)
    if np.isnan(told).any():
        raise UserError("valid told a number of metres that is not a number")
    return told.astype(np.float64)


def cost_of(prefer: Cost, states: Tensor) -> Tensor:
    """The cost [n] of paths [n, T, D]. Raises UserError for a cost that is not finite, or not one number each."""
    try:
        cost = prefer(states)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"the cost cannot be computed for states {list(states.shape)}: {brief(error)}") from error
    if not isinstance(cost, Tensor) or cost.shape != states.shape[:1]:
        given = f"shape {list(cost.shape)}" if isinstance(cost, Tensor) else brief(cost)
        raise UserError(f"a cost is one number for each of {len(states)} paths [n, T, D], a tensor [n], not {given}")
    if not bool(torch.isfinite(cost).all()):
        raise UserError(f"the cost of a path is not finite: {brief(cost.tolist())}")
    return cost


def check_cost(prefer: Cost, states: Tensor) -> None:
    """Raises UserError where the cost of a path [T, D] is not finite or has no gradient."""
    with torch.inference_mode(False), torch.enable_grad():
        path = states.detach()[None].clone().requires_grad_(True)
        cost = cost_of(prefer, path)
        if not cost.requires_grad:
            raise UserError("the cost has no gradient: compute it from the states with differentiable torch functions")
        (slope,) = torch.autograd.grad(cost.sum(), path, allow_unused=True)
    if slope is None:
        raise UserError("the cost has no gradient: compute it from the states with differentiable torch functions")
    if not bool(torch.isfinite(slope).all()):
        raise UserError("the gradient of the cost is not finite")


def _both(first: Valid | None, second: Valid | None) -> Valid | None:
    if first is None or second is None:
        return first or second
    return lambda states: np.minimum(*(told_room(each(states), len(states)) for each in (first, second)))
