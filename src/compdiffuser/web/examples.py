"""What a page begins with: a start and a goal to try, and recorded places to draw where no map is known."""

from __future__ import annotations

import numpy as np
import torch

from compdiffuser.domains.mazes import Maze
from compdiffuser.evaluation import ends
from compdiffuser.planning.planner import Planner
from compdiffuser.types import Array

STEPS = 12
"""Cells between the start and the goal, where the maze is large enough."""
RECORDED = 1_500  # places to draw


def recorded(planner: Planner) -> list[list[float]] | None:
    """Some recorded places [n, P]; None where the planner keeps none."""
    if planner.support is None:
        return None
    places = _places(planner)
    chosen = np.linspace(0, len(places) - 1, min(RECORDED, len(places))).astype(int)
    listed: list[list[float]] = places[chosen].round(2).tolist()
    return listed


def example(planner: Planner) -> dict[str, list[float]]:
    """A start and a goal, as short as requests may give them."""
    domain, space = planner.preset.domain, planner.space
    start, goal = planner.normalizer.denormalize(np.zeros((2, len(space.dims)), np.float32)).astype(float)
    if domain.maze is not None:
        start[space.columns], goal[space.columns] = _in_maze(domain.maze, space.sizes)
    elif planner.support is not None:
        places = _places(planner)
        far = np.linalg.norm(places - places[0], axis=1)
        start[space.columns] = places[0]
        goal[space.columns] = places[np.argsort(far)[int(0.8 * (len(far) - 1))]]
    given = {"start": start[ends.start_columns(domain)], "goal": goal[ends.goal_columns(domain)]}
    return {what: state.round(2).tolist() for what, state in given.items()}


def _in_maze(layout: Maze, sizes: list[int]) -> tuple[Array, Array]:
    """Places [P] of all groups: from the first free cell on, one after another; and all together at the goal."""
    first = layout.free_cells[0]
    steps = layout.distances(first)

    def nearest(count: float) -> Array:
        cell = min(layout.free_cells, key=lambda cell: (abs(int(steps[cell]) - count), cell))
        return layout.center(cell)

    far = min(STEPS, int(steps.max()))
    starts = [nearest(far * number / (len(sizes) + 1) if number else 0) for number in range(len(sizes))]
    return np.concatenate([_sized(place, size) for place, size in zip(starts, sizes, strict=True)]), np.concatenate(
        [_sized(nearest(far), size) for size in sizes]
    )


def _sized(place: Array, size: int) -> Array:
    """x and y, and zeros for what a group has beyond them."""
    return np.concatenate([place, np.zeros(max(size - 2, 0))])[:size]


def _places(planner: Planner) -> Array:
    """Where recorded segments begin, [N, P]."""
    assert planner.support is not None
    columns, normalizer = planner.space.columns, planner.normalizer
    states = torch.zeros(len(planner.support.segments), len(planner.space.dims))
    states[:, columns] = planner.support.segments[:, : len(columns)].cpu()
    places: Array = normalizer.denormalize(states).numpy()[:, columns].astype(float)
    return places
