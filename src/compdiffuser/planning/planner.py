"""The planner: (start, goal) to a plan, by denoising many candidate chains at once and keeping the best.

The number of chunks K is automatic unless given: candidates of several K share one batch, and the best certified one
wins. Candidates come in waves, fresh ones and refined ones in turn, and a problem with a certified plan takes no part
in the next.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merge, split
from compdiffuser.compose.orders import order
from compdiffuser.compose.sample import noised, sample
from compdiffuser.compose.schedule import SamplerConfig, Schedule
from compdiffuser.compose.score import (
    consistent,
    endpoint_gap,
    longest_step,
    overlap_distances,
    reconstruction_errors,
    worst,
)
from compdiffuser.models.runner import Runner
from compdiffuser.planning.checkpoint import Checkpoint, choose_device, load
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.routes import Routes, length, paced
from compdiffuser.planning.search import Candidate, Origin, Proposal, Search
from compdiffuser.planning.watching import Round, Watch
from compdiffuser.types import Array, UserError

Chunks = int | Literal["auto"] | Sequence[int]
CHOICES = 8  # K's that are tried on a known way
MARGIN = 0.1  # how far outside the data's range, in half ranges, a start or goal may lie


@dataclass(frozen=True)
class PlanConfig:
    """How candidates are made and chosen."""

    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    score: Literal["reconstruction", "overlap"] = "reconstruction"
    """Choose by reconstruction error, or by overlap distance as the paper does."""
    blending: str = "exponential"
    """How overlapping chunks are merged."""
    certify: float = 0.995
    """A plan is certified when its worst chunk errs, and strays, no more than this quantile of the data's chunks."""
    wave: int | None = None
    """Candidates per wave; by default 64 on a GPU and 8 on a CPU."""
    refine: float | None = 1.0
    """After each wave the best candidates are noised up to this σ and denoised again. None: never."""
    scaffold: float | Literal["auto"] | None = "auto"
    """Half of the fresh candidates begin from a way through the recorded states, noised up to this σ, or the schedule's
    next level below. None: all from pure noise; "auto": as the planner's preset says."""

    def __post_init__(self) -> None:
        known = self.scaffold is None or self.scaffold == "auto"
        if not known and not (isinstance(self.scaffold, float | int) and self.scaffold > 0):
            raise UserError(f"a scaffold is noised up to a level above 0, not to {self.scaffold}")


class Cell(NamedTuple):
    """One row of a wave: a candidate that a search proposes."""

    problem: int
    search: Search
    proposal: Proposal


