"""Asking a planner for the plans of many episodes: none depends on which others run beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from compdiffuser.following.decision import Decision
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.problem import Chunks
from compdiffuser.types import Array, UserError

Ask = Callable[[Array, Chunks], list[Plan]]
"""`ask(episodes [n], n_chunks) -> plans`, one for each. Raises UserError where one cannot be planned."""


class BatchPlanner(Protocol):
    def plan_batch(self, starts: Any, goals: Any, n_chunks: Chunks = "auto", *, seed: Any = 0) -> list[Plan]:
        """One plan for each start [P, D] and goal [P, D]; it may take further options."""


def possible(ask: Ask, episodes: Array, n_chunks: Chunks) -> list[Plan | None]:
    """A plan for each of the episodes [n]; None for those alone that the planner refuses, as outside its data."""
    try:
        return [*ask(episodes, n_chunks)]
    except UserError:
        if len(episodes) == 1:
            return [None]
    half = len(episodes) // 2
    parts = (slice(half), slice(half, None))
    every = [n_chunks] * 2 if isinstance(n_chunks, int | str) else [n_chunks[part] for part in parts]
    return [plan for part, ks in zip(parts, every, strict=True) for plan in possible(ask, episodes[part], ks)]


def seeds(first: int, episodes: Array, decisions: Sequence[Sequence[Decision]]) -> list[int]:
    """The seeds of the next plans of the episodes [n], by their rows and by how many plans each has got.

    What fails for one start should not fail for all its neighbours, nor a second time.
    """
    made = [sum(decision.planned for decision in decisions[e]) for e in episodes]
    return [1000 * (first + count) + int(e) for e, count in zip(episodes, made, strict=True)]
