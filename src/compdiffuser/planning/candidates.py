"""Waves of candidates: what many searches propose, denoised together and judged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merge
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.planning.judge import Judge
from compdiffuser.planning.progress import Round, Watch
from compdiffuser.planning.sampler import Sampler
from compdiffuser.planning.search import Candidate, Origin, Proposal, Search
from compdiffuser.planning.steering.guide import Guide
from compdiffuser.planning.steering.steering import Course, cost_of
from compdiffuser.types import Array

CPU_ROWS = 4096
"""Chunks that a CPU denoises in one batch."""


SEED_BITS = 36
"""Of a row's key, those of its search's seed; its candidate and its chunk have the others."""


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
    led: tuple[int, ...] = ()
    """Columns of a state in which scaffolds lead."""

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
            torch.tensor([folded(draft.search.seed) * 65_536 + draft.proposal.number for draft in drafts]),
        )
        origin = drafts[0].proposal.origin
        numbers = [draft.proposal.number for draft in drafts]
        parents = [draft.proposal.parent for draft in drafts if draft.proposal.parent is not None]
        told = watch and Round.teller(watch, chains, [draft.problem for draft in drafts], numbers, origin)
        courses = [draft.search.course for draft in drafts]
        sampler = self.sampler.leading(self.led) if origin == "scaffold" else self.sampler
        chunks = sampler(
            chains, self.highest[origin], torch.cat(parents) if parents else None, told, self._guide(courses, chains),
            self._held(drafts, chains),
        )  # fmt: skip
        judged = self.judge(chunks, chains, courses, self._unchanged(drafts, chains))
        lengths, costs = self._lengths(chunks, chains), self._costs(chunks, chains, courses)
        rows = zip(numbers, judged.scores, judged.overlaps, judged.verdicts, wanted, strict=True)
        return [
            Candidate(
                number, chunks[chains.rows(chain)], score, overlap, verdict, origin, goal, lengths[chain], costs[chain],
                tuple(judged.broken[chain]) if judged.broken else (),
            )
            for chain, (number, score, overlap, verdict, goal) in enumerate(rows)
        ]  # fmt: skip

    def _guide(self, courses: Sequence[Course | None], chains: Chains) -> Guide | None:
        """What steers the estimates of these chains; None where nothing does."""
        if not any(courses) or self.judge.ground is None:
            return None
        model = self.sampler.denoise.denoiser.config
        return Guide(courses, chains, self.judge.ground, (model.horizon, model.overlap))

    def _held(self, drafts: Sequence[Draft], chains: Chains) -> Tensor | None:
        """The rows [M] whose parents stay as they are."""
        if not any(draft.proposal.held for draft in drafts):
            return None
        held = [draft.proposal.held or (False,) * draft.proposal.n_chunks for draft in drafts]
        return torch.tensor([each for row in held for each in row], device=chains.chain.device)

    def _unchanged(self, drafts: Sequence[Draft], chains: Chains) -> Tensor | None:
        """The rows [M] of plans under repair that are as they were certified: held between others that are."""
        if not any(draft.search.held for draft in drafts):
            return None
        none = {draft.proposal.n_chunks: (False,) * draft.proposal.n_chunks for draft in drafts}
        kept = [draft.search.held.get(n, none[n]) for draft in drafts for n in (draft.proposal.n_chunks,)]
        held = torch.tensor([each for row in kept for each in row], device=chains.chain.device)
        return held & held[chains.left] & held[chains.right]

    def _lengths(self, chunks: Tensor, chains: Chains) -> list[float]:
        """How far the agent goes in each chain, normalized."""
        places = self.judge.space.agent(chunks)
        steps = places.diff(dim=1).norm(dim=-1)
        own = torch.where(chains.has_right, steps[:, : chunks.shape[1] - self.judge.overlap].sum(1), steps.sum(1))
        # Added on the CPU: a GPU adds in an order of its own.
        chain = torch.arange(len(chains.lengths)).repeat_interleave(chains.lengths)
        return own.new_zeros(len(chains.lengths), device="cpu").index_add_(0, chain, own.cpu()).tolist()

    def _costs(self, chunks: Tensor, chains: Chains, courses: Sequence[Course | None]) -> list[float]:
        """What each chain costs, where that is asked for."""
        costs = [0.0] * len(courses)
        for chain, course in enumerate(courses):
            if course is not None and course.steering.prefer is not None:
                merged = merge(chunks[chains.rows(chain)], self.judge.overlap, self.judge.blending)
                costs[chain] = float(cost_of(course.steering.prefer, self.normalizer.denormalize(merged)[None])[0])
        return costs

    def _normalized(self, states: list[Array]) -> Tensor:
        return self.normalizer.normalize(torch.tensor(np.stack(states), device=self.sampler.denoise.device))


def folded(seed: int) -> int:
    """A seed that keys have room for: small ones as they are, of others a hash, which hardly two share."""
    most = 2 ** (SEED_BITS - 1)
    if -most <= seed < most:
        return seed
    digest = hashlib.blake2b(str(seed).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) >> 64 - SEED_BITS
