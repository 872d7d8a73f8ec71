"""OGBench's `stitch` recipe for an ant with a ball: it walks, or it dribbles, and never both in one episode.

A coin decides. *Walking*: ant, ball and goal are in three different cells, and the ant walks to the goal while the ball
lies where it lies. *Dribbling*: the ball starts in the ant's cell and is taken to the goal. Start, ball and goal get ±1
m of noise. Between walls, the ant's or the ball's next target is the centre of the next cell on its way. Where there
are none inside, the ant heads straight for the goal, and the ball's target is the goal or, if that is further than 10
m, the point 10 m ahead: the ball's expert was not trained for more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compdiffuser.data.recording import Episode, Steersman
from compdiffuser.data.walking import Walker, Ways, towards
from compdiffuser.domains.body import AntBall
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError

REACH = 10.0
"""Metres from the ball to its target, at most."""


class Soccer(Walker):
    """Walks without the ball, by the ant's expert, and dribbles, by the ball's."""

    def __init__(self, preset: Preset, steersmen: Sequence[Steersman] = ()) -> None:
        super().__init__(preset, steersmen)
        body = preset.domain.body
        if not isinstance(body, AntBall):
            raise UserError(f"dataset '{preset.name}' is of the body '{body.name}', which has no ball")
        self.body, self.ways = body, Ways(self.maze)
        self.ant, self.ball = self.steersmen
        self.open = not self.maze.walls[1:-1, 1:-1].any()
        """Whether there are no walls but those around."""

    def parameters(self) -> dict[str, Any]:
        return {"reach": REACH, **super().parameters()}

    def record(self, world: Any, episode: int, rng: np.random.Generator) -> Episode:
        dribbles, cells = bool(rng.integers(2)), self.maze.free_cells
        start, elsewhere, goal = (cells[number] for number in rng.choice(len(cells), 3, replace=False))
        ball = start if dribbles else elsewhere
        observation, _ = world.between(start, goal, int(rng.integers(2**31)), ball)
        target = np.array(world.goal)
        steersman, steer = (self.ball, self._dribble) if dribbles else (self.ant, self._walk)
        return self.walk(world, observation, steersman, lambda step, seen: steer(seen, target), rng)

    def _walk(self, observation: Array, goal: Array) -> tuple[Array, Array]:
        """What the ant's expert sees, and the direction [2] in which to go."""
        place = self.body.position(observation)
        return self.body.ant(observation), towards(place, self._next(place, goal))

    def _dribble(self, observation: Array, goal: Array) -> tuple[Array, Array]:
        """What the ball's expert sees, and the ball's target [2]."""
        return observation, self._next(self.body.ball(observation), goal, REACH)

    def _next(self, place: Array, goal: Array, reach: float = math.inf) -> Array:
        """Where to go next [2], from a place to the goal; without walls, `reach` metres ahead at most."""
        if not self.open:
            return np.array(self.ways.following(place, self.maze.cell(goal)))
        away = float(np.hypot(*(goal - place)))
        return goal if away <= reach else place + reach * (goal - place) / away
