"""Tasks: what a body is told, what the networks see of it, and what a step is worth under *any* command.

A command is two numbers relative to an *anchor*: a unit direction, or the way from the ball to its target. A
transition keeps the anchor's displacement and a few *ingredients*, so that its reward is known for commands that were
never given, and part of each batch gets a fresh one in hindsight. What simulators need runs on NumPy arrays; what
learners need runs on NumPy arrays and on tensors, so that there is one formula for each reward and view.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from compdiffuser.domains.body import BODIES, AntBall, Body, Humanoid
from compdiffuser.experts.config import ExpertConfig
from compdiffuser.types import Array

HEALTHY = (0.2, 1.0)
"""Heights of an ant's torso in metres between which OGBench goes on with an episode."""
NEAR, FAR = 1.0, 12.0
"""Metres: targets that are nearer than NEAR are seen in full; further than FAR, all distances look the same."""
ARRIVAL, ARRIVAL_WIDTH = 0.1, 0.7
"""What a ball at its target is worth each step, and how many metres away that is a third of it."""


def library(array: Any) -> Any:
    """The module that computes with such an array: numpy or torch."""
    return np if isinstance(array, np.ndarray | np.generic) else importlib.import_module("torch")


def in_frame(vectors: Any, angles: Any) -> Any:
    """Vectors [..., 2] as seen from frames that are turned by `angles` [...], or not; arrays or tensors."""
    if angles is None:
        return vectors
    xp = library(vectors)
    cosine, sine = xp.cos(angles), xp.sin(angles)
    x, y = vectors[..., 0], vectors[..., 1]
    return xp.stack([cosine * x + sine * y, cosine * y - sine * x], axis=-1)


def length(vectors: Any) -> Any:
    """[...] of vectors [..., 2]."""
    return (vectors * vectors).sum(-1) ** 0.5


class Direction:
    """Go in a direction: metres along it, up to a top speed; a fall on the back costs and ends the episode."""

    shown = 2
    """Numbers that the networks see of a command."""
    ingredients = 1

    body: Body

    def __init__(self, config: ExpertConfig) -> None:
        self.body = BODIES[config.body]
        self.top_speed = math.inf if config.top_speed is None else config.top_speed
        self.fall_cost = config.fall_cost

    # In simulators, on n bodies.

    def anchor(self, observations: Array) -> Array:
        """[n, 2] what the command is relative to."""
        return self.body.position(observations)

    def draw(self, observation: Array, rng: np.random.Generator) -> Array:
        """A command [2] for a body, in the world."""
        angle = rng.uniform(0, 2 * math.pi)
        return np.array([math.cos(angle), math.sin(angle)])

    def relative(self, commands: Array, observations: Array) -> Array:
        """Commands [n, 2] as transitions and networks have them."""
        return commands

    def measure(self, before: Array, after: Array) -> Array:
        """Ingredients [n, k] of the reward, from the observations before and after a step."""
        return self.body.fallen(after)[:, None]

    def ends(self, observations: Array) -> Array:
        """[n] bool: whether nothing more can happen."""
        height = self.body.height(observations)  # type: ignore[attr-defined]
        return self.body.fallen(observations) | (height < HEALTHY[0]) | (height > HEALTHY[1])

    # In learners, on batches of arrays or tensors.

    def fresh(self, uniform: Any) -> Any:
        """Commands [B, 2] drawn anew from uniform numbers [3, B]."""
        xp, angle = library(uniform), 2 * math.pi * uniform[0]
        return xp.stack([xp.cos(angle), xp.sin(angle)], axis=-1)

    def later(self, command: Any, displacement: Any) -> Any:
        """Commands [B, 2] after the anchor moved."""
        return command

    def show(self, command: Any, frame: Any) -> Any:
        """What networks see [B, shown] of commands [B, 2] from frames [B] radians."""
        return in_frame(command, frame)

    def reward(self, command: Any, displacement: Any, ingredients: Any, actions: Any) -> Any:
        """[B] of a step under a command."""
        along = (displacement * command).sum(-1)
        return along.clip(max=self.top_speed) - self.fall_cost * ingredients[..., 0]


