"""The judge: whether a candidate is a plan that an agent can follow, by tests each of which can say no.

A plan is certified when it passes all of them: its steps are no longer than the data's, it begins at its start and ends
at its goal, the model takes each of its chunks for data, the data has been where it goes, and nothing moves without the
agent that never does in the data. What is judged is what is returned: chunks merged by the blending of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from compdiffuser.planning.calibration import Calibration
from compdiffuser.planning.moves import alone
from compdiffuser.planning.support import Support

TESTS: dict[str, str] = {
    "steps": "it jumps: a step is longer than the data's",
    "ends": "it misses its start or its goal",
    "reconstruction": "the model does not take all of its chunks for data",
    "support": "it goes where no recorded episode has been",
    "contact": "something moves that the agent is not near",
}
"""Names of the tests, and what it means to fail one."""
WHOLE = ("steps", "ends")
"""Tests of whether a plan leads from its start to its goal at all."""


@dataclass(frozen=True)
class Verdict:
    """What the judge found: for each test, the measured value as a share of the most that passes."""

    measures: Mapping[str, float] = field(default_factory=dict)
    """Tests that were made; each is passed up to 1. Empty where nobody has judged."""
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
    def excess(self) -> float:
        """The worst measure of how unlike the data it is; infinite where one is not a number."""
        shares = [share for name, share in self.measures.items() if name not in WHOLE]
        return max(shares) if shares and not any(map(math.isnan, shares)) else math.inf

    def __str__(self) -> str:
        """In words."""
        if not self.measures:
            return "not judged"
        reasons = [f"{TESTS[name]} ({self.measures[name]:.2f} of what passes)" for name in self.failed]
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

    def __call__(self, chunks: Tensor, chains: Chains) -> Judged:
        """Judge chunks [M, H, D] of C chains."""
        usual = self.calibration
        merged = consistent(chunks, chains, self.overlap, self.blending)
        errors = reconstruction_errors(self.denoise, merged, chains.key, self.overlap, usual.probes, usual.usual)
        scores = worst(errors, chains)
        steps, gaps = self._steps_and_gaps(merged, chains)
        measures = {"steps": steps, "ends": gaps, "reconstruction": scores / usual.threshold(self.certify)}
        chunkwise = {"reconstruction": errors}
        if self.support is not None:
            chunkwise["support"] = self.support.stray(self.space.places(merged))
            measures["support"] = worst(chunkwise["support"], chains) / self.support.threshold(self.certify)
        if usual.groups:
            paths = list(self.space.groups(merged).values())
            chunkwise["contact"] = alone(paths, usual.groups)
            measures["contact"] = worst(chunkwise["contact"], chains) / usual.most_alone(self.certify)
        rows = zip(*(column.tolist() for column in measures.values()), strict=True)
        where = zip(*(worst_chunk(values, chains) for values in chunkwise.values()), strict=True)
        verdicts = [
            Verdict(dict(zip(measures, row, strict=True)), dict(zip(chunkwise, chunks, strict=True)))
            for row, chunks in zip(rows, where, strict=True)
        ]
        return Judged(scores.tolist(), overlap_distances(chunks, chains, self.overlap).tolist(), verdicts)

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
