"""A body in its maze, steered by commands: what the recipes that walk have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from compdiffuser.data.recording import SIDE_BY_SIDE, Episode, Question, Recording, Steersman
from compdiffuser.domains import Body
from compdiffuser.domains.mazes import NEIGHBOURS, Cell, Maze
from compdiffuser.presets import Preset, RecordingConfig
from compdiffuser.types import Array, Episodes, UserError

MARGIN = 25
"""Steps before a fall that are not learned from."""
Steering = Callable[[int, Array], tuple[Array, Array]]
"""From the number of a step and its observation [obs] to what a steersman is shown of it, and told."""


class PointSteersman:
    """The point goes where it is told: its action is the direction."""

    name = "point"
    actions = 2
    noise = 0.5
    limit = 1.0

    def act(self, observations: Array, commands: Array) -> Array:
        return commands


class Walker:
    """A body walked through its maze by its experts; a point needs none."""

    def __init__(self, preset: Preset, steersmen: Sequence[Steersman] = ()) -> None:
        needed = preset.domain.body.experts
        if len(steersmen) < len(needed):
            missing = " and ".join(needed)
            given = "none was given" if not steersmen else f"only {steersmen[0].name} was given"
            raise UserError(f"dataset '{preset.name}' is walked by the {missing} expert, and {given}")
        if not needed and len(steersmen) > 1:
            raise UserError(f"dataset '{preset.name}' is walked by a single policy, and {len(steersmen)} were given")
        self.preset = preset
        self.recording = recorded(preset)
        self.steersmen: Sequence[Steersman] = steersmen or (PointSteersman(),)
        self.side_by_side = SIDE_BY_SIDE if steersmen else 1
        self.maze = laid_out(preset)

    def parameters(self) -> dict[str, Any]:
        names = [steersman.name for steersman in self.steersmen]
        policies = {"policy": names[0]} if len(names) == 1 else {"policies": names}
        together = {"side_by_side": self.side_by_side} if self.side_by_side > 1 else {}
        return policies | {"steps": self.recording.steps} | together

    def walk(
        self, world: Any, observation: Array, steersman: Steersman, steering: Steering, rng: np.random.Generator
    ) -> Episode:
        """Walk an episode from its first observation [obs], with Gaussian noise on actions, and record it."""
        recording, steps = Recording(), self.recording.steps
        noise = rng.normal(0.0, steersman.noise, (steps, steersman.actions))
        high = np.full(steersman.actions, steersman.limit)
        low = -high
        for step in range(steps):
            shown, told = steering(step, observation)
            # Who walks alone need not wait for others.
            wanted = steersman.act(shown, told) if self.side_by_side == 1 else (yield Question(steersman, shown, told))
            action = np.minimum(np.maximum(wanted + noise[step], low), high)  # a third of the time of np.clip
            recording.add(observation, action, world.data)
            if step + 1 < steps:
                observation = world.advance(action)
        return recording


class Ways:
    """Shortest ways through a maze, from any place to any cell."""

    def __init__(self, maze: Maze) -> None:
        self.maze = maze
        self._next: dict[Cell, tuple[Array, dict[Cell, tuple[float, float]]]] = {}

    def following(self, place: Array, goal: Cell) -> tuple[float, float]:
        """Where to go next from a place [2]: the centre of a neighbouring cell or, in the goal's and in walls, its own.

        In plain numbers, which are faster for one place.
        """
        x, y = place.tolist()
        column = math.floor((x - self.maze.origin[0]) / self.maze.unit + 0.5)
        row = math.floor((y - self.maze.origin[1]) / self.maze.unit + 0.5)
        if goal not in self._next:
            self._next[goal] = (self.maze.distances(goal), {})
        steps, known = self._next[goal]
        if (row, column) not in known:  # a walk sees few of the cells
            known[row, column] = self._after(row, column, steps)
        return known[row, column]

    def _after(self, row: int, column: int, steps: Array) -> tuple[float, float]:
        """The centre of the cell after one, by the steps from each cell [rows, cols] to the goal."""
        walls = self.maze.walls
        rows, cols = walls.shape
        if not (0 < row < rows - 1 and 0 < column < cols - 1) or walls[row, column]:
            return self.maze.origin[0] + column * self.maze.unit, self.maze.origin[1] + row * self.maze.unit
        near = [(row + di, column + dj) for di, dj in NEIGHBOURS if not walls[row + di, column + dj]]
        x, y = self.maze.center(min([(row, column), *near], key=lambda cell: steps[cell]))
        return float(x), float(y)


def towards(place: Array, target: Sequence[float] | Array) -> Array:
    """The unit vector [2] from one place to another."""
    x, y = place.tolist()
    dx, dy = target[0] - x, target[1] - y
    length = math.hypot(dx, dy) + 1e-6
    return np.array((dx / length, dy / length))


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
    ends = episodes.starts + episodes.lengths
    fallen = np.append(np.flatnonzero(body.fallen(episodes.observations)), len(episodes.observations))
    first = fallen[np.searchsorted(fallen, episodes.starts)]
    lengths = np.where(first < ends, first - margin, ends) - episodes.starts
    kept = lengths > 0
    if not kept.any():
        raise UserError(f"in each of the {len(episodes)} episodes the body lies on its back from the start")
    return replace(episodes, starts=episodes.starts[kept], lengths=lengths[kept])
