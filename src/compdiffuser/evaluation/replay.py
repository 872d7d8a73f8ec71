"""Keep what a policy does in an evaluation, and play an episode again in this process, where it can be drawn.

What an environment does depends only on its task, its seed and the actions, so actions are all that is kept, and the
worker processes need not know that they are watched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compdiffuser.evaluation.rollout import EpisodeResult, episode_seed
from compdiffuser.evaluation.tasks import make_environment
from compdiffuser.presets import Preset
from compdiffuser.types import Array, Policy


class Recorder:
    """A policy that does what another one does and remembers it."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def reset(self, observations: Array, goals: Array) -> None:
        self.policy.reset(observations, goals)
        self.starts, self.goals = observations[:, :2].copy(), goals[:, :2].copy()
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


def replay(preset: Preset, result: EpisodeResult, actions: Array) -> tuple[Any, Array]:
    """An episode once more, from its task, seed and actions [n, act]: MuJoCo's model, and qpos [n + 1, nq]."""
    environment: Any = make_environment(preset)
    environment.reset(result.task, episode_seed(result.seed, result.task, result.episode))
    simulator = environment.env
    positions = [simulator.data.qpos.copy()]
    for action in actions:
        environment.step(action)
        positions.append(simulator.data.qpos.copy())
    return simulator.model, np.array(positions)
