"""The judge: whether a candidate is a plan that an agent can follow, by tests each of which can say no.

A plan is certified when it passes all of them: its steps are no longer than the data's, it begins at its start and ends
at its goal, the model takes each of its chunks for data, the data has been where it goes, nothing moves without the
agent that never does in the data, and postures change as recorded ones do. A plan that is steered also keeps to what
steers it. What is judged is what is returned: chunks merged by the blending of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.score import (
    consistent,
    endpoint_gap,
    longest_step,
    overlap_distances,
    reconstruction_errors,
    worst,
    worst_chunk,
)
from compdiffuser.diffusion.conditions import Denoise
from compdiffuser.domains.space import Group, Space
from compdiffuser.planning.recorded.calibration import Calibration
from compdiffuser.planning.recorded.moves import alone
from compdiffuser.planning.recorded.postures import Postures
from compdiffuser.planning.recorded.support import Support
from compdiffuser.planning.steering.adherence import kept
from compdiffuser.planning.steering.ground import Ground
from compdiffuser.planning.steering.steering import Course

TESTS: dict[str, str] = {
    "steps": "it jumps: a step is longer than the data's",
    "ends": "it misses its start or its goal",
    "reconstruction": "the model does not take all of its chunks for data",
    "support": "it goes where no recorded episode has been",
    "passage": "it passes where no recorded episode has passed",
    "contact": "something moves that the agent is not near",
    "dynamics": "no recorded body moves as its posture changes",
    "avoid": "it enters a region that it has to avoid",
    "valid": "it is not valid everywhere",
    "via": "it misses a waypoint",
}
"""Names of the tests, and what it means to fail one."""
WHOLE = ("steps", "ends")
"""Tests of whether a plan leads from its start to its goal at all."""
STEERED = ("avoid", "valid", "via")
"""Tests of whether a plan keeps to what steers it."""


@dataclass(frozen=True)
class Verdict:
    """What the judge found: for each test, the measured value as a share of the most that passes."""

    measures: Mapping[str, float] = field(default_factory=dict)
    """Tests that were made; each is passed up to 1. Empty where nobody has judged."""
    where: Mapping[str, str] = field(default_factory=dict)
    """For tests that were not passed, where on the plan, if that is known."""
    chunks: Mapping[str, int] = field(default_factory=dict, compare=False)
    """For tests that are made chunk by chunk, the chunk that did worst, counted from 0."""

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the tests that were not passed."""
        return tuple(name for name, share in self.measures.items() if not share <= 1)

    @property
    def ok(self) -> bool:
        """Whether all tests were passed."""
        return bool(self.measures) and not self.failed

    @property
    def complete(self) -> bool:
        """Whether the plan leads from its start to its goal without a jump."""
        return not set(WHOLE) & set(self.failed)

    @property
    def ok_unsteered(self) -> bool:
        """Whether all tests were passed but those of what steers the plan."""
        return bool(self.measures) and not set(self.failed) - set(STEERED)

    @property
    def excess(self) -> float:
        """The worst measure of how unlike the data it is; infinite where one is not a number."""
        shares = [share for name, share in self.measures.items() if name not in WHOLE]
        return max(shares) if shares and not any(map(math.isnan, shares)) else math.inf

    def __str__(self) -> str:
        """In words."""
        if not self.measures:
            return "not judged"
        told = {name: self.where.get(name, f"{self.measures[name]:.2f} of what passes") for name in self.failed}
        reasons = [f"{TESTS[name]} ({told[name]})" for name in self.failed]
        return f"NOT certified: {'; '.join(reasons)}" if reasons else "certified"


UNJUDGED = Verdict()


@dataclass(frozen=True)
class Judged:
    """Scores and verdicts of C chains."""

    scores: list[float]
    """Reconstruction error of each one's worst chunk, in units of what is usual."""
    overlaps: list[float]
    """Overlap distances."""
    verdicts: list[Verdict]
    broken: list[list[int]] = field(default_factory=list)
    """Chunks of each chain that fail a test by themselves, where chains are steered."""


