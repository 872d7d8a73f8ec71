"""OGBench's `stitch` recipe: short walks, so that long ones have to be put together.

Start uniform over free cells, goal uniform over the cells exactly four steps away, ±1 m of noise on both. At every step
the agent heads for the centre of the neighbouring cell that is nearest to the goal's; it does not stop at the goal but
hovers there until the episode ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compdiffuser.data.recording import Episode, Steersman
from compdiffuser.data.walking import Walker, Ways, towards
from compdiffuser.domains.mazes import Cell
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError

BLOCKS = 4
"""Steps between the start cell and the goal cell."""


class Stitch(Walker):
    """Walks of four cells."""

    def __init__(self, preset: Preset, steersmen: Sequence[Steersman] = ()) -> None:
        super().__init__(preset, steersmen)
        self.ways = Ways(self.maze)
        self._starts = self.maze.free_cells
        self._goals: dict[Cell, list[Cell]] = {}

    def parameters(self) -> dict[str, Any]:
        return {"blocks": BLOCKS, **super().parameters()}

    def record(self, world: Any, episode: int, rng: np.random.Generator) -> Episode:
        return self.record_from(self._starts[rng.integers(len(self._starts))], world, rng)

    def record_from(self, start: Cell, world: Any, rng: np.random.Generator) -> Episode:
        """An episode that starts in a given cell."""
        goals, (steersman,) = self._goals_from(start), self.steersmen
        observation, _ = world.between(start, goals[rng.integers(len(goals))], int(rng.integers(2**31)))
        goal, body = self.maze.cell(world.goal), self.preset.domain.body

        def steer(step: int, observation: Array) -> tuple[Array, Array]:
            place = body.position(observation)
            return observation, towards(place, self.ways.following(place, goal))

        return self.walk(world, observation, steersman, steer, rng)

    def _goals_from(self, start: Cell) -> list[Cell]:
        if start not in self._goals:
            steps = self.maze.distances(start)
            self._goals[start] = [(int(i), int(j)) for i, j in np.argwhere(steps == BLOCKS)]
        if not self._goals[start]:
            raise UserError(f"no way of {BLOCKS} cells leads from cell {start} of maze '{self.maze.name}'")
        return self._goals[start]
