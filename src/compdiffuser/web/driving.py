"""Driving along a plan: the real world, from any start to any goal, one episode at a time.

`evaluation.evaluate` runs it, so that the page's verdict is the benchmark's. The agent's path goes out as it is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from compdiffuser.domains import Domain, Space
from compdiffuser.evaluation.causes import meaning
from compdiffuser.evaluation.ends import between, whole
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.problems import Placement, Task
from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.settings import Following
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError
from compdiffuser.web.driver import Driver, Makers
from compdiffuser.web.messages import DriveRequest
from compdiffuser.web.models import SceneReply
from compdiffuser.web.scenes import describe

STEPS_PER_EVENT = 10


class Stopped(Exception):
    """Nobody watches this drive any more."""


class Stages:
    """Worlds that wait for their next drive; opening one takes longer than most drives."""

    def __init__(self) -> None:
        self._idle: dict[Any, list[EnvironmentPool]] = {}
        self._lock = threading.Lock()
        self._scenes: dict[tuple[str, Space], SceneReply] = {}

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

    @contextmanager
    def lent(self, domain: Domain) -> Iterator[EnvironmentPool]:
        """A pool for a while; closed where something fails, since nobody knows then what state it is in."""
        pool = self.take(domain)
        try:
            yield pool
        except BaseException:
            pool.close()
            raise
        self.give_back(pool)

    def placed(self, domain: Domain, start: Sequence[float], goal: Sequence[float]) -> Array:
        """What is observed [obs] where an episode between two ends begins."""
        with self.lent(domain) as pool:
            observations, _ = pool.reset([between(domain, start, goal)])
        observed: Array = observations[0]
        return observed

    def scene(self, domain: Domain) -> SceneReply:
        """How what moves in a world looks. Raises UserError where it cannot be drawn."""
        if domain.make is None:
            raise UserError(f"'{domain.name}' has no simulator that could say how its bodies look")
        name, space = _key(domain)
        if (name, space) not in self._scenes:
            with self.lent(domain) as pool:
                nowhere = np.zeros(len(space.columns))
                pool.reset([Task(1, 0) if domain.tasks else Placement(nowhere, nowhere, 0)])
                self._scenes[name, space] = describe(domain, pool.worlds[0])
        return self._scenes[name, space]

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
    """A policy that does what another one does and tells what moves where, a few steps at a time."""

    def __init__(
        self, policy: PlanFollower, space: Space, tell: Callable[[str, Any], None],
        qpos: Callable[[], Array] | None = None, changed: Callable[[int], str | None] = lambda step: None,
    ) -> None:  # fmt: skip
        self.policy, self.space, self.tell, self.qpos, self.changed = policy, space, tell, qpos, changed
        self._step = 0
        self._path: list[list[float]] = []
        self._qpos: list[list[float]] = []
        self._started = False

    def reset(self, observations: Array, goals: Array) -> None:
        self.policy.reset(observations, goals)
        self._started = False
        self._step = 0

    def act(self, observations: Array, active: Array) -> Array:
        if self._started:  # the first is where it starts
            self.moved(observations)
        self._started = True
        if reason := self.changed(self._step):
            self.flush()
            self.policy.renew(observations, reason)
        self._step += 1
        return self.policy.act(observations, active)

    @property
    def decisions(self) -> Any:
        return self.policy.decisions

    def moved(self, observations: Array) -> None:
        """Note how all stands: observations [1, obs]."""
        (state,) = self.space.planned(observations)
        self._path.append([round(float(value), 3) for value in state])
        if self.qpos is not None and len(now := self.qpos()):
            self._qpos.append([round(float(value), 3) for value in now])
        if len(self._path) == STEPS_PER_EVENT:
            self.flush()

    def flush(self) -> None:
        """Tell what was not told yet."""
        if self._path:
            path, self._path = self._path, []
            qpos, self._qpos = self._qpos, []
            self.tell("moved", {"path": path, "qpos": qpos} if qpos else {"path": path})


def drive(
    stages: Stages, preset: Preset, request: DriveRequest, makers: Makers, tell: Callable[[str, Any], None]
) -> EpisodeResult:
    """Follow the plan; `tell` gets the agent's path a few steps at a time, and may raise `Stopped`."""
    driver = Driver(request, preset, makers, tell)
    follower = driver.follower = PlanFollower(driver, preset, Following(replan=request.replan, seed=request.seed))
    start, goal = (preset.space.places(state) for state in whole(preset.domain, request.start, request.goal))
    with stages.lent(preset.domain) as pool:
        narrator = Narrator(follower, preset.space, tell, partial(_qpos, pool), driver.changed)
        (result,) = evaluate(
            narrator, preset, episodes=1, seed=request.seed, pool=pool, placements=[(start, goal)]
        )  # fmt: skip
        narrator.moved(pool.observations)
    narrator.flush()
    return result


def _qpos(pool: EnvironmentPool) -> Array:
    """qpos of the world in a pool; nothing where it has none."""
    scene: Callable[[], tuple[Any, Array]] | None = getattr(pool.worlds[0], "scene", None)
    return np.zeros(0) if scene is None else scene()[1]


def verdict(result: EpisodeResult) -> dict[str, Any]:
    """How the drive ended, with a sentence for the page."""
    planned = [decision.reason for decision in result.decisions if decision.planned][1:]
    repairs = planned.count("closed")
    counts = ((repairs, "repaired plan"), (len(planned) - repairs, "new plan"))
    made = " and ".join(f"{count} {what}{'s' if count > 1 else ''}" for count, what in counts if count)
    again = f", with {made} on the way" if made else ""
    if result.success:
        sentence = f"The agent reached the goal in {result.steps} steps{again}."
    else:
        sentence = f"The agent did not reach the goal: {meaning(str(result.cause))} ({result.steps} steps{again})."
    return {
        "success": result.success,
        "steps": result.steps,
        "cause": result.cause,
        "replans": len(planned),
        "sentence": sentence,
    }
