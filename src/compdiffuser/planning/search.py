"""One problem on its way to a plan: its candidates so far, which of them is best, and what to try next.

Candidates come in waves. After each wave of fresh ones comes one of refined ones: the best so far get a little noise
again and are denoised once more. Most of a good candidate is right, and what is wrong is local. Where the data knows a
way to the goal, every other fresh candidate begins from a *scaffold*, that way with noise; the others begin from noise
alone. Scaffolds are quick and come first: where one of them is certified, the rest of its wave is not made. Quickest
is a small first wave, the *opening*: scaffolds alone, with the K at whose pace the data moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.steering.steering import Course
from compdiffuser.types import Array, UserError

REFINES = 3  # waves of refined candidates for each fresh wave of a steered search; one for others
PARENTS = 4  # a refined wave has a fourth as many parents as candidates
LOITERS, STROLLS = 2.5, 1.25  # times the length of the shortest certified candidate, of plans and of steered ones:
# one that goes further has lost its way
Origin = Literal["scaffold", "noise", "refined"]
"""What a candidate begins from, quickest first: a scaffold needs few denoising steps."""


@dataclass(frozen=True)
class Candidate:
    """A finished chain, and what the judge thinks of it."""

    number: int
    """Counted from 0 within its search."""
    chunks: Tensor
    """[K, H, D], normalized."""
    score: float
    """Reconstruction error of the worst chunk, in units of what is usual."""
    overlap: float
    """Overlap distance."""
    verdict: Verdict
    origin: Origin = "noise"
    """What it began from."""
    goal: Array | None = None
    """[D], where it was to end; None: at the goal of its search."""
    length: float = 0.0
    """Normalized, how far the agent goes."""
    cost: float = 0.0
    """What it costs, where a plan is preferred by its cost."""
    broken: tuple[int, ...] = ()
    """Chunks that fail a test by themselves, where it is steered."""

    @property
    def refined(self) -> bool:
        """Whether it was made from another one."""
        return self.origin == "refined"

    @property
    def certified(self) -> bool:
        """Whether every test is passed."""
        return self.verdict.ok


@dataclass(frozen=True)
class Score:
    """How candidates are compared."""

    rank: Callable[[Candidate], tuple[float, ...]]
    """Lower is better."""
    ends_early: bool
    """Whether a search may end at its first certified candidate."""


SCORES: dict[str, Score] = {
    # An excess is of the worst chunk, and grows with K, so that shorter plans win where they are as good.
    "reconstruction": Score(lambda made: (not made.verdict.complete, made.verdict.excess), ends_early=True),
    # The paper's choice looks at all candidates. One that is not finite has no place among numbers, and comes last; a
    # single chunk has nothing that could disagree, and comes after those that have.
    "overlap": Score(lambda made: (math.isnan(made.overlap), len(made.chunks) == 1, made.overlap), ends_early=False),
}
"""Ways to choose a plan: complete ones by how like the data they are, or by overlap distance as in the paper."""


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
    goal: Array | None = None
    """[D], where it is to end; None: at the goal of its search."""
    held: tuple[bool, ...] = ()
    """Which of the parent's chunks stay as they are; empty: none."""


