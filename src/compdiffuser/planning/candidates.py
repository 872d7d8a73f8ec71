"""Waves of candidates: what many searches propose, denoised together and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.planning.judge import Judge
from compdiffuser.planning.progress import Round, Watch
from compdiffuser.planning.sampler import Sampler
from compdiffuser.planning.search import Candidate, Origin, Proposal, Search
from compdiffuser.types import Array

CPU_ROWS = 4096
"""Chunks that a CPU denoises in one batch."""


class Draft(NamedTuple):
    """What one search proposes as one of its candidates."""

    problem: int
    search: Search
    proposal: Proposal


@dataclass(frozen=True)
class CandidateMaker:
    """Makes candidates of drafts, as a planner is set up to."""

    sampler: Sampler
    judge: Judge
    normalizer: Normalizer
    highest: Mapping[Origin, float | None]
    """σ up to which noise is added to what candidates begin from; None: they begin from noise alone."""

    def batches(self, drafts: Sequence[Draft]) -> Iterator[list[Draft]]:
        """Drafts, all of one origin, that fit in memory together."""
        denoise = self.sampler.denoise
        most = 64 * denoise.most_rows if denoise.device.type == "cuda" else CPU_ROWS
        batch: list[Draft] = []
        rows = 0
        for draft in drafts:
            if batch and rows + draft.proposal.n_chunks > most:
                yield batch
                batch, rows = [], 0
            batch.append(draft)
            rows += draft.proposal.n_chunks
        if batch:
            yield batch

    def made(self, drafts: Sequence[Draft], watch: Watch | None = None) -> list[Candidate]:
        """The drafted candidates, all of one origin, made in one batch and judged."""
        wanted = [draft.proposal.goal for draft in drafts]
        goals = [draft.search.goal if goal is None else goal for draft, goal in zip(drafts, wanted, strict=True)]
        chains = Chains.build(
            self._normalized([draft.search.start for draft in drafts]),
            self._normalized(goals),
            torch.tensor([draft.proposal.n_chunks for draft in drafts]),
            # A candidate's noise depends on its seed and number, not on the batch.
            torch.tensor([draft.search.seed * 65_536 + draft.proposal.number for draft in drafts]),
        )
        origin = drafts[0].proposal.origin
        numbers = [draft.proposal.number for draft in drafts]
        parents = [draft.proposal.parent for draft in drafts if draft.proposal.parent is not None]
        told = watch and Round.teller(watch, chains, [draft.problem for draft in drafts], numbers, origin)
        chunks = self.sampler(chains, self.highest[origin], torch.cat(parents) if parents else None, told)
        judged = self.judge(chunks, chains)
        rows = zip(numbers, judged.scores, judged.overlaps, judged.verdicts, wanted, strict=True)
        return [
            Candidate(number, chunks[chains.rows(chain)], score, overlap, verdict, origin, goal)
            for chain, (number, score, overlap, verdict, goal) in enumerate(rows)
        ]

    def _normalized(self, states: list[Array]) -> Tensor:
        return self.normalizer.normalize(torch.tensor(np.stack(states), device=self.sampler.denoise.device))
