"""OGBench's `stitch` recipe: short walks, so that long ones have to be put together.

Start uniform over free cells, goal uniform over the cells exactly four steps away, ±1 m of noise on both. At every step
the agent heads for the centre of the neighbouring cell that is nearest to the goal's; it does not stop at the goal but
hovers there until the episode ends.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from compdiffuser.data.mazes import NEIGHBOURS, Cell, maze
from compdiffuser.data.recording import LowLevelPolicy, Recording, open_simulator
from compdiffuser.presets import Preset
from compdiffuser.types import Array

BLOCKS = 4
"""Steps between the start cell and the goal cell."""


class PointPolicy:
    """The point goes where it is told: the direction plus Gaussian noise, clipped to the action range."""

    name = "point"
    noise = 0.5

    def __call__(self, observation: Array, direction: Array, rng: np.random.Generator) -> Array:
        action = direction + rng.normal(0.0, self.noise, 2)
        return np.minimum(np.maximum(action, -1.0), 1.0)  # for two numbers, half the time of np.clip


class Stitch:
    """Walks of four cells with a low-level policy; the point's unless another is given."""

    def __init__(self, preset: Preset, policy: LowLevelPolicy | None = None) -> None:
        self.preset = preset
        self.policy: LowLevelPolicy = policy or PointPolicy()
        self.maze = maze(preset.maze)
        self._starts = self.maze.free_cells
        self._goals: dict[Cell, list[Cell]] = {}
        self._headings: dict[Cell, dict[Cell, tuple[float, float]]] = {}

    def parameters(self) -> dict[str, Any]:
        return {"blocks": BLOCKS, "policy": self.policy.name, "steps": self.preset.episode_steps}

    @cached_property
    def simulator(self) -> Any:
        """Opened where it is used: in the worker process, once."""
        return open_simulator(self.preset.environment, terminate_at_goal=False)

    def record(self, episode: int, rng: np.random.Generator) -> Recording:
        env = self.simulator
        start = self._starts[rng.integers(len(self._starts))]
        goals = self._goals_from(start)
        goal = goals[rng.integers(len(goals))]
        # OGBench draws from three generators; the seed of one alone does not fix an episode.
        seed = int(rng.integers(2**31))
        np.random.seed(seed)  # noqa: NPY002
        env.action_space.seed(seed)
        observation, _ = env.reset(seed=seed, options={"task_info": {"init_ij": start, "goal_ij": goal}})
        headings = self._headings_to(self.maze.cell(env.cur_goal_xy))
        # The maze's own step adds nothing but a test for success, which nobody asks for here: a tenth of the time.
        body: Any = super(type(env), env)

        recording = Recording()
        for step in range(self.preset.episode_steps):
            action = self.policy(observation, self._direction(env.data.qpos, headings), rng)
            recording.add(observation, action, env.data.qpos, env.data.qvel)
            if step + 1 < self.preset.episode_steps:
                observation = body.step(action)[0]
        return recording

    def _direction(self, qpos: Array, headings: dict[Cell, tuple[float, float]]) -> Array:
        """Unit vector [2] from the agent to the centre of the cell it should go to next."""
        x, y = float(qpos[0]), float(qpos[1])
        column = math.floor((x - self.maze.origin[0]) / self.maze.unit + 0.5)
        row = math.floor((y - self.maze.origin[1]) / self.maze.unit + 0.5)
        target_x, target_y = headings[row, column]
        dx, dy = target_x - x, target_y - y
        length = math.hypot(dx, dy) + 1e-6
        return np.array((dx / length, dy / length))

    def _goals_from(self, start: Cell) -> list[Cell]:
        if start not in self._goals:
            steps = self.maze.distances(start)
            self._goals[start] = [cell for cell in self.maze.free_cells if steps[cell] == BLOCKS]
        return self._goals[start]

    def _headings_to(self, goal: Cell) -> dict[Cell, tuple[float, float]]:
        """For every cell, the centre of the cell to go to next on the way to the goal."""
        if goal not in self._headings:
            steps = self.maze.distances(goal)
            self._headings[goal] = {}
            for i, j in self.maze.free_cells:
                near = [(i + di, j + dj) for di, dj in NEIGHBOURS if not self.maze.walls[i + di, j + dj]]
                following = min([(i, j), *near], key=lambda cell: steps[cell])
                x, y = self.maze.center(following)
                self._headings[goal][i, j] = (float(x), float(y))
        return self._headings[goal]
