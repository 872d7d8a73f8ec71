"""Why a candidate failed and where, and why the chosen one won."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from compdiffuser.planning.planner import Planner
from compdiffuser.planning.recorded.support import SEGMENT_SPAN
from compdiffuser.planning.search import Candidate, Search
from compdiffuser.types import Array

SHOWN = 40  # states of a piece


def pieces(planner: Planner, search: Search, candidate: Candidate, columns: Sequence[int]) -> list[dict[str, Any]]:
    """For each failed test the piece of the candidate's path that failed it: `test`, and `path` [n, columns]."""
    if candidate.verdict.ok:
        return []
    states = planner.states(candidate)
    wanted = (search.start, search.goal if candidate.goal is None else candidate.goal)
    found = []
    for test in candidate.verdict.failed:
        piece = _piece(planner, candidate, states, wanted, test)[:, list(columns)]
        index = np.linspace(0, len(piece) - 1, min(len(piece), SHOWN)).astype(int)
        found.append({"test": test, "path": np.nan_to_num(piece[index].astype(float)).round(3).tolist()})
    return found


def _piece(planner: Planner, candidate: Candidate, states: Array, wanted: Sequence[Array], test: str) -> Array:
    """The states [n, D] at fault; for a missed end, where it is and where it should be."""
    places = planner.space.places
    if test == "steps":
        units = [moves.longest for moves in planner.calibration.moves]
        steps = np.diff(places(planner.normalizer.normalize(states)), axis=0)
        far = planner.space.distances(steps) / units if len(units) > 1 else np.linalg.norm(steps, axis=1)[:, None]
        worst = int(far.max(axis=1).argmax())
        return states[worst : worst + 2]
    if test == "ends":
        ends = [np.stack([states[index], end]) for index, end in ((0, wanted[0]), (-1, wanted[1]))]
        return max(ends, key=lambda pair: float(np.linalg.norm(np.diff(places(pair), axis=0))))
    horizon = candidate.chunks.shape[1]
    number = candidate.verdict.chunks.get(test)
    if number is None:
        return states
    first = number * (horizon - planner.model.overlap)
    if test == "support" and planner.support is not None:
        own = places(planner.normalizer.normalize(torch.from_numpy(states[first : first + horizon])))
        first += planner.support.strangest(own.to(planner.device))
        return states[first : first + SEGMENT_SPAN + 1]
    return states[first : first + horizon]


def why(search: Search) -> str:
    """Why the best candidate won, in a sentence."""
    ranked = search.ranked()
    best, count = ranked[0], len(ranked)
    if count == 1:
        return "It was the only candidate."
    passed = sum(candidate.certified for candidate in ranked)
    among = f"{passed} of {count} candidates passed every test" if passed else f"None of {count} candidates passed"
    if search.score == "overlap":
        return f"{among}. Chosen: the one whose chunks agree best where they overlap."
    if search.score != "reconstruction":
        return f"{among}. Chosen: the first by the score '{search.score}'."
    if not best.certified:
        return f"{among} every test. Chosen: the one that comes nearest."
    margin = f"at {best.verdict.excess:.0%} of its limit"
    return f"{among}. Chosen: the one whose worst test is furthest from failing, {margin}."
