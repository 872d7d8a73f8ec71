"""What lies ahead of a plan in use, and the ways round what closes it.

Chunks that enter a region are replaced by a way of the roadmap from where they leave the rest of the plan to where they
meet it again; a longer way gets more chunks. All this is little to compute and much to decide, so it stays on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from compdiffuser.checks import brief
from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merge, merged_length, split
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.roads.carrying import Carrying
from compdiffuser.planning.roads.roadmap import Roadmap, length, paced
from compdiffuser.planning.steering.adherence import kept
from compdiffuser.planning.steering.steering import Course, Steering, Waypoint, passing_times
from compdiffuser.planning.steering.ways import Steered
from compdiffuser.types import Array, UserError

if TYPE_CHECKING:
    from compdiffuser.planning.planner import Planner

EASY = 0.7  # of the pace that chunks have at most: a detour is given time for it
RENEWED = 0.25  # of what a chunk advances, that a detour may be longer for each chunk that it leaves alone


def ahead(
    planner: Planner, plan: Plan, here: Array, executed: int | None = None, passed: int | None = None
) -> tuple[int, tuple[Waypoint, ...]]:
    """The state of a plan at which an agent in the state `here` [D] is, and the waypoints that it has still to pass.

    A plan may come by a place twice. Who follows it knows how many of its states are `executed`, and how many of its
    waypoints are `passed`; otherwise its nearest state decides. Raises UserError for more than there are.
    """
    for what, given, most in (("states", executed, len(plan.states)), ("waypoints", passed, len(plan.via))):
        number = isinstance(given, Integral) and not isinstance(given, bool)
        if given is not None and not (number and 0 <= given <= most):
            raise UserError(f"of {most} {what} of a plan, 0 to {most} lie behind an agent, not {brief(given)}")
    if executed is None:
        now = int(np.linalg.norm(plan.space.places(plan.states - here), axis=1).argmin())
    else:
        now = min(int(executed), len(plan.states) - 1)
    if passed is not None:
        return now, plan.via[passed:]
    return now, tuple(stop for stop, when in zip(plan.via, _stopped(planner, plan), strict=True) if when > now)


@dataclass(frozen=True)
class Rest:
    """What lies ahead of a plan, as a chain of chunks, and which of them have to change."""

    planner: Planner
    here: Array
    """[D]"""
    anchor: Array
    """[D], where the first chunk begins; a little behind."""
    chunks: Tensor
    """[K, H, D], normalized; neighbours agree. On the CPU: there is little to compute, and much to decide."""
    concerned: tuple[int, ...]
    walled: bool
    """Whether some of them are where they must not be; otherwise the agent is only beside the plan."""
    steering: Steering
    """With the waypoints that lie ahead."""

    @classmethod
    def of(
        cls,
        planner: Planner,
        plan: Plan,
        here: Array,
        steering: Steering,
        executed: int | None = None,
        passed: int | None = None,
    ) -> Rest:
        horizon, overlap = planner.model.horizon, planner.model.overlap
        if plan.chunks.shape[1:] != (horizon, planner.model.dim) or plan.overlap != overlap:
            raise UserError(f"a plan of chunks {list(plan.chunks.shape)} was not made by this planner")
        if len(plan.states) != (length := merged_length(plan.n_chunks, horizon, overlap)):
            raise UserError(f"{plan.n_chunks} chunks make {length} states, and this plan has {len(plan.states)}")
        states = torch.tensor(plan.states, dtype=torch.float32)
        chunks = split(planner.normalizer.normalize(states), plan.n_chunks, horizon, overlap)
        now, via = ahead(planner, plan, here, executed, passed)
        first = min(now // (horizon - overlap), plan.n_chunks - 1)
        steering = replace(steering, via=via)
        broken = [k - first for k in _broken(planner, chunks, plan, steering) if k >= first]
        off = any(
            np.linalg.norm((plan.states[now] - here)[list(group.columns)]) > planner.ground.gap(group)
            for group in planner.space.positions
        )
        missed = bool(via) and _stopped(planner, plan)[-len(via)] < first * (horizon - overlap)
        concerned = tuple(sorted({*broken, *([0] if off or missed else [])}))
        anchor = plan.states[first * (horizon - overlap)] if first else plan.start
        return cls(planner, here, anchor, chunks[first:], concerned, bool(broken), steering)

    def renewed(self) -> tuple[Tensor, tuple[bool, ...], bool]:
        """What the repair begins from, [K', H, D]; which of its chunks are held; and whether all ways are closed."""
        chunks, held, closed = self.chunks, [True] * len(self.chunks), False
        laid = self.walled and self.planner.space.only_positions and self.planner.roadmap is not None
        for first, last in reversed(_runs(self.concerned)):
            detour = self._detour(chunks, held, first, last) if laid else None
            if detour is None:
                held, closed = [kept and not first <= k <= last for k, kept in enumerate(held)], laid
            else:
                chunks, held = detour
        return chunks, tuple(held), closed

    def course(self, chunks: Tensor, closed: bool) -> Course:
        """What steers the repair; waypoints are passed about when they were."""
        states = self.planner.normalizer.denormalize(merge(chunks, self.planner.model.overlap))
        times = _times(self.planner, states, self.steering.via)
        return Course(self.steering, tuple(time / max(len(states) - 1, 1) for time in times), closed)

    def _detour(self, chunks: Tensor, held: list[bool], first: int, last: int) -> tuple[Tensor, list[bool]] | None:
        """Chunks `first` to `last`, or some more around them, replaced by a way round what they entered."""
        planner, space = self.planner, self.planner.space
        horizon, overlap = planner.model.horizon, planner.model.overlap
        stride = horizon - overlap
        path, spans = merge(chunks, overlap), self._spans(len(chunks), first, last)
        # As for new plans: between few landmarks a narrow way is easily overlooked.
        found = self._around(path, spans, self._steered) or self._around(path, spans, self._finer)
        if not found:
            return None
        usual, places = planner.calibration, space.places(path)

        def price(detour: Detour) -> float:
            kept = length(places[: detour.begin + 1]) + length(places[detour.end :])
            return kept + length(detour.way) + RENEWED * usual.advance * (detour.last - detour.first)

        best = min(found, key=price)
        time = best.end - best.begin
        pace = EASY * usual.advance / stride
        more = max(0, math.ceil((length(best.way) / pace - time) / stride))
        around = paced(best.way, time + 1 + more * stride, space.sizes).to(path)
        whole = torch.cat([path[: best.begin], around, path[best.end + 1 :]])
        renewed = [*held[: best.first], *[False] * (best.last - best.first + 1 + more), *held[best.last + 1 :]]
        return split(whole, len(renewed), horizon, overlap), renewed

    def _spans(self, count: int, first: int, last: int) -> list[tuple[int, int]]:
        """First and last of the chunks that a detour may replace: those concerned, and more and more around them."""
        widened = [(max(first - more, 0), min(last + more, count - 1)) for more in (0, 2, count)]
        return list(dict.fromkeys(widened))

    def _around(self, path: Tensor, spans: Sequence[tuple[int, int]], roads: Steered | None) -> list[Detour]:
        """The ways that could replace chunks of a path [T, D], through the waypoints that these passed."""
        planner, space = self.planner, self.planner.space
        if roads is None:
            return []
        ends = [self._ends(len(path), *span) for span in spans]
        times = _times(planner, planner.normalizer.denormalize(path), self.steering.via)
        stops = [[v for v, t in zip(self.steering.via, times, strict=True) if a < t < b] for a, b in ends]
        here = space.places(planner.normalizer.normalize(torch.from_numpy(self.here).float()))
        places = space.places(path)
        begin = torch.stack([places[a] if first else here for (a, _), (first, _) in zip(ends, spans, strict=True)])
        there = places[[b for _, b in ends]]
        if any(stops):
            steered = [replace(roads, steering=replace(self.steering, via=tuple(via))) for via in stops]
            legs = [each.ways(a, b) for each, a, b in zip(steered, begin, there, strict=True)]
            ways = [found[0].places if found else None for found in legs]
        else:
            ways = roads.roadmap.ways(begin, there)
        found = zip(spans, ends, ways, strict=True)
        return [Detour(*span, *own, way) for span, own, way in found if way is not None]

    def _ends(self, states: int, first: int, last: int) -> tuple[int, int]:
        """The states of a path between which chunks `first` to `last` can be replaced."""
        horizon, overlap = self.planner.model.horizon, self.planner.model.overlap
        begin = first * (horizon - overlap) + overlap // 2 if first else 0
        end = last * (horizon - overlap) + horizon - overlap // 2
        return begin, states - 1 if states - 1 - end < overlap // 2 else end

    @cached_property
    def _steered(self) -> Steered | None:
        return self._through(self.planner.roadmap)

    @cached_property
    def _finer(self) -> Steered | None:
        return self._through(self.planner.finer_roadmap)

    def _through(self, roadmap: Roadmap | Carrying | None) -> Steered | None:
        return None if roadmap is None else Steered.through(roadmap, self.planner.ground, self.steering, self.here)


@dataclass(frozen=True)
class Detour:
    """A way [n, P] that could replace chunks `first` to `last` of a path, from one of its states to another."""

    first: int
    last: int
    begin: int
    end: int
    way: Tensor


def _stopped(planner: Planner, plan: Plan) -> list[int]:
    """When a plan passes its waypoints."""
    return _times(planner, torch.as_tensor(plan.states), plan.via)


def _times(planner: Planner, states: Tensor, stops: Sequence[Waypoint]) -> list[int]:
    """When a path [T, D], in the data's units, passes waypoints."""
    groups = [planner.ground.passing(stop) for stop in stops]
    paths = [states[:, list(group.columns)].cpu().numpy() for group in groups]
    return passing_times(paths, stops, [v.within or planner.ground.gap(g) for v, g in zip(stops, groups, strict=True)])


def _broken(planner: Planner, chunks: Tensor, plan: Plan, steering: Steering) -> list[int]:
    """The chunks that are where they must not be."""
    start, goal = (planner.normalizer.normalize(chunks.new_tensor(end)[None]) for end in (plan.start, plan.goal))
    chain = Chains.build(start, goal, torch.tensor([len(chunks)]), torch.tensor([0]))
    places = Course(replace(steering, via=()))  # no chunk is wrong for a waypoint alone
    return sorted(set(kept(chunks, chain, [places], planner.ground, plan.overlap)[0].broken))


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbours."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs
