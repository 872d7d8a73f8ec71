"""OGBench's `explore` recipe: random walks, so that a way has to be found in data that never took it.

Start uniform over free cells; the direction is drawn uniformly every ten steps; the noise on actions is large.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compdiffuser.data.recording import Episode
from compdiffuser.data.walking import Walker

REDRAW = 10
"""Steps in one direction."""


class Explore(Walker):
    """Aimless walks."""

    def parameters(self) -> dict[str, Any]:
        return {"redraw": REDRAW, **super().parameters()}

    def record(self, world: Any, episode: int, rng: np.random.Generator) -> Episode:
        cells, (steersman,) = self.maze.free_cells, self.steersmen
        start, goal = (cells[number] for number in rng.integers(len(cells), size=2))
        first, _ = world.between(start, goal, int(rng.integers(2**31)))
        angles = rng.uniform(0, 2 * math.pi, math.ceil(self.recording.steps / REDRAW))
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return self.walk(world, first, steersman, lambda step, seen: (seen, directions[step // REDRAW]), rng)
