"""What a body could do at best: perfect and recorded plans for its controller, and the experts that made the data.

None of these figures is a planner's. Perfect plans come from breadth-first search, recorded ones from held-out
episodes; both say how much of a planner's failure is its controller's. The experts of ants and of soccer act
themselves, on paths from breadth-first search: no imitation of their data does better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from compdiffuser.data.regions import path
from compdiffuser.data.walking import Ways, towards
from compdiffuser.domains.body import AntBall
from compdiffuser.domains.domain import Stepped, World
from compdiffuser.domains.mazes import Cell, Maze
from compdiffuser.experts.policy import load_expert
from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.plan import Plan
from compdiffuser.presets import Preset
from compdiffuser.types import Array, Episodes, UserError

ROUNDING, SPACING = 1.5, 0.1
"""Metres over which the corners of perfect plans are rounded on either side, and between their states."""
NEAR, FAR = 3.0, 5.0
"""Metres between ant and ball within which dribbling begins, and beyond which the ant walks to the ball again.

Walking again after dribbling is to be avoided: the walking expert then often stands still for good. With 2 m and 3 m
the arena falls to 78% of 60 episodes; with these distances an ant hardly ever walks again."""
AHEAD = 10.0
"""Metres that the ball's target may be ahead of it where there are no walls, as in the data."""
ARRIVED = 1.0
"""Metres from its last recorded place within which a walking ant has followed its episode."""


class Perfect:
    """Plans by breadth-first search through cell centres, with rounded corners."""

    def __init__(self, preset: Preset) -> None:
        assert preset.maze is not None
        self.maze, self.space = preset.maze, preset.space

    def plan_batch(self, starts: Array, goals: Array, n_chunks: Any = "auto", **options: Any) -> list[Plan]:
        return [self.plan(start, goal) for start, goal in zip(starts, goals, strict=True)]

    def plan(self, start: Array, goal: Array) -> Plan:
        maze = self.maze
        cells = path(maze, maze.cell(start), maze.cell(goal), frozenset(maze.free_cells))
        corners = [np.asarray(start, float), *(maze.center(cell) for cell in cells[1:]), np.asarray(goal, float)]
        lengths = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
        along = np.arange(0, lengths[-1], SPACING)
        line = np.stack([np.interp(along, lengths, axis) for axis in np.transpose(corners)], axis=1)
        reach = round(ROUNDING / SPACING)
        padded = np.pad(line, ((reach, reach), (0, 0)), "edge")
        kernel = np.ones(2 * reach + 1) / (2 * reach + 1)
        states = np.stack([np.convolve(axis, kernel, "valid") for axis in padded.T], axis=1)
        return followed(states, self.space, maze)


class Recorded:
    """Plans that are recorded episodes, one for each problem in its order; there is none to replan with."""

    def __init__(self, preset: Preset, episodes: Sequence[Array]) -> None:
        stride, space = preset.chunks.stride, preset.space
        self.plans = [
            followed(space.planned(np.concatenate([states[:-1:stride], states[-1:]])), space, preset.maze, stride)
            for states in episodes
        ]

    @property
    def placements(self) -> list[tuple[Array, Array]]:
        """Where each plan starts and ends: pairs of positions [P]."""
        return [(plan.space.places(plan.start), plan.space.places(plan.goal)) for plan in self.plans]

    def plan_batch(self, starts: Array, goals: Array, n_chunks: Any = "auto", **options: Any) -> list[Plan]:
        if len(starts) != len(self.plans):
            raise UserError(f"there are {len(self.plans)} recorded plans, for {len(starts)} problems")
        return self.plans


def followed(states: Array, space: Any, maze: Maze | None, stride: int = 1) -> Plan:
    """States [T, D] as a plan that nothing is wrong with."""
    return Plan(
        states, states[None], states[0], states[-1], 1, verdict=Verdict({"steps": 0.5}), space=space, maze=maze,
        stride=stride,
    )  # fmt: skip


def dribbles(episode: Array, maze: Maze) -> bool:
    """Whether soccer's states [T, obs] are of a dribbled ball: it then starts in the ant's cell."""
    return maze.cell(episode[0, :2]) == maze.cell(episode[0, 15:17])


def held_out(episodes: Episodes, preset: Preset, dribbled: bool, count: int, seed: int) -> list[Array]:
    """Some recorded episodes of soccer, each [T, obs]: dribbled or walked ones."""
    assert preset.maze is not None
    parts = [episodes.observations[s : s + n] for s, n in zip(episodes.starts, episodes.lengths, strict=True)]
    kind = [states for states in parts if dribbles(states, preset.maze) == dribbled]
    chosen = np.random.default_rng(seed).permutation(len(kind))[:count]
    return [np.asarray(kind[number], float) for number in chosen]