@dataclass(frozen=True)
class Judge:
    """Measures finished chains against what is usual in the data."""

    denoise: Denoise
    calibration: Calibration
    support: Support | None
    """Without it, only the model is asked whether a plan is like the data."""
    space: Space
    overlap: int
    certify: float
    """Quantile of the data's own chunks that a certified plan stays below."""
    blending: str
    asked: tuple[Group, ...] = ()
    """Position groups that have to be at the goal; none: all."""
    postures: Postures | None = None
    """How the data moves, where postures are planned."""
    ground: Ground | None = None
    """Without it, no chain can be steered."""

    def __call__(
        self,
        chunks: Tensor,
        chains: Chains,
        courses: Sequence[Course | None] = (),
        unchanged: Tensor | None = None,
    ) -> Judged:
        """Judge chunks [M, H, D] of C chains, each of which may be steered by a course.

        Rows that are `unchanged` [M] since they were certified are not asked again whether they are like the data.
        """
        merged = consistent(chunks, chains, self.overlap, self.blending)
        asked = slice(None) if unchanged is None else (~unchanged).nonzero()[:, 0]
        chunkwise = self._chunkwise(merged, chains, asked)
        steps, gaps = self._steps_and_gaps(merged, chains)
        worsts = {name: worst(values, chains) for name, (values, _) in chunkwise.items()}
        measures = {
            "steps": steps,
            "ends": gaps,
            **{name: worsts[name] / most for name, (_, most) in chunkwise.items()},
        }
        # A GPU is waited for once for all of them, not for each.
        rows = torch.stack(list(measures.values()), dim=1).tolist()
        every = torch.stack([values for values, _ in chunkwise.values()]).cpu()
        strangest = zip(*(worst_chunk(values, chains) for values in every), strict=True)
        verdicts = [
            Verdict(dict(zip(measures, row, strict=True)), chunks=dict(zip(chunkwise, numbers, strict=True)))
            for row, numbers in zip(rows, strangest, strict=True)
        ]
        broken: list[list[int]] = []
        if self.ground is not None and any(course is not None for course in courses):
            found = kept(merged, chains, courses, self.ground, self.overlap)
            verdicts = [
                replace(verdict, measures={**verdict.measures, **one.measures}, where=one.where)
                for verdict, one in zip(verdicts, found, strict=True)
            ]
            unlike = [values / most for values, most in chunkwise.values()]
            strange = (torch.stack(unlike).amax(dim=0) > 1).tolist()
            broken = [
                sorted({*one.broken, *(k for k, wrong in enumerate(strange[chains.rows(c)]) if wrong)})
                for c, one in enumerate(found)
            ]
        scores = worsts["reconstruction"].tolist()
        return Judged(scores, overlap_distances(chunks, chains, self.overlap).tolist(), verdicts, broken)

    def _chunkwise(self, merged: Tensor, chains: Chains, asked: Tensor | slice) -> dict[str, tuple[Tensor, float]]:
        """Of each test that is made chunk by chunk, what was measured [M] and the most that passes.

        Only the rows `asked` for are compared with the data; others measure 0.
        """
        usual, places = self.calibration, self.space.places(merged[asked])
        errors = self._errors(merged[asked], chains.key[asked])
        found = {"reconstruction": (self._of(asked, merged, errors), usual.threshold(self.certify))}
        if self.support is not None:
            far = self._of(asked, merged, self.support.stray(places))
            found["support"] = far, self.support.threshold(self.certify)
        if self.support is not None and self.support.passages is not None:
            passages = self.support.passages
            found["passage"] = self._of(asked, merged, passages.aside(places) / passages.limit), 1.0
        if usual.groups:
            paths = list(self.space.groups(merged).values())
            found["contact"] = alone(paths, usual.groups), usual.most_alone(self.certify)
        if self.postures is not None:
            found["dynamics"] = self.postures.oddity(merged), self.postures.threshold(self.certify)
        return found

    def _errors(self, chunks: Tensor, key: Tensor) -> Tensor:
        usual = self.calibration
        return reconstruction_errors(
            self.denoise, chunks, key, self.overlap, usual.probes, usual.usual, usual.weights or None
        )

    @staticmethod
    def _of(rows: Tensor | slice, chunks: Tensor, values: Tensor) -> Tensor:
        """Values [m] of some rows as values of all [M]; 0 for the others."""
        if isinstance(rows, slice):
            return values
        return values.new_zeros(len(chunks)).index_copy(0, rows, values)

    def _steps_and_gaps(self, merged: Tensor, chains: Chains) -> tuple[Tensor, Tensor]:
        """Longest step and missed ends of each chain [C], of the worst position group by what is usual for it."""
        everything = Group("everything", tuple(self.space.columns))
        positions = self.space.positions if self.calibration.groups else (everything,)
        asked = (*(self.asked or positions), everything)
        steps, gaps = [], []
        for group, moves in zip(positions, self.calibration.moves, strict=True):
            places = partial(_places, columns=list(group.columns))
            steps.append(longest_step(merged, chains, places) / moves.longest)
            gaps.append(endpoint_gap(merged, chains, places, goal=group in asked) / moves.gap)
        return torch.stack(steps).amax(dim=0), torch.stack(gaps).amax(dim=0)


def _places(states: Tensor, columns: list[int]) -> Tensor:
    return states[..., columns]
