"""A body in its maze, steered by directions: what the recipes that walk have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from compdiffuser.data.mazes import Cell, maze
from compdiffuser.data.recording import LowLevelPolicy, Recording, open_simulator
from compdiffuser.presets import Preset
from compdiffuser.types import Array, Episodes, UserError

ORIENTATION = slice(3, 7)
"""Where observations of a body with legs hold its orientation: after its position."""
MARGIN = 25
"""Steps before a fall that are not learned from."""
Steering = Callable[[int, Array], Array]
"""From the number of a step and the simulator's qpos to the unit vector [2] in which to go."""


class PointPolicy:
    """The point goes where it is told: the direction plus Gaussian noise, clipped to the action range."""

    name = "point"
    noise = 0.5

    def __call__(self, observation: Array, direction: Array, rng: np.random.Generator) -> Array:
        action = direction + rng.normal(0.0, self.noise, 2)
        return np.minimum(np.maximum(action, -1.0), 1.0)  # for two numbers, half the time of np.clip


class Walker:
    """A body walked through its maze by a low-level policy; the point's unless another is given."""

    def __init__(self, preset: Preset, policy: LowLevelPolicy | None = None) -> None:
        if preset.expert and policy is None:
            raise UserError(f"dataset '{preset.name}' is walked by the {preset.expert} expert, and none was given")
        self.preset = preset
        self.policy: LowLevelPolicy = policy or PointPolicy()
        self.maze = maze(preset.maze)

    @cached_property
    def simulator(self) -> Any:
        """Opened where it is used: in the worker process, once."""
        return open_simulator(self.preset.environment, terminate_at_goal=False)

    def begin(self, start: Cell, goal: Cell, rng: np.random.Generator) -> Array:
        """Reset the simulator; the first observation [obs]."""
        env = self.simulator
        # OGBench draws from three generators; the seed of one alone does not fix an episode.
        seed = int(rng.integers(2**31))
        np.random.seed(seed)  # noqa: NPY002
        env.action_space.seed(seed)
        observation, _ = env.reset(seed=seed, options={"task_info": {"init_ij": start, "goal_ij": goal}})
        return observation

    def walk(self, observation: Array, steering: Steering, rng: np.random.Generator) -> Recording:
        """Walk an episode from its first observation [obs] and record it."""
        env = self.simulator
        # The maze's own step adds nothing but a test for success, which nobody asks for here: a tenth of the time.
        body: Any = super(type(env), env)
        recording = Recording()
        for step in range(self.preset.episode_steps):
            action = self.policy(observation, steering(step, env.data.qpos), rng)
            recording.add(observation, action, env.data.qpos, env.data.qvel)
            if step + 1 < self.preset.episode_steps:
                observation = body.step(action)[0]
        return recording


def uprightness(quaternions: Array) -> Array:
    """How upright bodies with orientations [..., 4] (w, x, y, z) are: 1 on their feet, −1 on their backs."""
    x, y = quaternions[..., 1], quaternions[..., 2]
    return np.asarray(1 - 2 * (x * x + y * y))


def standing(episodes: Episodes, margin: int = MARGIN) -> Episodes:
    """Episodes up to `margin` steps before their body is first on its back; those with nothing left are left out.

    An overturned body stays where it is, and what it did just before is nothing to imitate.
    """
    rows = len(episodes.observations)
    fallen = np.append(np.flatnonzero(uprightness(episodes.observations[:, ORIENTATION]) <= 0), rows + margin)
    until = fallen[np.searchsorted(fallen, episodes.starts)] - margin
    lengths = np.minimum(episodes.lengths, until - episodes.starts)
    kept = lengths > 0
    if not kept.any():
        raise UserError(f"in each of the {len(episodes)} episodes the body lies on its back from the start")
    return replace(episodes, starts=episodes.starts[kept], lengths=lengths[kept])
