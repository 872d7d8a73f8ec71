"""A planner that knows the maze: shortest paths through cell centres, in the shape of real plans."""

from __future__ import annotations

import itertools

import numpy as np

from compdiffuser.domains.mazes import NEIGHBOURS, maze
from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.plan import Plan

CERTIFIED = Verdict({"steps": 0.5})


def oracle_states(name: str, start, goal, spacing: float = 0.03, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """States [T, 2] of the shortest path, `spacing` maze units apart."""
    layout = maze(name)
    cell, target = layout.cell(start[:2]), layout.cell(goal[:2])
    steps = layout.distances(target)
    corners = [np.asarray(start[:2], float)]
    while cell != target:
        cell = min(
            ((cell[0] + i, cell[1] + j) for i, j in NEIGHBOURS if not layout.walls[cell[0] + i, cell[1] + j]),
            key=lambda near: steps[near],
        )
        corners.append(layout.center(cell))
    corners.append(np.asarray(goal[:2], float))
    pieces = [
        np.linspace(a, b, max(2, int(np.linalg.norm(b - a) / (spacing * layout.unit))), endpoint=False)
        for a, b in itertools.pairwise(corners)
    ]
    states = np.concatenate([*pieces, corners[-1][None]])
    states[1:-1] += noise * np.random.default_rng(seed).standard_normal(states[1:-1].shape)
    return states


def oracle_plan(name: str, start, goal, n_chunks: int = 4, overlap: int = 8, **options) -> Plan:
    states = oracle_states(name, start, goal, **options)
    horizon = max(overlap + 1, -(-(len(states) + (n_chunks - 1) * overlap) // n_chunks))
    total = n_chunks * horizon - (n_chunks - 1) * overlap
    states = np.concatenate([states, np.repeat(states[-1:], total - len(states), axis=0)])
    first = [k * (horizon - overlap) for k in range(n_chunks)]
    chunks = np.stack([states[k : k + horizon] for k in first])
    return Plan(
        states,
        chunks,
        np.asarray(start[:2]),
        np.asarray(goal[:2]),
        overlap,
        score=0.1,
        overlap_distance=0.0,
        confidence=0.9,
        verdict=CERTIFIED,
        maze=maze(name),
    )


class OraclePlanner:
    """Plans with breadth-first search and remembers how it was called."""

    def __init__(self, name: str, **options) -> None:
        self.name, self.options, self.calls = name, options, []

    def plan_batch(self, starts, goals, n_chunks="auto", seed=0, **options) -> list[Plan]:
        self.calls.append({"problems": len(starts), "n_chunks": n_chunks, "seed": seed, **options})
        counts = [4] * len(starts) if n_chunks == "auto" else np.broadcast_to(n_chunks, len(starts))
        return [
            oracle_plan(self.name, s, g, n_chunks=int(k), **self.options)
            for s, g, k in zip(starts, goals, counts, strict=True)
        ]
