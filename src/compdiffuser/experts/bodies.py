"""Bodies in their simulators, following commanded directions: E of them side by side on threads.

MuJoCo releases Python's lock while it computes, so threads use all cores, and a killed run leaves no process behind.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from compdiffuser.data.recording import blew_up, open_simulator
from compdiffuser.data.walking import ORIENTATION, uprightness
from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.replay import Sizes
from compdiffuser.types import Array


class Body:
    """One simulator and the direction that is commanded in it."""

    def __init__(self, config: ExpertConfig, seed: np.random.SeedSequence) -> None:
        self.config = config
        self.rng = np.random.default_rng(seed)
        if config.render_mode:  # such a simulator draws as it is made; without a display that takes EGL
            os.environ.setdefault("MUJOCO_GL", "egl")
        self.simulator: Any = open_simulator(config.environment, render_mode=config.render_mode)
        self.simulator.reset(seed=int(self.rng.integers(2**31)))
        self.low, self.high = self.simulator.action_space.low, self.simulator.action_space.high
        self.reset()
        self.sizes = Sizes(len(self.observation), len(self.low), 2 if config.directed else 0)

    def reset(self, direction: Array | None = None) -> None:
        """Start an episode, with a direction [2] that stays, or one that is drawn and redrawn."""
        self.observation, _ = self.simulator.reset()
        self.step_number, self.fixed = 0, direction is not None
        self.direction = self._draw() if direction is None else direction

    @property
    def state(self) -> Array:
        """[obs + 2] what a policy sees: the observation, then the direction; without one where none is commanded."""
        return np.concatenate([self.observation, self.direction]) if self.config.directed else self.observation

    @property
    def position(self) -> Array:
        return self.simulator.data.qpos[:2].copy()

    @property
    def upright(self) -> bool:
        return bool(uprightness(self.simulator.data.qpos[ORIENTATION]) > 0)

    def step(self, action: Array) -> tuple[Array, bool]:
        """Act; the transition as a row of `Replay`, and whether the episode ended."""
        before, observation, direction = self.position, self.observation, self.direction
        scaled = self.low + 0.5 * (action + 1) * (self.high - self.low)
        self.observation, reward, terminated, _, _ = self.simulator.step(scaled)
        self.step_number += 1
        moved = self.position - before
        unstable = blew_up(self.simulator.data, self.observation)
        if unstable:  # nothing can be learned from it: as if the body had stayed, and the episode is over
            self.observation, reward, moved = observation, 0.0, np.zeros(2)
        base, push = self._reward(float(reward), moved)
        fallen = self.config.ends_fallen and not self.upright
        base -= self.config.fall_cost * fallen
        row = [observation, self.observation, action, *((direction, push) if self.config.directed else ())]
        if not self.fixed and self.step_number % self.config.redraw == 0:
            self.direction = self._draw()
        over = bool(terminated) or unstable or fallen
        ended = over or self.step_number >= self.config.episode_steps
        return np.concatenate([*row, (base, 1.0 - over)], dtype=np.float32), ended

    def _reward(self, own: float, moved: Array) -> tuple[float, Array]:
        """Base and push: the reward is base + push · direction."""
        if self.config.reward == "own":
            return own, np.zeros(2)
        if self.config.reward == "direction":
            return 0.0, moved
        standing = self._standing()
        return standing, 100 * standing * moved

    def _standing(self) -> float:
        """How well a humanoid stands, between 0 and 1."""
        from ogbench.online_locomotion.humanoid import tolerance

        data = self.simulator.data
        height = tolerance(data.xpos[2, 2], bounds=(1.4, math.inf), margin=1.4 / 4)
        upright = tolerance(
            data.xmat[1, 8], bounds=(0.9, math.inf), margin=1.9, sigmoid="linear", value_at_margin=0
        )  # fmt: skip
        return float(height * upright)

    def _draw(self) -> Array:
        angle = self.rng.uniform(0, 2 * math.pi)
        return np.array([math.cos(angle), math.sin(angle)])


class Bodies:
    """E bodies stepped together."""

    def __init__(self, config: ExpertConfig, seed: int, count: int | None = None) -> None:
        seeds = np.random.SeedSequence(seed).spawn(count or config.environments)
        self.all = [Body(config, each) for each in seeds]
        self.sizes = self.all[0].sizes
        self.threads = min(len(self.all), os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self.threads)

    @property
    def states(self) -> Array:
        """[E, obs + 2] float32."""
        return np.stack([body.state for body in self.all]).astype(np.float32)

    def step(self, actions: Array) -> tuple[Array, Array]:
        """Rows [E, width] of the transitions, and which episodes ended [E]; those start anew with `restart`."""
        shares = np.array_split(np.arange(len(self.all)), self.threads)
        stepped = [pair for share in self._pool.map(lambda mine: self._some(mine, actions), shares) for pair in share]
        rows, ended = zip(*stepped, strict=True)
        return np.stack(rows), np.array(ended)

    def restart(self, ended: Array) -> None:
        """Reset the bodies that ended [E], one after the other: some simulators draw from NumPy's global generator."""
        for number in np.flatnonzero(ended):
            self.all[number].reset()

    def close(self) -> None:
        self._pool.shutdown()
        for body in self.all:
            body.simulator.close()

    def _some(self, numbers: Array, actions: Array) -> list[tuple[Array, bool]]:
        return [self.all[number].step(actions[number]) for number in numbers]
