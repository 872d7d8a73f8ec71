"""OGBench's `stitch` recipe: short walks, so that long ones have to be put together.

Start uniform over free cells, goal uniform over the cells exactly four steps away, ±1 m of noise on both. At every step
the agent heads for the centre of the neighbouring cell that is nearest to the goal's; it does not stop at the goal but
hovers there until the episode ends.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compdiffuser.data.recording import Recording, Steersman
from compdiffuser.data.walking import Walker
from compdiffuser.domains.mazes import NEIGHBOURS, Cell
from compdiffuser.presets import Preset
from compdiffuser.types import Array

BLOCKS = 4
"""Steps between the start cell and the goal cell."""


class Stitch(Walker):
    """Walks of four cells."""

    def __init__(self, preset: Preset, steersman: Steersman | None = None) -> None:
        super().__init__(preset, steersman)
        self._starts = self.maze.free_cells
        self._goals: dict[Cell, list[Cell]] = {}
        self._headings: dict[Cell, dict[Cell, tuple[float, float]]] = {}

    def parameters(self) -> dict[str, Any]:
        return {"blocks": BLOCKS, "policy": self.steersman.name, "steps": self.recording.steps}

    def record(self, episode: int, rng: np.random.Generator) -> Recording:
        return self.record_from(self._starts[rng.integers(len(self._starts))], rng)

    def record_from(self, start: Cell, rng: np.random.Generator) -> Recording:
        """An episode that starts in a given cell."""
        goals = self._goals_from(start)
        goal = goals[rng.integers(len(goals))]
        observation = self.begin(start, goal, rng)
        headings = self._headings_to(self.maze.cell(self.world.goal))
        return self.walk(observation, lambda step, qpos: self._direction(qpos, headings), rng)

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