@dataclass(eq=False)
class Search:
    """The candidates of one problem. `Planner.advance` makes the next wave of any number of searches in one batch."""

    start: Array
    goal: Array
    choices: list[int]
    """The K that fresh candidates try in turn."""
    most: int
    """Fresh candidates, at most; refined ones come on top."""
    seed: int = 0
    wave: int = 64
    """Candidates at a time."""
    refine: bool = True
    score: str = "reconstruction"
    """A key of `SCORES`."""
    scaffolds: Mapping[int, Tensor] = field(default_factory=dict)
    """For each K the scaffold [K, H, D], where the data knows a way."""
    opening: Sequence[int] = ()
    """The K of each scaffold in the first wave; empty: it is like those that follow."""
    candidates: list[Candidate] = field(default_factory=list)
    endings: Sequence[Array] = ()
    """Goals [D] that fresh candidates try in turn, where the goal leaves something open."""
    course: Course | None = None
    """What steers it."""
    held: Mapping[int, tuple[bool, ...]] = field(default_factory=dict)
    """For a K the chunks of its scaffold that stay as they are; they have been certified before."""
    still: Tensor | None = None
    """A chunk [1, H, D] that stays where it is, where the start is the goal; it is judged before anything is made."""

    @property
    def certified(self) -> bool:
        return bool(self.candidates) and self.best.certified

    @property
    def done(self) -> bool:
        """Whether nothing is left to try."""
        found = self.certified or self._shown(self.candidates)
        return (SCORES[self.score].ends_early and found) or (self._fresh() >= self.most and not self._refines_next())

    @property
    def best(self) -> Candidate:
        """Raises UserError where none has been made yet."""
        if not self.candidates:
            raise UserError("this search has no candidate yet; advance it first")
        return self.ranked()[0]

    def ranked(self) -> list[Candidate]:
        """All candidates, best first.

        Of certified ones, those of the lowest cost; without a cost, one that goes much further than another waits.
        """
        ranked = sorted(self.candidates, key=SCORES[self.score].rank)
        certified = [candidate for candidate in ranked if candidate.certified]
        if len(certified) < 2 or not SCORES[self.score].ends_early:
            return ranked
        if self._prefers:
            return [*sorted(certified, key=lambda made: made.cost), *(made for made in ranked if not made.certified)]
        far = (LOITERS if self.course is None else STROLLS) * min(made.length for made in certified)
        return sorted(ranked, key=lambda made: (not made.certified, made.length > far))

    def proposals(self) -> list[Proposal]:
        """The next wave; nothing where all is done."""
        if self.done:
            return []
        made, fresh = len(self.candidates), self._fresh()
        if self._refines_next():
            parents = self.ranked()[: max(1, self.wave // PARENTS)]
            # As many as the last wave had fresh ones, until an opening leaves them half a wave behind.
            count = (fresh - 1) % self.wave + 1
            chosen = [parents[index % len(parents)] for index in range(count)]
            return [
                Proposal(
                    made + index,
                    len(parent.chunks),
                    "refined",
                    parent.chunks,
                    parent.goal,
                    self._held(parent, index // len(parents)),
                )
                for index, parent in enumerate(chosen)
            ]
        if self.still is not None and not made:
            return [Proposal(0, 1, "scaffold", self.still, held=(True,))]
        if self.opening and not fresh:
            ends = self.endings or (None,)
            opening = enumerate(self.opening[: self.most])
            return [self._laid(made + i, k, ends[(self.seed + i) % len(ends)]) for i, k in opening]
        count = min(self.wave, self.most - fresh)
        return [self._begun(made + i, fresh + i) for i in range(count)]

    def settled(self, made: Sequence[Candidate]) -> bool:
        """Whether a wave of which these candidates are made needs no more."""
        found = any(candidate.certified for candidate in made) or self._shown(made)
        return SCORES[self.score].ends_early and found and not self._prefers

    def _shown(self, made: Sequence[Candidate]) -> bool:
        """Where all ways are closed: whether one of these, certified but for that, shows where."""
        closed = self.course is not None and self.course.closed
        return closed and any(candidate.verdict.ok_unsteered for candidate in made)

    @property
    def _prefers(self) -> bool:
        return self.course is not None and self.course.steering.prefer is not None

    def _held(self, parent: Candidate, turn: int) -> tuple[bool, ...]:
        """Which chunks of a parent stay as they are.

        Of a steered one all that is right, and in every other turn but what lies beside what is wrong. Where nothing,
        or all, is wrong with its chunks, all move.
        """
        count = len(parent.chunks)
        moving = {k + beside for k in parent.broken for beside in ((-1, 0, 1) if turn % 2 else (0,))}
        moving &= set(range(count))
        if self.course is None or not 0 < len(moving) < count:
            return self.held.get(count, ())
        return tuple(k not in moving for k in range(count))

    def add(self, candidates: Sequence[Candidate]) -> None:
        """A wave that has been made. Before the next fresh one, K's that do badly are left behind."""
        self.candidates += candidates
        if not self._refines_next():
            self.choices = self._promising()

    def _begun(self, number: int, fresh: int) -> Proposal:
        """A fresh candidate, after `fresh` others. Each K begins from a scaffold and from noise in turn."""
        turn, place = divmod(fresh, len(self.choices))
        k = self.choices[place]
        # Another one in each turn of the K's: every K tries all of them.
        goal = self.endings[(self.seed + turn + place) % len(self.endings)] if self.endings else None
        # Noise knows nothing of what steers a plan: it has to wait for the second wave.
        steered = self.course is not None and (fresh < self.wave or k in self.held)
        if k not in self.scaffolds or ((turn + place) % 2 and not steered):
            return Proposal(number, k, goal=goal)
        return self._laid(number, k, goal)

    def _laid(self, number: int, k: int, goal: Array | None) -> Proposal:
        """A candidate that begins from the scaffold of K chunks."""
        return Proposal(number, k, "scaffold", self.scaffolds[k], goal, self.held.get(k, ()))

    def _fresh(self) -> int:
        # The chunk that stays belongs to no wave.
        begun = self.candidates[self.still is not None :]
        return sum(not candidate.refined for candidate in begun)

    def _refines_next(self) -> bool:
        if not self.refine or len(self.candidates) <= (self.still is not None):
            return False
        if self.course is None:
            return not self.candidates[-1].refined
        # Most of a steered candidate is held, so that it gets better from wave to wave.
        since = next(place for place, made in enumerate(reversed(self.candidates)) if not made.refined)
        return since < REFINES * ((self._fresh() - 1) % self.wave + 1)

    def _promising(self) -> list[int]:
        """The better half of the K's tried so far, so that later waves spend little on chains that cannot reach."""
        best: dict[int, tuple[bool, float]] = dict.fromkeys(self.choices, (True, math.inf))
        for candidate in self.candidates:
            k = len(candidate.chunks)
            if k in best:
                best[k] = min(best[k], (not candidate.verdict.complete, candidate.verdict.excess))
        if len(self.choices) < 4 or any(math.isinf(excess) for _, excess in best.values()):
            return self.choices
        return sorted(sorted(self.choices, key=lambda k: best[k])[: (len(self.choices) + 1) // 2])
