"""Driving along a plan: the real world, from any start to any goal, one episode at a time.

`evaluation.evaluate` runs it, so that the page's verdict is the benchmark's. The agent's path goes out as it is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from compdiffuser.domains import Domain, Space
from compdiffuser.evaluation.causes import meaning
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.settings import Following
from compdiffuser.planning.plan import Plan
from compdiffuser.presets import Preset
from compdiffuser.types import Array
from compdiffuser.web.messages import DriveRequest, PlanRequest

STEPS_PER_EVENT = 10


class Stopped(Exception):
    """Nobody watches this drive any more."""


class Stages:
    """Worlds that wait for their next drive; opening one takes longer than most drives."""

    def __init__(self) -> None:
        self._idle: dict[Any, list[EnvironmentPool]] = {}
        self._lock = threading.Lock()

    def take(self, domain: Domain) -> EnvironmentPool:
        """A pool in this process, whose drive is one episode."""
        with self._lock:
            waiting = self._idle.setdefault(_key(domain), [])
            if waiting:
                return waiting.pop()
        return EnvironmentPool(domain, workers=0)

    def give_back(self, pool: EnvironmentPool) -> None:
        with self._lock:
            self._idle.setdefault(_key(pool.domain), []).append(pool)

    def close(self) -> None:
        """Close those that are idle."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for pools in idle.values():
            for pool in pools:
                pool.close()


def _key(domain: Domain) -> tuple[str, Space]:
    return domain.name, domain.space


class Narrator:
    """A policy that does what another one does and tells where its agent goes, a few steps at a time."""

    def __init__(self, policy: PlanFollower, space: Space, tell: Callable[[str, Any], None]) -> None:
        self.policy, self.space, self.tell = policy, space, tell
        self._path: list[list[float]] = []
        self._started = False

    def reset(self, observations: Array, goals: Array) -> None:
        self.policy.reset(observations, goals)
        self._started = False

    def act(self, observations: Array, active: Array) -> Array:
        if self._started:  # the first is where it starts
            self.moved(observations)
        self._started = True
        return self.policy.act(observations, active)

    @property
    def decisions(self) -> Any:
        return self.policy.decisions

    def moved(self, observations: Array) -> None:
        """Note where the agent is: observations [1, obs]."""
        (place,) = self.space.agent(self.space.planned(observations))
        self._path.append([round(float(value), 3) for value in place])
        if len(self._path) == STEPS_PER_EVENT:
            self.flush()

    def flush(self) -> None:
        """Tell what was not told yet."""
        if self._path:
            path, self._path = self._path, []
            self.tell("moved", {"path": path})


class Driver:
    """The planner that a follower sees: first the plan it was given, then new ones from the server's queue."""

    def __init__(
        self, request: DriveRequest, preset: Preset, again: Callable[[PlanRequest], Plan], tell: Callable[..., None]
    ) -> None:
        states = np.asarray(request.states, float)
        start, goal = np.asarray(request.start, float), np.asarray(request.goal, float)
        self.given: Plan | None = Plan(
            states, states[None], start, goal, 0, space=preset.space, maze=preset.maze, stride=preset.chunks.stride
        )
        self.space = preset.space
        self.request = request
        self.again = again
        self.tell = tell

    def plan_batch(self, starts: Any, goals: Any, n_chunks: Any = "auto", *, seed: Any = 0) -> list[Plan]:
        if self.given is not None:
            plan, self.given = self.given, None
            return [plan]
        start, goal = (np.asarray(states, float)[0].round(4) for states in (starts, goals))
        self.tell("replanning", {"at": self.space.agent(start).tolist()})
        model = self.request.model
        plan = self.again(PlanRequest(model=model, start=start.tolist(), goal=goal.tolist(), seed=seed[0]))
        self.tell("replanned", {"states": np.asarray(plan.states, float).round(3).tolist(), "ok": plan.ok})
        return [plan]


def drive(
    stages: Stages,
    preset: Preset,
    request: DriveRequest,
    again: Callable[[PlanRequest], Plan],
    tell: Callable[[str, Any], None],
) -> EpisodeResult:
    """Follow the plan; `tell` gets the agent's path a few steps at a time, and may raise `Stopped`."""
    driver = Driver(request, preset, again, tell)
    follower = PlanFollower(driver, preset, Following(replan=request.replan, seed=request.seed))
    narrator = Narrator(follower, preset.space, tell)
    start, goal = (preset.space.places(np.asarray(state, float)) for state in (request.start, request.goal))
    pool = stages.take(preset.domain)
    try:
        (result,) = evaluate(
            narrator, preset, episodes=1, seed=request.seed, pool=pool, placements=[(start, goal)]
        )  # fmt: skip
        narrator.moved(pool.observations)
    except BaseException:
        pool.close()  # nobody knows what state it is in
        raise
    stages.give_back(pool)
    narrator.flush()
    return result


def verdict(result: EpisodeResult) -> dict[str, Any]:
    """How the drive ended, with a sentence for the page."""
    replans = sum(decision.planned for decision in result.decisions) - 1
    again = f", with {replans} new plan{'s' if replans > 1 else ''} on the way" if replans > 0 else ""
    if result.success:
        sentence = f"The agent reached the goal in {result.steps} steps{again}."
    else:
        sentence = f"The agent did not reach the goal: {meaning(str(result.cause))} ({result.steps} steps{again})."
    return {
        "success": result.success,
        "steps": result.steps,
        "cause": result.cause,
        "replans": max(replans, 0),
        "sentence": sentence,
    }
