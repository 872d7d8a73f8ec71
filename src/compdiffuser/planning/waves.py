"""A wave of candidates: what many searches propose, denoised together, merged and scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.orders import order
from compdiffuser.compose.sample import noised, sample
from compdiffuser.compose.schedule import Schedule
from compdiffuser.compose.score import (
    consistent,
    endpoint_gap,
    longest_step,
    overlap_distances,
    reconstruction_errors,
    worst,
)
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.models.denoiser import DenoiserConfig
from compdiffuser.models.runner import Runner
from compdiffuser.planning.calibration import Calibration
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.search import Candidate, Origin, Proposal, Search
from compdiffuser.planning.support import Support
from compdiffuser.planning.watching import Round, Watch
from compdiffuser.types import Array


class Cell(NamedTuple):
    """One row of a wave: a candidate that a search proposes."""

    problem: int
    search: Search
    proposal: Proposal


@dataclass(frozen=True)
class WaveMaker:
    """Makes candidates of proposals, as a planner is set up to."""

    denoise: Runner
    model: DenoiserConfig
    normalizer: Normalizer
    calibration: Calibration
    support: Support | None
    config: PlanConfig
    scaffold: float | None
    """σ up to which scaffolds are noised."""

    def batches(self, cells: Sequence[Cell]) -> Iterator[list[Cell]]:
        """Cells of one origin that fit in memory together."""
        most = 64 * self.denoise.most_rows if self.denoise.device.type == "cuda" else 4096
        for origin in get_args(Origin):
            batch: list[Cell] = []
            rows = 0
            for cell in (cell for cell in cells if cell.proposal.origin == origin):
                if batch and rows + cell.proposal.n_chunks > most:
                    yield batch
                    batch, rows = [], 0
                batch.append(cell)
                rows += cell.proposal.n_chunks
            if batch:
                yield batch

    def made(self, cells: Sequence[Cell], watch: Watch | None = None) -> list[Candidate]:
        """The proposed candidates, all of one origin, made in one batch and scored."""
        chains = Chains.build(
            self._normalized([cell.search.start for cell in cells]),
            self._normalized([cell.search.goal for cell in cells]),
            torch.tensor([cell.proposal.n_chunks for cell in cells]),
            # A candidate's noise depends on its seed and number, not on the batch.
            torch.tensor([cell.search.seed * 65_536 + cell.proposal.number for cell in cells]),
        )
        sampler, overlap = self.config.sampler, self.model.overlap
        origin = cells[0].proposal.origin
        highest = {"noise": None, "scaffold": self.scaffold, "refined": self.config.refine}[origin]
        parents = [cell.proposal.parent for cell in cells if cell.proposal.parent is not None]
        levels = self.denoise.denoiser.formulation.sampling_levels
        schedule = Schedule.build(levels, sampler, chains.key.device, highest)
        initial = None
        if parents:
            initial = noised(consistent(torch.cat(parents), chains, overlap), chains, schedule.sigma[0])
        told = watch and Round.teller(
            watch, chains, [cell.problem for cell in cells], [cell.proposal.number for cell in cells], origin
        )
        chunks = sample(
            self.denoise, chains, schedule, order(sampler.order)(chains),
            horizon=self.model.horizon, overlap=overlap, guidance=sampler.guidance, initial=initial, watch=told,
        )  # fmt: skip
        merged = consistent(chunks, chains, overlap)
        usual = self.calibration
        errors = reconstruction_errors(self.denoise, merged, chains.key, overlap, usual.probes, usual.usual)
        scores = worst(errors, chains)
        complete = longest_step(merged, chains) <= usual.longest_step()
        complete &= endpoint_gap(merged, chains) <= usual.widest_gap()
        excess = scores / usual.threshold(self.config.certify)
        if self.support is not None:
            strays = worst(self.support.stray(merged), chains)
            excess = torch.maximum(excess, strays / self.support.threshold(self.config.certify))
        overlaps = overlap_distances(chunks, chains, overlap)
        columns = (column.tolist() for column in (scores, overlaps, complete, excess))
        return [
            Candidate(cell.proposal.number, chunks[chains.rows(index)], score, gap, whole, over, origin)
            for index, (cell, score, gap, whole, over) in enumerate(zip(cells, *columns, strict=True))
        ]

    def _normalized(self, states: list[Array]) -> Tensor:
        return self.normalizer.normalize(torch.tensor(np.stack(states), device=self.denoise.device))
