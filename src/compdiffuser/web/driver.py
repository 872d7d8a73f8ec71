"""The planner that a follower sees during a drive: plans it was given, then repaired and new ones from the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch

from compdiffuser.compose.merge import split
from compdiffuser.evaluation.ends import whole
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.regions import Region, region
from compdiffuser.planning.steering import Waypoint, waypoint
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError
from compdiffuser.web.messages import DriveRequest, PlanRequest


class Makers(Protocol):
    """Where plans on the way come from."""

    def anew(self, request: PlanRequest) -> Plan: ...

    def closed(self, request: PlanRequest) -> bool:
        """Whether regions close every way that the data knows. Raises UserError where a start lies in one."""

    def repaired(self, plan: Plan, here: Array, avoid: Sequence[Region], seed: int) -> Plan:
        """A plan from a state [D] on that keeps out of further regions. Raises UserError where that cannot be."""

    def ahead(self, plan: Plan, here: Array) -> Sequence[Waypoint]:
        """The waypoints of a plan that have still to be passed."""


class Driver:
    """First the plan of a request and those that an earlier drive got, then others as they are needed.

    Where regions appear, the plan is repaired; where no repair is certified, there is a new plan.
    """

    def __init__(self, request: DriveRequest, preset: Preset, makers: Makers, tell: Callable[[str, Any], None]) -> None:
        self.request, self.preset, self.makers, self.tell = request, preset, makers, tell
        self.space = preset.space
        self.avoid = tuple(map(region, request.avoid))
        self.fresh: tuple[Region, ...] = ()
        """Regions that have just appeared."""
        self.closings = sorted(request.closings, key=lambda closing: closing.step)
        given = [(request.states, request.via), *((made.states, made.via) for made in request.made)]
        self.given = [self._plan(np.asarray(states, float), via) for states, via in given]
        self.plan = self.given[0]

    def _plan(self, states: Array, via: Sequence[str]) -> Plan:
        start, goal = whole(self.preset.domain, self.request.start, self.request.goal)
        own = self.preset.chunks
        count, rest = divmod(len(states) - own.overlap, own.horizon - own.overlap)
        composed = count >= 1 and not rest  # as this planner's are, so that its chunks can be repaired
        chunks = split(torch.from_numpy(states), count, own.horizon, own.overlap).numpy() if composed else states[None]
        return Plan(
            states, chunks, start, goal, own.overlap if composed else 0, space=self.space, maze=self.preset.maze,
            stride=own.stride, avoid=self.avoid, via=tuple(map(waypoint, via)),
        )  # fmt: skip

    def closes(self, step: int) -> bool:
        """Whether regions appear at a step of the drive."""
        while self.closings and self.closings[0].step <= step:
            self.fresh += tuple(map(region, self.closings.pop(0).avoid))
        return bool(self.fresh)

    def plan_batch(self, starts: Any, goals: Any, n_chunks: Any = "auto", *, seed: Any = 0) -> list[Plan]:
        """The next plan, for the one episode that there is. Raises UserError where regions close every way."""
        fresh, self.fresh = self.fresh, ()
        self.avoid += fresh
        if self.given:
            self.plan = self.given.pop(0)
            return [self.plan]
        start, goal = (np.asarray(states, float)[0].round(4) for states in (starts, goals))
        self.tell("replanning", {"at": self.space.agent(start).tolist(), "closed": [str(each) for each in fresh]})
        problem = self._problem(start, goal, self.makers.ahead(self.plan, start), seed[0])
        if fresh and self.makers.closed(problem):
            raise UserError("no plan leads on from here: the regions close every way that the data knows")
        plan = (self._repaired(start, fresh, seed[0]) if fresh else None) or self.makers.anew(problem)
        # What is told is what is followed, so that the same can be driven again.
        self.plan = replace(plan, states=np.asarray(plan.states, float).round(3))
        told = {"states": self.plan.states.tolist(), "ok": plan.ok, "via": [str(stop) for stop in plan.via]}
        self.tell("replanned", told)
        return [self.plan]

    def _repaired(self, start: Array, fresh: Sequence[Region], seed: int) -> Plan | None:
        if self.plan.overlap != self.preset.chunks.overlap:
            return None
        plan = self.makers.repaired(self.plan, start, fresh, seed)
        if plan.states is self.plan.states:  # nothing ahead has to change
            return self._rest(plan, start)
        return plan if plan.ok else None

    def _rest(self, plan: Plan, here: Array) -> Plan:
        """A plan without the chunks that lie behind a state [D]."""
        stride = self.preset.chunks.horizon - plan.overlap
        now = int(np.linalg.norm(self.space.places(plan.states - here), axis=1).argmin())
        first = min(now // stride, plan.n_chunks - 1)
        via = tuple(self.makers.ahead(plan, here))
        return replace(plan, states=plan.states[first * stride :], chunks=plan.chunks[first:], via=via)

    def _problem(self, start: Array, goal: Array, via: Sequence[Waypoint], seed: int) -> PlanRequest:
        return PlanRequest(
            model=self.request.model, start=start.tolist(), goal=goal.tolist(), seed=seed,
            via=[str(stop) for stop in via], avoid=[str(each) for each in self.avoid],
        )  # fmt: skip
