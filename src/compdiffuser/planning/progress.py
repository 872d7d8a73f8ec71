"""The progress of a planner, for whoever watches it: the running batch after every round, and whose row is whose.

Rows of all candidates of all problems lie in one batch, so a watcher that shows one of them has to know which are its
own. A watcher that raises ends the planning; nothing is kept of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.planning.search import Origin


@dataclass(frozen=True)
class Round:
    """One round of one wave of candidates; chain c is candidate `candidates[c]` of problem `problems[c]`."""

    index: int
    """Which round of its wave, from 0."""
    count: int
    """Rounds of this wave."""
    estimates: Tensor
    """The current estimate of the clean chunks, normalized; 0 in rows that have not moved yet. [M, H, D]"""
    chains: Chains
    problems: tuple[int, ...]
    """[C]"""
    candidates: tuple[int, ...]
    """[C]"""
    origin: Origin = "noise"
    """What these candidates began from."""

    @classmethod
    def teller(
        cls, watch: Watch, chains: Chains, problems: Sequence[int], candidates: Sequence[int], origin: Origin = "noise"
    ) -> Callable[[int, int, Tensor], None]:
        """What the denoising loop calls after a round of this batch, so that `watch` sees it."""
        owners, numbers = tuple(problems), tuple(candidates)
        return lambda index, count, estimates: watch(cls(index, count, estimates, chains, owners, numbers, origin))

    def of(self, problem: int) -> Iterator[tuple[int, slice]]:
        """Each candidate of a problem in this wave, with its rows."""
        for chain, (owner, candidate) in enumerate(zip(self.problems, self.candidates, strict=True)):
            if owner == problem:
                yield candidate, self.chains.rows(chain)


Watch = Callable[[Round], None]
