"""The planner that a follower sees during a drive: plans it was given, then repaired and new ones from the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch

from compdiffuser.compose.merge import split
from compdiffuser.evaluation.ends import whole
from compdiffuser.planning.in_use.repair import rest
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.steering.regions import Region, region
from compdiffuser.planning.steering.steering import Steering, Waypoint, waypoint
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError
from compdiffuser.web.messages import DriveRequest, PlanRequest


class Makers(Protocol):
    """Where plans on the way come from."""

    def anew(self, request: PlanRequest) -> Plan: ...

    def closed(self, request: PlanRequest) -> bool:
        """Whether regions close every way that the data knows. Raises UserError where a start lies in one."""

    def repaired(self, plan: Plan, here: Array, avoid: Sequence[Region], seed: int, executed: int, passed: int) -> Plan:
        """A plan from a state [D] on that keeps out of further regions. Raises UserError where that cannot be.

        So many states of the plan are `executed`, and so many of its waypoints `passed`.
        """


class Follower(Protocol):
    """Who follows the plans, and so knows how far it is, by the number of the episode."""

    def executed(self, episode: int) -> int: ...

    def left(self, episode: int) -> tuple[Waypoint, ...]: ...


class Driver:
    """First the plan of a request and those that an earlier drive got, then others as they are needed.

    Where regions appear, the plan is repaired; where no repair is certified, where regions vanish and where waypoints
    change, there is a new plan.
    """

    def __init__(self, request: DriveRequest, preset: Preset, makers: Makers, tell: Callable[[str, Any], None]) -> None:
        self.request, self.preset, self.makers, self.tell = request, preset, makers, tell
        self.space = preset.space
        self.steering = self.wanted = Steering(tuple(map(waypoint, request.via)), tuple(map(region, request.avoid)))
        """What the plan that is followed was made for, and what holds by now."""
        self.changes = sorted(request.changes, key=lambda change: change.step)
        given = [(request.states, request.via), *((made.states, made.via) for made in request.made)]
        self.given = [self._plan(np.asarray(states, float), via) for states, via in given]
        self.plan = self.given[0]
        self.follower: Follower | None = None
        """Asked where the second plan is wanted, and each one after that."""

    def _plan(self, states: Array, via: Sequence[str]) -> Plan:
        start, goal = whole(self.preset.domain, self.request.start, self.request.goal)
        own = self.preset.chunks
        count, rest = divmod(len(states) - own.overlap, own.horizon - own.overlap)
        composed = count >= 1 and not rest  # as this planner's are, so that its chunks can be repaired
        chunks = split(torch.from_numpy(states), count, own.horizon, own.overlap).numpy() if composed else states[None]
        return Plan(
            states, chunks, start, goal, own.overlap if composed else 0, space=self.space, maze=self.preset.maze,
            stride=own.stride, avoid=self.steering.avoid, via=tuple(map(waypoint, via)),
        )  # fmt: skip

    def changed(self, step: int) -> str | None:
        """Why the plan holds no longer at a step of the drive: "closed" or "changed", as in `Decision.reason`."""
        while self.changes and self.changes[0].step <= step:
            change = self.changes.pop(0)
            via = self.wanted.via if change.via is None else tuple(map(waypoint, change.via))
            avoid = self.wanted.avoid if change.avoid is None else tuple(map(region, change.avoid))
            self.wanted = Steering(via, avoid)
        return _reason(self.steering, self.wanted)

    def plan_batch(self, starts: Any, goals: Any, n_chunks: Any = "auto", *, seed: Any = 0) -> list[Plan]:
        """The next plan, for the one episode that there is. Raises UserError where regions close every way."""
        before, self.steering = self.steering, self.wanted
        if self.given:
            self.plan = replace(self.given.pop(0), avoid=self.steering.avoid)
            return [self.plan]
        start, goal = (np.asarray(states, float)[0].round(4) for states in (starts, goals))
        reason = _reason(before, self.steering)
        self.tell("replanning", {"at": self.space.agent(start).tolist(), "reason": reason or "lost"})
        assert self.follower is not None
        executed, left = self.follower.executed(0), self.follower.left(0)
        passed = [stop for stop in before.via if stop not in left]
        via = [stop for stop in self.steering.via if stop not in passed]
        problem = self._problem(start, goal, via, seed[0])
        if reason and self.makers.closed(problem):
            raise UserError("no plan leads on from here: the regions close every way that the data knows")
        plan = self._repaired(start, seed[0], executed, left) if reason == "closed" else None
        plan = plan or self.makers.anew(problem)
        if not plan.ok and reason == "changed" and self._composed and self._fits(before, via, left):
            plan = rest(replace(self.plan, avoid=self.steering.avoid), executed, left)
        # What is told is what is followed, so that the same can be driven again.
        self.plan = replace(plan, states=np.asarray(plan.states, float).round(3))
        told = {"states": self.plan.states.tolist(), "ok": plan.ok, "via": [str(stop) for stop in plan.via]}
        self.tell("replanned", told)
        return [self.plan]

    @property
    def _composed(self) -> bool:
        """Whether the plan that is followed has chunks that can be repaired."""
        return self.plan.overlap == self.preset.chunks.overlap

    def _fits(self, before: Steering, via: Sequence[Waypoint], left: Sequence[Waypoint]) -> bool:
        """Whether the plan that is followed would still do: nothing more is asked of it."""
        return list(via) == list(left) and all(each in before.avoid for each in self.steering.avoid)

    def _repaired(self, start: Array, seed: int, executed: int, left: tuple[Waypoint, ...]) -> Plan | None:
        if not self._composed:
            return None
        passed = len(self.plan.via) - len(left)
        plan = self.makers.repaired(self.plan, start, self.steering.avoid, seed, executed, passed)
        if plan.states is self.plan.states:  # nothing ahead has to change
            return rest(plan, executed, left)
        return plan if plan.ok else None

    def _problem(self, start: Array, goal: Array, via: Sequence[Waypoint], seed: int) -> PlanRequest:
        return PlanRequest(
            model=self.request.model, start=start.tolist(), goal=goal.tolist(), seed=seed,
            via=[str(stop) for stop in via], avoid=[str(each) for each in self.steering.avoid],
        )  # fmt: skip


def _reason(before: Steering, now: Steering) -> str | None:
    """Why a plan that was made for one steering does not do for another; None where they are the same."""
    if before.via != now.via or any(each not in now.avoid for each in before.avoid):
        return "changed"
    return "closed" if any(each not in before.avoid for each in now.avoid) else None
