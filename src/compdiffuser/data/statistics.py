"""How good a dataset is: how far its episodes get, where they have been, and whether the body stayed on its feet.

Distances between cells are steps through free cells, the shortest way: a walk to and fro counts by where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compdiffuser.data.stitch import BLOCKS
from compdiffuser.data.walking import laid_out
from compdiffuser.domains import Body, Group
from compdiffuser.domains.mazes import Cell, Maze
from compdiffuser.presets import Preset
from compdiffuser.types import Array, Episodes

MOVED = 1.0
"""Metres beyond which a ball was moved rather than touched."""


def statistics(episodes: Episodes, preset: Preset) -> dict[str, Any]:
    """Figures of a dataset with a known maze, ready for JSON; shares are of 1.

    Stitch data also says who came to a cell four steps away, which is the goal's, and when; a body with legs, whether
    it was ever overturned; a world with something to move, how often that happens and how far it gets.
    """
    layout, body = laid_out(preset), preset.domain.body
    body.check(episodes.observations)
    positions = body.position(episodes.observations)
    steps = np.linalg.norm(np.diff(positions, axis=0), axis=1)[episodes.inside]
    return {
        "episodes": len(episodes),
        **(_in_cells(episodes, positions, preset) if layout.is_grid else {}),
        **(_falls(episodes, body) if body.has_legs else {}),
        **_moved(episodes, preset.domain.position_dims[1:]),
        "mean_step": _rounded(steps.mean()) if len(steps) else None,
        "largest_step": _rounded(steps.max()) if len(steps) else None,
        "states_in_walls": int(layout.in_wall(positions).sum()),
        "free_cells_visited": _rounded(_visited(positions, layout)),
    }


def _in_cells(episodes: Episodes, positions: Array, preset: Preset) -> dict[str, Any]:
    """How many cells episodes get from their start."""
    away = cells_away(episodes, positions, laid_out(preset))
    net = away[episodes.starts + episodes.lengths - 1]
    return {
        "mean_cells_net": _rounded(net.mean()),
        "mean_cells_farthest": _rounded(np.maximum.reduceat(away, episodes.starts).mean()),
        "cells_net_shares": {str(n): _rounded((net == n).mean()) for n in range(net.max() + 1)},
        **(_goals(away, episodes) if preset.recording and preset.recording.recipe == "stitch" else {}),
    }


def cells_away(episodes: Episodes, positions: Array, layout: Maze) -> Array:
    """[S] cells between each state and the first one of its episode; 0 where either lies in a wall."""
    rows, cols = _cells(positions, layout)
    away = np.zeros(len(positions), np.int64)
    apart: dict[Cell, Array] = {}
    for first, length in zip(episodes.starts, episodes.lengths, strict=True):
        if layout.walls[start := (int(rows[first]), int(cols[first]))]:
            continue
        if start not in apart:
            apart[start] = np.maximum(layout.distances(start), 0)
        states = slice(first, first + length)
        away[states] = apart[start][rows[states], cols[states]]
    return away


def _goals(away: Array, episodes: Episodes) -> dict[str, Any]:
    """The recipe's goal is a cell that far away, and whoever heads for it comes through no other."""
    hits = np.append(np.flatnonzero(away >= BLOCKS), len(away))
    steps = hits[np.searchsorted(hits, episodes.starts)] - episodes.starts
    steps = steps[steps < episodes.lengths]
    return {
        "goal_reached": _rounded(len(steps) / len(episodes)),
        "median_steps_to_goal": float(np.median(steps)) if len(steps) else None,
    }


def _falls(episodes: Episodes, body: Body) -> dict[str, Any]:
    upright = ~body.fallen(episodes.observations)
    return {
        "upright_episodes": _rounded(np.logical_and.reduceat(upright, episodes.starts).mean()),
        "upright_states": _rounded(upright.mean()),
    }


def _moved(episodes: Episodes, groups: Sequence[Group]) -> dict[str, Any]:
    """Of each group: the share of episodes in which it moves and, of these, the mean metres from start to end."""
    figures: dict[str, Any] = {}
    for group in groups:
        places = episodes.observations[:, list(group.columns)]
        spread = [reduce.reduceat(places, episodes.starts) for reduce in (np.minimum, np.maximum)]
        moves = np.linalg.norm(spread[1] - spread[0], axis=1) > MOVED
        ends = episodes.starts + episodes.lengths - 1
        metres = np.linalg.norm(places[ends] - places[episodes.starts], axis=1)[moves]
        figures[f"{group.name}_moves"] = _rounded(moves.mean())
        figures[f"{group.name}_metres"] = _rounded(metres.mean()) if len(metres) else None
    return figures


def _visited(positions: Array, layout: Maze) -> float:
    seen = np.zeros_like(layout.walls)
    seen[_cells(positions, layout)] = True
    return float(seen[~layout.walls].mean())


def _cells(positions: Array, layout: Maze) -> tuple[Array, Array]:
    """Rows and columns [S] of the cells of positions [S, 2]; outside the grid, of the outer wall."""
    cells = np.clip(layout.cells(positions), 0, np.array(layout.walls.shape) - 1)
    return cells[:, 0], cells[:, 1]


def _rounded(value: Any) -> float:
    return round(float(value), 4)