class WalkedWorld:
    """A world of soccer in which the ant, not the ball, has to arrive."""

    def __init__(self, make: Callable[[], World]) -> None:
        self.world = make()
        self.goal = np.zeros(2)

    def reset(self, task: int, seed: int) -> tuple[Array, Array]:
        observation, goal = self.world.reset(task, seed)
        self.goal = goal[:2]
        return observation, goal

    def place(self, start: Array, goal: Array, seed: int) -> tuple[Array, Array]:
        self.goal = np.asarray(goal[:2])
        return self.world.place(start, goal, seed)

    def step(self, action: Array) -> Stepped:
        stepped = self.world.step(action)
        away = float(np.linalg.norm(stepped.observation[:2] - self.goal))
        return stepped._replace(success=away <= ARRIVED)

    def close(self) -> None:
        self.world.close()


def walked(preset: Preset) -> Preset:
    """The same dataset in a world in which the ant has to arrive."""
    assert preset.domain.make is not None
    make = partial(WalkedWorld, preset.domain.make)
    world = replace(preset.domain, make=make, goal_groups=("agent",), goal_radius=ARRIVED)
    return replace(preset, domain=world)


class WalkingExpert:
    """A `Policy`: the expert that walked the data, from cell to cell of the shortest way, without noise."""

    def __init__(self, preset: Preset) -> None:
        assert preset.maze is not None
        self.maze, self.ways = preset.maze, Ways(preset.maze)
        self.walker = load_expert(preset.domain.body.experts[0])[0]

    def reset(self, observations: Array, goals: Array) -> None:
        self.goals = goals[:, :2].copy()

    def act(self, observations: Array, active: Array) -> Array:
        ways = [
            towards(seen, goal if self.maze.cell(seen) == self.maze.cell(goal) else self.next(seen, goal))
            for seen, goal in zip(observations[:, :2], self.goals, strict=True)
        ]
        return self.walker.act(observations, np.array(ways))

    def next(self, here: Array, goal: Array) -> Array:
        """The centre [2] of the cell after the one that `here` lies in."""
        return np.array(self.ways.following(here, self.maze.cell(goal)))


class SoccerExperts:
    """A `Policy`: one expert walks to the ball, the other dribbles it to its goal, without noise."""

    def __init__(self, preset: Preset, near: float = NEAR, far: float = FAR) -> None:
        assert preset.maze is not None
        assert isinstance(preset.domain.body, AntBall)
        self.maze, self.body, self.near, self.far = preset.maze, preset.domain.body, near, far
        self.open = all(not wall for wall in self.maze.walls[1:-1, 1:-1].flat)
        self.walker, self.dribbler = load_expert("ant")[0], load_expert("ball")[0]
        self._next: dict[Cell, dict[Cell, Cell]] = {}

    def reset(self, observations: Array, goals: Array) -> None:
        self.goals = goals[:, 15:17].copy()
        self.dribbling = np.zeros(len(observations), bool)

    def act(self, observations: Array, active: Array) -> Array:
        ant, ball = observations[:, :2], observations[:, 15:17]
        self.dribbling = np.linalg.norm(ant - ball, axis=1) <= np.where(self.dribbling, self.far, self.near)
        actions = np.zeros((len(observations), self.walker.actions))
        for e in np.flatnonzero(active):
            seen = observations[e]
            if self.dribbling[e]:
                actions[e] = self.dribbler.act(seen, self.subgoal(ball[e], self.goals[e]))
            else:
                away = self.subgoal(ant[e], ball[e]) - ant[e]
                actions[e] = self.walker.act(self.body.ant(seen), away / (np.linalg.norm(away) + 1e-6))
        return actions

    def subgoal(self, here: Array, goal: Array) -> Array:
        """Where to go next, [2]: straight on where there are no walls, else to the centre of the next cell."""
        if self.open:
            away = goal - here
            return here + away * min(1.0, AHEAD / (np.linalg.norm(away) + 1e-6))
        cell, last = self.maze.cell(here), self.maze.cell(goal)
        return goal if cell == last else self.maze.center(self._following(cell, last))

    def _following(self, cell: Cell, last: Cell) -> Cell:
        """The cell after `cell` on the way to `last`."""
        known = self._next.setdefault(last, {})
        if cell not in known:
            known[cell] = path(self.maze, cell, last, frozenset(self.maze.free_cells))[1]
        return known[cell]
