"""One problem on its way to a plan: its candidates so far, which of them is best, and what to try next.

Candidates come in waves. After each wave of fresh ones comes one of refined ones: the best so far get a little noise
again and are denoised once more. Most of a good candidate is right, and what is wrong is local. Fresh candidates begin
from pure noise or, `TURN` of them in turn, from a scaffold with noise: a way to the goal, if not as data goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from torch import Tensor

from compdiffuser.types import Array

PARENTS = 4  # a refined wave has a fourth as many parents as candidates
TURN = 8  # fresh candidates that begin from a scaffold before as many begin from noise
Origin = Literal["noise", "scaffold", "refined"]


@dataclass(frozen=True)
class Candidate:
    number: int
    """Counted from 0 within its search."""
    chunks: Tensor
    """[K, H, D], normalized."""
    score: float
    """Reconstruction error of the worst chunk, in units of what is usual."""
    overlap: float
    """Overlap distance."""
    complete: bool
    """Whether it leads from the start to the goal without a jump."""
    excess: float
    """Its worst chunk against the most that is certified, by what the model says or the data, whichever is worse."""
    origin: Origin = "noise"
    """What it began from."""

    @property
    def refined(self) -> bool:
        """Whether it was made from another one."""
        return self.origin == "refined"

    @property
    def certified(self) -> bool:
        """Whether it is complete and every chunk of it could be one of the data's."""
        return self.complete and self.excess <= 1


@dataclass(frozen=True)
class Proposal:
    """A candidate that is still to be made."""

    number: int
    """Decides its noise, together with the seed of its search."""
    n_chunks: int
    origin: Origin = "noise"
    """What it begins from."""
    parent: Tensor | None = None
    """Chunks [K, H, D] that noise is added to: of the scaffold, or of the candidate that it refines."""


class Search:
    """The candidates of one problem. `Planner.advance` makes the next wave of any number of searches in one batch."""

    def __init__(
        self, start: Array, goal: Array, choices: Sequence[int], most: int, seed: int = 0, wave: int = 64,
        refine: bool = True, measure: str = "reconstruction", scaffold: Callable[[int], Tensor] | None = None,
    ) -> None:  # fmt: skip
        self.start, self.goal = start, goal
        self.choices = list(choices)
        """The K that fresh candidates try in turn."""
        self.most = most
        """Fresh candidates, at most; refined ones come on top."""
        self.seed = seed
        self.wave = wave
        self.refine = refine
        self.measure = measure
        self.scaffold = None if scaffold is None else cache(scaffold)
        """Gives the scaffold [K, H, D] of K chunks, where there is a way."""
        self.candidates: list[Candidate] = []

    @property
    def certified(self) -> bool:
        return bool(self.candidates) and self.best.certified

    @property
    def done(self) -> bool:
        """Whether nothing is left to try. A choice by overlap, the paper's, looks at all candidates."""
        certified = self.certified and self.measure == "reconstruction"
        return certified or (self._fresh() >= self.most and not self._refines_next())

    @property
    def best(self) -> Candidate:
        return self.ranked()[0]

    def ranked(self) -> list[Candidate]:
        """All candidates, best first: complete ones, then by excess; or by overlap distance alone.

        An excess is of the worst chunk, and grows with K, so that shorter plans win where they are as good.
        """

        def rank(candidate: Candidate) -> tuple[bool, float]:
            if self.measure == "overlap":
                return False, candidate.overlap
            return not candidate.complete, candidate.excess

        return sorted(self.candidates, key=rank)

    def proposals(self) -> list[Proposal]:
        """The next wave; nothing where all is done."""
        if self.done:
            return []
        made, fresh = len(self.candidates), self._fresh()
        if self._refines_next():
            parents = [candidate.chunks for candidate in self.ranked()[: max(1, self.wave // PARENTS)]]
            # As many as were fresh in the wave before.
            count = (fresh - 1) % self.wave + 1
            chosen = [parents[index % len(parents)] for index in range(count)]
            return [Proposal(made + index, len(parent), "refined", parent) for index, parent in enumerate(chosen)]
        count = min(self.wave, self.most - fresh)
        return [self._begun(made + i, fresh + i) for i in range(count)]

    def _begun(self, number: int, fresh: int) -> Proposal:
        """A fresh candidate, after `fresh` others."""
        k = self.choices[fresh % len(self.choices)]
        if self.scaffold is None or fresh // TURN % 2:
            return Proposal(number, k)
        return Proposal(number, k, "scaffold", self.scaffold(k))

    def add(self, candidates: Sequence[Candidate]) -> None:
        """A wave that has been made. Before the next fresh one, K's that do badly are left behind."""
        self.candidates += candidates
        if not self._refines_next():
            self.choices = self._promising()

    def _fresh(self) -> int:
        return sum(not candidate.refined for candidate in self.candidates)

    def _refines_next(self) -> bool:
        return self.refine and bool(self.candidates) and not self.candidates[-1].refined

    def _promising(self) -> list[int]:
        """The better half of the K's tried so far, so that later waves spend little on chains that cannot reach."""
        best = dict.fromkeys(self.choices, (True, math.inf))
        for candidate in self.candidates:
            k = len(candidate.chunks)
            if k in best:
                best[k] = min(best[k], (not candidate.complete, candidate.excess))
        if len(self.choices) < 4 or any(math.isinf(excess) for _, excess in best.values()):
            return self.choices
        return sorted(sorted(self.choices, key=lambda k: best[k])[: (len(self.choices) + 1) // 2])
