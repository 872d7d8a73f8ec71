"""A body in its maze, steered by directions: what the recipes that walk have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from compdiffuser.data.recording import Recording, Steersman
from compdiffuser.domains import Body
from compdiffuser.domains.mazes import Cell, Maze
from compdiffuser.presets import Preset, RecordingConfig
from compdiffuser.types import Array, Episodes, UserError

MARGIN = 25
"""Steps before a fall that are not learned from."""
Steering = Callable[[int, Array], Array]
"""From the number of a step and the simulator's qpos to the unit vector [2] in which to go."""


class PointSteersman:
    """The point goes where it is told: the direction plus Gaussian noise, clipped to the action range."""

    name = "point"
    noise = 0.5

    def __call__(self, observation: Array, direction: Array, rng: np.random.Generator) -> Array:
        action = direction + rng.normal(0.0, self.noise, 2)
        return np.minimum(np.maximum(action, -1.0), 1.0)  # for two numbers, half the time of np.clip


class Walker:
    """A body walked through its maze by a steersman; the point's unless another is given."""

    def __init__(self, preset: Preset, steersman: Steersman | None = None) -> None:
        expert = preset.domain.body.expert
        if expert is not None and steersman is None:
            raise UserError(f"dataset '{preset.name}' is walked by the {expert} expert, and none was given")
        self.preset = preset
        self.recording = recorded(preset)
        self.steersman: Steersman = steersman or PointSteersman()
        self.maze = laid_out(preset)

    @cached_property
    def world(self) -> Any:
        """Opened where it is used: in the worker process, once."""
        return self.preset.domain.open()

    def begin(self, start: Cell, goal: Cell, rng: np.random.Generator) -> Array:
        """Reset the simulator; the first observation [obs]."""
        return self.world.between(start, goal, int(rng.integers(2**31)))[0]

    def walk(self, observation: Array, steering: Steering, rng: np.random.Generator) -> Recording:
        """Walk an episode from its first observation [obs] and record it."""
        world, recording, steps = self.world, Recording(), self.recording.steps
        for step in range(steps):
            action = self.steersman(observation, steering(step, world.data.qpos), rng)
            recording.add(observation, action, world.data)
            if step + 1 < steps:
                observation = world.advance(action)
        return recording


def recorded(preset: Preset) -> RecordingConfig:
    """How a dataset is recorded. Raises UserError where it was recorded elsewhere."""
    if preset.recording is None:
        raise UserError(f"dataset '{preset.name}' has no recipe, so it cannot be recorded")
    return preset.recording


def laid_out(preset: Preset) -> Maze:
    """The maze of a dataset. Raises UserError where it has none."""
    if preset.maze is None:
        raise UserError(f"dataset '{preset.name}' has no maze, and its recipe needs one")
    return preset.maze


def standing(episodes: Episodes, body: Body, margin: int = MARGIN) -> Episodes:
    """Episodes up to `margin` steps before their body first falls for good; those with nothing left are left out.

    An overturned body stays where it is, and what it did just before is nothing to imitate. One that cannot fall, or
    gets up again, keeps all its episodes.
    """
    if not body.has_legs or body.gets_up:
        return episodes
    rows = len(episodes.observations)
    fallen = np.append(np.flatnonzero(body.fallen(episodes.observations)), rows + margin)
    until = fallen[np.searchsorted(fallen, episodes.starts)] - margin
    lengths = np.minimum(episodes.lengths, until - episodes.starts)
    kept = lengths > 0
    if not kept.any():
        raise UserError(f"in each of the {len(episodes)} episodes the body lies on its back from the start")
    return replace(episodes, starts=episodes.starts[kept], lengths=lengths[kept])