class Planner:
    """Plans with one trained chunk model."""

    def __init__(
        self, checkpoint: Checkpoint, device: str = "auto", config: PlanConfig | None = None, compiled: bool = False
    ) -> None:
        self.device = choose_device(device)
        self.config = config or PlanConfig()
        self.model = checkpoint.denoiser.config
        self.normalizer = checkpoint.normalizer
        self.calibration = checkpoint.calibration
        self.support = checkpoint.support.to(self.device) if checkpoint.support else None
        self.record = checkpoint.record
        self.preset = checkpoint.preset
        self.denoise = Runner(checkpoint.denoiser, self.device, compiled=compiled)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        device: str = "auto",
        config: PlanConfig | None = None,
        compiled: bool = False,
    ) -> Planner:
        """Load a shipped planner by its dataset's name, one of yours by its folder, or one from the hub by its id.

        `compiled` spends some seconds at first and then plans about twice as fast, where thousands of plans follow.
        """
        return cls(load(name), device, config, compiled)

    def plan(self, start: Any, goal: Any, **options: Any) -> Plan:
        """One plan; options as for `plan_batch`."""
        return self.plan_batch(np.asarray(start)[None], np.asarray(goal)[None], **options)[0]

    def plan_batch(
        self,
        starts: Any,
        goals: Any,
        n_chunks: Chunks = "auto",
        n_candidates: int | Sequence[int] = 64,
        seed: int | Sequence[int] = 0,
        keep_candidates: bool = False,
        watch: Watch | None = None,
    ) -> list[Plan]:
        """P plans: starts [P, D], goals [P, D] in the data's units.

        `n_chunks` is "auto", one K, or one K per problem; `n_candidates` the most fresh ones that are made for a
        problem, refined ones come on top; it and `seed` are one for all or one per problem. The same seed gives the
        same plan, alone or in a batch. `watch` sees the batch after every round; where it raises, planning ends.
        """
        begun = time.perf_counter()
        starts, goals = self._checked(starts, "start"), self._checked(goals, "goal")
        if len(starts) != len(goals):
            raise UserError(f"{len(starts)} starts were given with {len(goals)} goals")
        most = [n_candidates] * len(starts) if isinstance(n_candidates, int) else [int(n) for n in n_candidates]
        if len(most) != len(starts):
            raise UserError(f"{len(most)} numbers of candidates were given for {len(starts)} problems")
        if most and min(most) < 1:
            raise UserError(f"candidates must be at least 1, not {min(most)}")
        seeds = [seed] * len(starts) if isinstance(seed, int) else [int(s) for s in seed]
        if len(seeds) != len(starts):
            raise UserError(f"{len(seeds)} seeds were given for {len(starts)} problems")
        ways = self._ways(starts, goals)
        choices = self._chunk_choices(starts, goals, ways, n_chunks)
        searches = [self._search(*problem) for problem in zip(starts, goals, ways, choices, most, seeds, strict=True)]
        while not all(search.done for search in searches):
            self.advance(searches, watch)
        seconds = time.perf_counter() - begun
        return [self.result(search, seconds, keep_candidates) for search in searches]

    def search(
        self, start: Any, goal: Any, n_chunks: int | Literal["auto"] = "auto", n_candidates: int = 64, seed: int = 0
    ) -> Search:
        """A problem to be planned wave by wave with `advance`, beside others that come and go; `result` is its plan."""
        start, goal = self._checked(np.asarray(start)[None], "start"), self._checked(np.asarray(goal)[None], "goal")
        ways = self._ways(start, goal)
        choices = self._chunk_choices(start, goal, ways, n_chunks)[0]
        return self._search(start[0], goal[0], ways[0], choices, n_candidates, seed)

    def _search(
        self, start: Array, goal: Array, way: Tensor | None, choices: list[int], most: int, seed: int
    ) -> Search:
        config = self.config
        wave = config.wave or (64 if self.device.type == "cuda" else 8)
        scaffold = None if way is None else lambda k: self._laid(way, k)
        return Search(start, goal, choices, most, seed, wave, config.refine is not None, config.score, scaffold)

    @property
    def scaffold(self) -> float | None:
        """σ up to which scaffolds are noised; None where all fresh candidates begin from pure noise."""
        if self.support is None:
            return None
        return self.preset.scaffold if self.config.scaffold == "auto" else self.config.scaffold

    @cached_property
    def routes(self) -> Routes | None:
        """Ways through the recorded states, on the host: small, and found while the device plans."""
        return None if self.support is None else Routes.through(self.support.to(torch.device("cpu")), self.model.dim)

    def _ways(self, starts: Array, goals: Array) -> list[Tensor | None]:
        """The way [n, D] of each problem, where scaffolds are asked for and the data knows one."""
        if self.scaffold is None or self.routes is None or not len(starts):
            return [None] * len(starts)
        return self.routes.ways(*(self.normalizer.normalize(torch.from_numpy(ends)) for ends in (starts, goals)))

    def _laid(self, way: Tensor, count: int) -> Tensor:
        """A way [n, D] as K chunks [K, H, D] at an even pace."""
        horizon, overlap = self.model.horizon, self.model.overlap
        states = paced(way, count * horizon - (count - 1) * overlap)
        return split(states, count, horizon, overlap).to(self.device)

    def advance(self, searches: Sequence[Search], watch: Watch | None = None) -> None:
        """The next wave of each search that is not done, all in one batch (one for each origin, where they differ).

        If it fails, no search has changed.
        """
        cells = [Cell(p, search, proposal) for p, search in enumerate(searches) for proposal in search.proposals()]
        made: list[list[Candidate]] = [[] for _ in searches]
        for origin in get_args(Origin):
            for batch in self._batches([cell for cell in cells if cell.proposal.origin == origin]):
                for cell, candidate in zip(batch, self._denoised(batch, watch), strict=True):
                    made[cell.problem].append(candidate)
        for search, candidates in zip(searches, made, strict=True):
            search.add(candidates)

    def _checked(self, states: Any, what: str) -> Array:
        """States [P, D] as given, or a sentence about the first that cannot be planned."""
        try:
            array = np.asarray(states, dtype=np.float32)
        except (TypeError, ValueError):
            raise UserError(f"a {what} is {self.model.dim} numbers, not {states!r}") from None
        if array.ndim != 2 or array.shape[1] != self.model.dim:
            raise UserError(
                f"a {what} has {self.model.dim} dimensions here, but an array of {array.shape[1:]} was given"
            )
        for state in array:
            if not np.isfinite(state).all():
                raise UserError(f"the {what} {state.tolist()} is not finite")
            if (np.abs(self.normalizer.normalize(state)) > 1 + MARGIN).any():
                low, high = self.normalizer.low, self.normalizer.high
                limits = " × ".join(f"[{a:.2f}, {b:.2f}]" for a, b in zip(low, high, strict=True))
                raise UserError(f"the {what} {state.round(3).tolist()} lies outside the data, which covers {limits}")
        return array

    def _chunk_choices(
        self, starts: Array, goals: Array, ways: list[Tensor | None], n_chunks: Chunks
    ) -> list[list[int]]:
        """The K that each problem tries."""
        if n_chunks == "auto":
            lines = np.linalg.norm(self.normalizer.normalize(starts) - self.normalizer.normalize(goals), axis=1)
            return [self._automatic(float(line), way) for line, way in zip(lines, ways, strict=True)]
        if isinstance(n_chunks, str):
            raise UserError(f"chunks must be 'auto' or a number, not '{n_chunks}'")
        given = [n_chunks] * len(starts) if isinstance(n_chunks, int) else [int(k) for k in n_chunks]
        if len(given) != len(starts):
            raise UserError(f"{len(given)} numbers of chunks were given for {len(starts)} problems")
        for k in given:
            if k < 1:
                raise UserError(f"the number of chunks must be at least 1, not {k}")
        return [[k] for k in given]

    def _automatic(self, line: float, way: Tensor | None) -> list[int]:
        """Every K from the fewest chunks that could bridge the distance; on a known way, some of them up to thrice it.

        Chunks seldom go half as far as the furthest do, and those of a longer chain only loiter.
        """
        most = self.preset.max_chunks
        least = min(self.calibration.fewest_chunks(line if way is None else length(way)), most)
        if way is None:
            return list(range(least, most + 1))
        return sorted({round(k) for k in np.linspace(least, min(3 * least, most), CHOICES)})

    def _batches(self, cells: list[Cell]) -> Iterator[list[Cell]]:
        """Proposals that fit in memory together."""
        most = 64 * self.denoise.most_rows if self.device.type == "cuda" else 4096
        batch: list[Cell] = []
        rows = 0
        for cell in cells:
            if batch and rows + cell.proposal.n_chunks > most:
                yield batch
                batch, rows = [], 0
            batch.append(cell)
            rows += cell.proposal.n_chunks
        if batch:
            yield batch

    def _denoised(self, cells: list[Cell], watch: Watch | None) -> list[Candidate]:
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
        schedule = Schedule.build(levels, sampler, self.device, highest)
        initial = None
        if parents:
            initial = noised(consistent(torch.cat(parents), chains, overlap), chains, schedule.sigma[0])
        told = watch and Round.teller(
            watch,
            chains,
            [cell.problem for cell in cells],
            [cell.proposal.number for cell in cells],
            origin,
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
        return self.normalizer.normalize(torch.tensor(np.stack(states), device=self.device))

    def states(self, candidate: Candidate) -> Array:
        """The merged states [T, D] of a candidate, in the data's units."""
        chunks = self.normalizer.denormalize(candidate.chunks)
        return merge(chunks, self.model.overlap, self.config.blending).cpu().numpy()

    def result(self, search: Search, seconds: float = 0.0, keep_candidates: bool = False) -> Plan:
        """The best plan of a search so far; `keep_candidates` adds the others with as many chunks."""
        best = search.best
        same = [c for c in search.candidates if len(c.chunks) == len(best.chunks)]
        return Plan(
            states=self.states(best),
            chunks=self.normalizer.denormalize(best.chunks).cpu().numpy(),
            start=search.start,
            goal=search.goal,
            overlap=self.model.overlap,
            score=best.score,
            overlap_distance=best.overlap,
            scores=np.array([candidate.score for candidate in search.candidates]),
            confidence=self.calibration.confidence(best.score, len(best.chunks)),
            ok=best.certified,
            seconds=seconds,
            maze=self.preset.maze or None,
            stride=self.preset.stride,
            candidates=np.stack([self.states(candidate) for candidate in same]) if keep_candidates else None,
        )

    def with_sampler(self, **changes: Any) -> Planner:
        """The same planner, sampling differently: `with_sampler(order="autoregressive", steps=50)`."""
        return self.with_config(sampler=replace(self.config.sampler, **changes))

    def with_config(self, **changes: Any) -> Planner:
        """The same planner with other settings: `with_config(scaffold=None, certify=0.99)`."""
        if self.scaffold is not None:
            _ = self.routes  # made once, for all copies
        other = object.__new__(Planner)
        other.__dict__.update(self.__dict__)
        other.config = replace(self.config, **changes)
        return other