class Standing(Direction):
    """Run in a direction and stay on the feet, or get up: OGBench's reward and a dense share for getting up."""

    ingredients = 2
    body: Humanoid

    def measure(self, before: Array, after: Array) -> Array:
        """How well it stands, between 0 and 1, and how far it got up."""
        head, upright = self.body.head(after), self.body.vertical(after)[:, 2]
        low = np.maximum(1.4 - head, 0) / 0.35 * math.sqrt(-2 * math.log(0.1))
        tilt = np.maximum(0.9 - upright, 0) / 1.9
        stands = np.exp(-0.5 * low**2) * np.maximum(1 - tilt, 0)
        return np.stack([stands, np.clip(head, 0, 1.4) / 1.4 + 0.5 * upright], axis=-1)

    def ends(self, observations: Array) -> Array:
        return np.zeros(len(observations), bool)

    def reward(self, command: Any, displacement: Any, ingredients: Any, actions: Any) -> Any:
        along = (displacement * command).sum(-1).clip(-self.top_speed, self.top_speed)
        running = ingredients[..., 0] * (1 + 100 * along)
        return 0.1 * running + 0.1 * ingredients[..., 1] - 0.002 * (actions * actions).mean(-1)


class Ball(Direction):
    """Bring the ball to a target: OGBench's change of distances, and a little for every step that it is there."""

    shown = 3
    ingredients = 2
    body: AntBall

    def anchor(self, observations: Array) -> Array:
        return self.body.ball(observations)

    def draw(self, observation: Array, rng: np.random.Generator) -> Array:
        """A target: within 12 m of the origin along each axis, or, half of the time, within 5 m of the ball."""
        if rng.random() < 0.5:
            return rng.uniform(-12, 12, 2)
        return self.anchor(observation) + rng.uniform(0, 5) * super().draw(observation, rng)

    def relative(self, commands: Array, observations: Array) -> Array:
        return commands - self.anchor(observations)

    def measure(self, before: Array, after: Array) -> Array:
        """How many metres nearer the ant came to the ball, and whether it fell."""
        apart = [length(self.anchor(each) - self.body.position(each)) for each in (before, after)]
        return np.stack([apart[0] - apart[1], self.body.fallen(after)], axis=-1)

    def fresh(self, uniform: Any) -> Any:
        """As `draw`, around the ball."""
        xp = library(uniform)
        square = 24 * uniform[:2].T - 12
        near = (5 * uniform[1])[:, None] * super().fresh(uniform)
        return xp.where(uniform[2, :, None] < 0.5, square, near)

    def later(self, command: Any, displacement: Any) -> Any:
        return command - displacement

    def show(self, command: Any, frame: Any) -> Any:
        """The way to the target, no longer than NEAR, and its length: both stay small, and exact close by."""
        distance = length(command)[..., None]
        way = in_frame(command, frame) / distance.clip(min=NEAR)
        return library(command).concatenate([way, distance.clip(max=FAR) / (FAR / 2)], axis=-1)

    def reward(self, command: Any, displacement: Any, ingredients: Any, actions: Any) -> Any:
        left = length(command - displacement)
        gained = 2.5 * (length(command) - left) + ingredients[..., 0]
        arrived = library(left).exp(-((left / ARRIVAL_WIDTH) ** 2))
        return gained + ARRIVAL * arrived - self.fall_cost * ingredients[..., 1]


TASKS: dict[str, Callable[[ExpertConfig], Direction]] = {"direction": Direction, "standing": Standing, "ball": Ball}


def task_of(config: ExpertConfig) -> Direction:
    return TASKS[config.task](config)


def view(config: ExpertConfig, observations: Array, headings: Array | None) -> tuple[Array, Array | None]:
    """What an expert sees of its body [..., n], and the angle [...] of its frame, None where that is the world's."""
    body = BODIES[config.body]
    if config.view == "world":
        return body.itself(observations), None
    facing = body.heading(observations) if headings is None else headings
    return body.egocentric(observations, facing), facing
