"""Keep what a policy does in an evaluation, and play an episode again in this process, where it can be drawn.

What a world does depends only on its problem and the actions, so actions are all that is kept, and the worker
processes need not know that they are watched.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from compdiffuser.domains import Domain
from compdiffuser.evaluation.problems import Problem
from compdiffuser.types import Array, Policy


class Recorder:
    """A policy that does what another one does and remembers it."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def reset(self, observations: Array, goals: Array) -> None:
        self.policy.reset(observations, goals)
        self.starts, self.goals = observations.copy(), goals.copy()  # [E, obs]
        self._actions: list[Array] = []
        self._plans: list[list[tuple[int, Any]]] = [[] for _ in observations]
        self._note_plans()

    def act(self, observations: Array, active: Array) -> Array:
        actions = np.array(self.policy.act(observations, active))
        self._note_plans()
        self._actions.append(actions)
        return actions

    @property
    def decisions(self) -> Any:
        """What the policy decided, where it tells."""
        return getattr(self.policy, "decisions", None)

    def actions(self, episode: int, steps: int) -> Array:
        """[steps, act], what was done in one of the E episodes."""
        return np.array([actions[episode] for actions in self._actions[:steps]])

    def plans(self, episode: int) -> list[tuple[int, Any]]:
        """Each plan of an episode with the step from which on it was followed; none where the policy makes no plans."""
        return self._plans[episode]

    def _note_plans(self) -> None:
        for mine, plan in zip(self._plans, getattr(self.policy, "plans", ()), strict=False):
            if not mine or mine[-1][1] is not plan:
                mine.append((len(self._actions), plan))


class Replayed(NamedTuple):
    """An episode of n steps, played once more."""

    observations: Array
    """[n + 1, obs]"""
    model: Any = None
    """MuJoCo's model, where the world has a scene."""
    qpos: Array | None = None
    """[n + 1, nq], MuJoCo's positions, where the world has a scene."""


def replay(domain: Domain, problem: Problem, actions: Array) -> Replayed:
    """An episode once more, from its problem and its actions [n, act]."""
    with closing(domain.open()) as world:
        scene = getattr(world, "scene", None)
        # Copies: a world may give its own arrays, and write into them with the next step.
        observations = [np.array(problem.begin(world)[0])]
        poses = [] if scene is None else [np.array(scene()[1])]
        for action in actions:
            observations.append(np.array(world.step(action).observation))
            poses += [] if scene is None else [np.array(scene()[1])]
        if scene is None:
            return Replayed(np.array(observations))
        return Replayed(np.array(observations), scene()[0], np.array(poses))


def has_scene(domain: Domain) -> bool:
    """Whether MuJoCo can draw a domain's world."""
    with closing(domain.open()) as world:
        return hasattr(world, "scene")
