"""The candidates of one problem: which is best, and which numbers of chunks are worth more of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Candidate:
    chunks: Tensor
    """[K, H, D], normalized."""
    score: float
    """Reconstruction error of the worst chunk, in units of what is usual."""
    overlap: float
    """Overlap distance."""
    certified: bool


class Found:
    """The candidates of one problem so far, and which of them is best."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.best = 0

    @property
    def certified(self) -> bool:
        return bool(self.candidates) and self.candidates[self.best].certified

    def promising(self, choices: list[int]) -> list[int]:
        """The better half of the K's tried so far, so that later waves spend little on chains that cannot reach."""
        best = dict.fromkeys(choices, math.inf)
        for candidate in self.candidates:
            k = len(candidate.chunks)
            best[k] = min(best.get(k, math.inf), candidate.score)
        if len(choices) < 4 or any(math.isinf(best[k]) for k in choices):
            return choices
        return sorted(sorted(choices, key=lambda k: best[k])[: (len(choices) + 1) // 2])

    def choose(self, measure: str) -> None:
        """The certified candidate that scores best; the best of all where none is certified.

        Scores are of the worst chunk, which grow with K, so that shorter plans win where they are as good.
        """

        def rank(index: int) -> tuple[bool, float]:
            candidate = self.candidates[index]
            return not candidate.certified, candidate.overlap if measure == "overlap" else candidate.score

        self.best = min(range(len(self.candidates)), key=rank)
