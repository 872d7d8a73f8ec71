"""The planner: (start, goal) to a plan, by denoising many candidate chains at once and keeping the best.

The number of chunks K is automatic unless given: candidates of several K share one batch, and the best certified one
wins. Candidates come in waves, and a problem with a certified plan takes no part in the next.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merge
from compdiffuser.compose.orders import order
from compdiffuser.compose.sample import sample
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
from compdiffuser.planning.candidates import Candidate, Found
from compdiffuser.planning.checkpoint import Checkpoint, choose_device, load
from compdiffuser.planning.plan import Plan
from compdiffuser.types import Array, UserError

Chunks = int | Literal["auto"] | Sequence[int]
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
    """A plan is certified when its worst chunk errs no more than this quantile of the data's chunks."""
    wave: int | None = None
    """Candidates per wave; by default 64 on a GPU and 8 on a CPU."""


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
        n_candidates: int = 64,
        seed: int | Sequence[int] = 0,
        keep_candidates: bool = False,
        watch: Callable[[int, int, Tensor], None] | None = None,
    ) -> list[Plan]:
        """P plans: starts [P, D], goals [P, D] in the data's units.

        `n_chunks` is "auto", one K, or one K per problem; `n_candidates` the most candidates made for a problem; `seed`
        one for all, or one per problem. The same seed gives the same plan, alone or in a batch. `watch` sees (round,
        rounds, estimates [M, H, D]).
        """
        begun = time.perf_counter()
        starts, goals = self._checked(starts, "start"), self._checked(goals, "goal")
        if len(starts) != len(goals):
            raise UserError(f"{len(starts)} starts were given with {len(goals)} goals")
        if n_candidates < 1:
            raise UserError(f"candidates must be at least 1, not {n_candidates}")
        choices = self._chunk_choices(starts, goals, n_chunks)
        seeds = [seed] * len(starts) if isinstance(seed, int) else [int(s) for s in seed]
        if len(seeds) != len(starts):
            raise UserError(f"{len(seeds)} seeds were given for {len(starts)} problems")
        found = [Found() for _ in choices]
        wave = self.config.wave or (64 if self.device.type == "cuda" else 8)
        for begin in range(0, n_candidates, wave):
            pending = [p for p, best in enumerate(found) if not best.certified]
            if not pending:
                break
            numbers = range(begin, min(begin + wave, n_candidates))
            for problem in pending:
                choices[problem] = found[problem].promising(choices[problem])
            for group in self._groups(pending, choices, len(numbers)):
                self._propose(group, starts, goals, choices, numbers, seeds, found, watch)
        seconds = time.perf_counter() - begun
        return [
            self._plan(best, start, goal, seconds, keep_candidates)
            for best, start, goal in zip(found, starts, goals, strict=True)
        ]

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

    def _chunk_choices(self, starts: Array, goals: Array, n_chunks: Chunks) -> list[list[int]]:
        """The K that each problem tries."""
        if n_chunks == "auto":
            most = self.preset.max_chunks
            distances = np.linalg.norm(self.normalizer.normalize(starts) - self.normalizer.normalize(goals), axis=1)
            fewest = [min(self.calibration.fewest_chunks(float(distance)), most) for distance in distances]
            return [list(range(least, most + 1)) for least in fewest]
        if isinstance(n_chunks, str):
            raise UserError(f"chunks must be 'auto' or a number, not '{n_chunks}'")
        given = [n_chunks] * len(starts) if isinstance(n_chunks, int) else [int(k) for k in n_chunks]
        if len(given) != len(starts):
            raise UserError(f"{len(given)} numbers of chunks were given for {len(starts)} problems")
        for k in given:
            if k < 1:
                raise UserError(f"the number of chunks must be at least 1, not {k}")
        return [[k] for k in given]

    def _groups(self, problems: list[int], choices: list[list[int]], candidates: int) -> list[list[int]]:
        """Problems that fit in memory together."""
        most = 64 * self.denoise.most_rows if self.device.type == "cuda" else 4096
        groups: list[list[int]] = [[]]
        rows = 0
        for problem in problems:
            more = candidates * max(choices[problem])
            if groups[-1] and rows + more > most:
                groups.append([])
                rows = 0
            groups[-1].append(problem)
            rows += more
        return groups

    def _propose(
        self, problems: list[int], starts: Array, goals: Array, choices: list[list[int]], numbers: range,
        seeds: list[int], found: list[Found], watch: Callable[[int, int, Tensor], None] | None,
    ) -> None:  # fmt: skip
        """Denoise candidates `numbers` of each problem in one batch, and keep what is best."""
        # Candidate b tries the K's in turn; its noise depends on the seed and b, not on the batch.
        cells = [(p, choices[p][b % len(choices[p])], seeds[p] * 65_536 + b) for p in problems for b in numbers]
        owner = np.array([p for p, _, _ in cells])
        chains = Chains.build(
            self.normalizer.normalize(torch.tensor(starts[owner], device=self.device)),
            self.normalizer.normalize(torch.tensor(goals[owner], device=self.device)),
            torch.tensor([k for _, k, _ in cells]),
            torch.tensor([key for _, _, key in cells]),
        )
        sampler = self.config.sampler
        schedule = Schedule.build(self.denoise.denoiser.formulation.sampling_levels, sampler, self.device)
        horizon, overlap = self.model.horizon, self.model.overlap
        chunks = sample(
            self.denoise, chains, schedule, order(sampler.order)(chains),
            horizon=horizon, overlap=overlap, guidance=sampler.guidance, watch=watch,
        )  # fmt: skip
        merged = consistent(chunks, chains, overlap)
        usual = self.calibration
        errors = reconstruction_errors(self.denoise, merged, chains.key, overlap, usual.probes, usual.usual)
        scores = worst(errors, chains)
        certified = scores <= self.calibration.threshold(self.config.certify)
        certified &= longest_step(merged, chains) <= self.calibration.longest_step()
        certified &= endpoint_gap(merged, chains) <= self.calibration.widest_gap()
        overlaps = overlap_distances(chunks, chains, overlap)
        columns = zip(owner, scores.tolist(), overlaps.tolist(), certified.tolist(), strict=True)
        for index, (problem, score, gap, good) in enumerate(columns):
            found[problem].candidates.append(Candidate(chunks[chains.rows(index)], score, gap, good))
        for problem in problems:
            found[problem].choose(self.config.score)

    def _plan(self, found: Found, start: Array, goal: Array, seconds: float, keep: bool) -> Plan:
        chosen = found.candidates[found.best]
        overlap = self.model.overlap
        chunks = self.normalizer.denormalize(chosen.chunks)

        def merged(candidate: Candidate) -> Array:
            states = merge(self.normalizer.denormalize(candidate.chunks), overlap, self.config.blending)
            return states.cpu().numpy()

        same = [c for c in found.candidates if len(c.chunks) == len(chosen.chunks)]
        return Plan(
            states=merged(chosen),
            chunks=chunks.cpu().numpy(),
            start=start,
            goal=goal,
            overlap=overlap,
            score=chosen.score,
            overlap_distance=chosen.overlap,
            scores=np.array([candidate.score for candidate in found.candidates]),
            confidence=self.calibration.confidence(chosen.score, len(chosen.chunks)),
            ok=found.certified,
            seconds=seconds,
            maze=self.preset.maze or None,
            candidates=np.stack([merged(candidate) for candidate in same]) if keep else None,
        )

    def with_sampler(self, **changes: Any) -> Planner:
        """The same planner, sampling differently: `with_sampler(order="autoregressive", steps=50)`."""
        other = object.__new__(Planner)
        other.__dict__.update(self.__dict__)
        other.config = replace(self.config, sampler=replace(self.config.sampler, **changes))
        return other
