"""The recipe of Ghugare et al. for gymnasium-robotics' point mazes: every episode stays inside one region of the maze.

Regions take turns. A waypoint controller drives the point from one cell of the region to another through the region's
own cells, with Gaussian noise on the action; the episode ends where the environment says that the goal is reached. Only
the cells that regions share allow a path from one to the next, which is what a planner has to find out.

The original finds its paths in the whole maze, so that some of the large maze's last region lead through the region
next to it, and starts no episode where those two meet. Here paths stay inside, so episodes start there too: otherwise
recordings would show the way out of that region and none the way in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compdiffuser.data.recording import Episode, Recording, Steersman
from compdiffuser.data.walking import laid_out, recorded
from compdiffuser.domains.mazes import NEIGHBOURS, Cell, Maze
from compdiffuser.domains.simulators import BlewUp
from compdiffuser.presets import Preset
from compdiffuser.types import Array

NOISE = 0.5
PROPORTIONAL, DERIVATIVE = 10.0, -1.0
THRESHOLD = 0.1
"""Metres from a waypoint at which the next one becomes the target."""
ATTEMPTS = 100
"""Draws of one episode before giving up; an episode that leaves its region or never arrives is drawn again."""


def _cells(text: str) -> tuple[Cell, ...]:
    return tuple((int(pair.split(",")[0]), int(pair.split(",")[1])) for pair in text.split())


REGIONS: dict[str, tuple[tuple[Cell, ...], ...]] = {
    "robotics-umaze": (
        _cells("1,1 1,2 1,3"),
        _cells("3,1 3,2 3,3"),
        _cells("1,3 2,3"),
        _cells("3,3 2,3"),
    ),
    "robotics-medium": (
        _cells("6,5 6,6 5,6 4,6"),
        _cells("4,1 4,2 5,1 6,1 6,2 6,3 5,3"),
        _cells("1,5 1,6 2,4 2,5 2,6"),
        _cells("1,1 1,2 2,1 2,2"),
        _cells("5,3 5,4 4,2 4,4 4,5 4,6 3,2 3,3 3,4 2,2 2,4"),
    ),
    "robotics-large": (
        _cells("1,1 1,2 1,3 1,4 2,1 2,4 3,1 3,2 3,3 3,4 4,1 5,1 5,2 6,2 7,1 7,2"),
        _cells("3,4 3,5 1,6 2,6 3,6 4,6 5,6 6,6 7,6 7,5 7,4 6,4 5,4"),
        _cells("1,6 1,7 1,8 1,9 1,10 2,10 3,10 3,9 3,8 2,8 4,10 5,10 5,9 5,8 5,7 5,6 6,8 7,8 7,9 7,10"),
    ),
}


class Regions:
    """Drives within one region per episode; episode e belongs to region e modulo their number."""

    side_by_side = 1

    def __init__(self, preset: Preset, steersmen: Sequence[Steersman] = ()) -> None:
        self.preset = preset
        self.maze, self.steps = laid_out(preset), recorded(preset).steps
        self.regions = REGIONS[self.maze.name]

    def parameters(self) -> dict[str, Any]:
        return {"regions": len(self.regions), "noise": NOISE, "steps": self.steps}

    def region(self, episode: int) -> tuple[Cell, ...]:
        """The cells to which an episode is confined."""
        return self.regions[episode % len(self.regions)]

    def record(self, world: Any, episode: int, rng: np.random.Generator) -> Episode:
        region = self.region(episode)
        for _ in range(ATTEMPTS):
            start = region[rng.integers(len(region))]
            others = [cell for cell in region if cell != start]
            goal = others[rng.integers(len(others))]
            recording = self._drive(world, start, goal, frozenset(region), rng)
            if recording is not None:
                return recording
        raise RuntimeError(f"no episode of {self.preset.name} stayed inside region {region} in {ATTEMPTS} attempts")
        yield  # asks nobody: it has a controller of its own

    def _drive(
        self, world: Any, start: Cell, goal: Cell, region: frozenset[Cell], rng: np.random.Generator
    ) -> Recording | None:
        """One drive from cell to cell, or nothing where it left the region or did not arrive in time."""
        body = self.preset.domain.body
        observation, _ = world.between(start, goal, int(rng.integers(2**31)))
        waypoints = self._waypoints(start, goal, region, world.goal, rng)
        recording, arrived = Recording(), False
        while len(recording) < self.steps:
            if len(waypoints) > 1 and np.hypot(*(waypoints[0] - body.position(observation))) <= THRESHOLD:
                waypoints.pop(0)
            action = self._control(observation, waypoints[0], rng)
            recording.add(observation, action, world.data)
            if arrived:
                return recording if self._inside(recording, region) else None
            observation, arrived, unstable = world.step(action)
            if unstable:
                raise BlewUp
        return None

    def _control(self, observation: Array, waypoint: Array, rng: np.random.Generator) -> Array:
        """Force [2] towards the waypoint, damped by the velocity, with noise; clipped before and after the noise."""
        body = self.preset.domain.body
        force = PROPORTIONAL * (waypoint - body.position(observation)) + DERIVATIVE * body.itself(observation)
        return np.clip(np.clip(force, -1.0, 1.0) + rng.normal(0.0, NOISE, 2), -1.0, 1.0)

    def _waypoints(self, start: Cell, goal: Cell, region: frozenset[Cell], target: Array, rng: Any) -> list[Array]:
        """Points [2] to pass: centres of the cells on the way, all but the first moved a little, then the target."""
        middle = [self.maze.center(cell) for cell in path(self.maze, start, goal, region)[1:-1]]
        moved = [center - rng.uniform(size=2) * 0.2 for center in middle[1:]]
        return [*middle[:1], *moved, target]

    def _inside(self, recording: Recording, region: frozenset[Cell]) -> bool:
        visited = self.maze.cells(self.preset.domain.body.position(recording.arrays()["observations"]))
        return all((int(i), int(j)) in region for i, j in np.unique(visited, axis=0))


def path(maze: Maze, start: Cell, goal: Cell, within: frozenset[Cell]) -> list[Cell]:
    """A shortest way from start to goal through the given cells, both ends included."""
    steps = maze.distances(goal, within)
    cells = [start]
    while cells[-1] != goal:
        i, j = cells[-1]
        near = [(i + di, j + dj) for di, dj in NEIGHBOURS]
        cells.append(next(cell for cell in near if steps[cell] == steps[i, j] - 1))
    return cells
