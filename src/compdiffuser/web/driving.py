"""Driving along a plan: the real environment, from any start to any goal, one episode at a time.

`evaluation.evaluate` runs it, so that the page's verdict is the benchmark's. The agent's way goes out as it is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compdiffuser.evaluation.environments import EnvironmentPool, Step
from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
from compdiffuser.evaluation.tasks import make_environment
from compdiffuser.planning.follower import Following, PlanFollower
from compdiffuser.planning.plan import Plan
from compdiffuser.presets import Preset
from compdiffuser.types import Array
from compdiffuser.web.messages import DriveRequest, PlanRequest

STEPS_PER_EVENT = 10

REASONS = {
    "infeasible plan": "the plan it followed passes through a wall or jumps",
    "controller lost": "it left the plan, and no new one was allowed",
    "time out": "it ran out of steps on a sound plan",
    "unstable simulation": "the simulation became unstable",
}


class Stopped(Exception):
    """Nobody watches this drive any more."""


class Stage(EnvironmentPool):
    """One environment in this process whose agent and goal are put where a request wants them."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self.n_tasks = 1
        self.environment: Any = make_environment(preset)
        self.place: tuple[Array, Array] = (np.zeros(2), np.zeros(2))
        self.moved: Callable[[Array], None] = lambda xy: None

    def reset(self, tasks: Sequence[int], seeds: Sequence[int]) -> tuple[Array, Array]:
        observation, goal = self.environment.reset(1, seeds[0])
        start, end = self.place
        simulator = self.environment.env
        if hasattr(simulator, "set_xy"):  # OGBench
            simulator.set_goal(goal_xy=end)
            simulator.set_xy(start)
            observation = simulator.get_ob()
        else:  # gymnasium-robotics
            body = simulator.point_env
            simulator.goal = end.copy()
            simulator.update_target_site_pos()
            body.set_state(start, np.zeros_like(body.data.qvel))
            observation = np.concatenate([start, np.zeros(len(observation) - 2)])
        goal = np.concatenate([end, goal[2:]])
        self._observations = np.asarray(observation)[None]
        return self._observations.copy(), goal[None]

    def step(self, actions: Array, active: Array) -> Step:
        observation, success, unstable = self.environment.step(actions[0])
        self._observations = np.asarray(observation)[None]
        self.moved(self._observations[0, :2])
        return Step(self._observations.copy(), np.array([success]), np.array([unstable]))

    def close(self) -> None:
        self.environment.env.close()


class Stages:
    """Environments that wait for their next drive; making one takes longer than most drives."""

    def __init__(self) -> None:
        self._idle: dict[str, list[Stage]] = {}
        self._lock = threading.Lock()

    def take(self, preset: Preset) -> Stage:
        with self._lock:
            waiting = self._idle.setdefault(preset.name, [])
            if waiting:
                return waiting.pop()
        return Stage(preset)

    def give_back(self, stage: Stage) -> None:
        with self._lock:
            self._idle.setdefault(stage.preset.name, []).append(stage)

    def close(self) -> None:
        """Close those that are idle."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for stages in idle.values():
            for stage in stages:
                stage.close()


class Driver:
    """The planner that a follower sees: first the plan it was given, then new ones from the server's queue."""

    def __init__(
        self, request: DriveRequest, preset: Preset, again: Callable[[PlanRequest], Plan], tell: Callable[..., None]
    ) -> None:
        states = np.asarray(request.states, float)
        ends = (np.asarray(request.start, float), np.asarray(request.goal, float))
        self.given: Plan | None = Plan(
            states, states[None], *ends, overlap=0, ok=True, maze=preset.maze or None, stride=preset.stride
        )
        self.request = request
        self.again = again
        self.tell = tell

    def plan_batch(self, starts: Any, goals: Any, n_chunks: Any = "auto", *, seed: Any = 0) -> list[Plan]:
        if self.given is not None:
            plan, self.given = self.given, None
            return [plan]
        start, goal = (np.asarray(states, float)[0].round(4).tolist() for states in (starts, goals))
        self.tell("replanning", {"at": start[:2]})
        plan = self.again(PlanRequest(model=self.request.model, start=start, goal=goal, seed=seed[0]))
        self.tell("replanned", {"states": np.asarray(plan.states, float).round(3).tolist(), "ok": plan.ok})
        return [plan]


def drive(
    stages: Stages,
    preset: Preset,
    request: DriveRequest,
    again: Callable[[PlanRequest], Plan],
    tell: Callable[[str, Any], None],
) -> EpisodeResult:
    """Follow the plan; `tell` gets the agent's way a few steps at a time, and may raise `Stopped`."""
    way: list[list[float]] = []

    def moved(xy: Array) -> None:
        way.append([round(float(value), 3) for value in xy])
        if len(way) == STEPS_PER_EVENT:
            tell("moved", {"path": way.copy()})
            way.clear()

    stage = stages.take(preset)
    try:
        stage.place = (np.asarray(request.start[:2], float), np.asarray(request.goal[:2], float))
        stage.moved = moved
        follower = PlanFollower(
            Driver(request, preset, again, tell), preset, Following(replan=request.replan, seed=request.seed)
        )
        result = evaluate(follower, preset, tasks=[1], episodes=1, seed=request.seed, pool=stage)[0]
    except BaseException:
        stage.close()  # nobody knows what state it is in
        raise
    stages.give_back(stage)
    if way:
        tell("moved", {"path": way})
    return result


def verdict(result: EpisodeResult) -> dict[str, Any]:
    """How the drive ended, with a sentence for the page."""
    replans = sum(decision.planned for decision in result.decisions) - 1
    again = f", with {replans} new plan{'s' if replans > 1 else ''} on the way" if replans > 0 else ""
    if result.success:
        sentence = f"The agent reached the goal in {result.steps} steps{again}."
    else:
        sentence = f"The agent did not reach the goal: {REASONS[str(result.cause)]} ({result.steps} steps{again})."
    return {
        "success": result.success,
        "steps": result.steps,
        "cause": result.cause,
        "replans": max(replans, 0),
        "sentence": sentence,
    }
