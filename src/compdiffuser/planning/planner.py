"""The planner: (start, goal) to a plan, by denoising many candidate chains at once and keeping the best.

The number of chunks K is automatic unless given: candidates of several K share one batch, and the best certified one
wins. Candidates come in waves, fresh ones and refined ones in turn, and a problem with a certified plan takes no part
in the next.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.merge import merge, merged_length, split
from compdiffuser.models.runner import Runner
from compdiffuser.planning.checkpoint import Checkpoint, choose_device, load
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.problems import Chunks, checked, chunk_choices
from compdiffuser.planning.routes import Routes, paced
from compdiffuser.planning.search import Candidate, Search
from compdiffuser.planning.watching import Watch
from compdiffuser.planning.waves import Cell, WaveMaker
from compdiffuser.types import Array, UserError


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
        starts, goals = checked(starts, "start", self.normalizer), checked(goals, "goal", self.normalizer)
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
        start = checked(np.asarray(start)[None], "start", self.normalizer)
        goal = checked(np.asarray(goal)[None], "goal", self.normalizer)
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
        states = paced(way, merged_length(count, horizon, overlap))
        return split(states, count, horizon, overlap).to(self.device)

    def _chunk_choices(
        self, starts: Array, goals: Array, ways: list[Tensor | None], n_chunks: Chunks
    ) -> list[list[int]]:
        """The K that each problem tries."""
        lines = np.linalg.norm(self.normalizer.normalize(starts) - self.normalizer.normalize(goals), axis=1)
        return chunk_choices(n_chunks, lines, ways, self.calibration, self.preset.max_chunks)

    def advance(self, searches: Sequence[Search], watch: Watch | None = None) -> None:
        """The next wave of each search that is not done, all in one batch (one for each origin, where they differ).

        If it fails, no search has changed.
        """
        cells = [Cell(p, search, proposal) for p, search in enumerate(searches) for proposal in search.proposals()]
        maker = WaveMaker(
            self.denoise, self.model, self.normalizer, self.calibration, self.support, self.config, self.scaffold
        )
        made: list[list[Candidate]] = [[] for _ in searches]
        for batch in maker.batches(cells):
            for cell, candidate in zip(batch, maker.made(batch, watch), strict=True):
                made[cell.problem].append(candidate)
        for search, candidates in zip(searches, made, strict=True):
            search.add(candidates)

    def states(self, candidate: Candidate) -> Array:
        """The merged states [T, D] of a candidate, in the data's units."""
        chunks = self.normalizer.denormalize(candidate.chunks)
        return merge(chunks, self.model.overlap, self.config.blending).cpu().numpy()

    def result(self, search: Search, seconds: float = 0.0, keep_candidates: bool = False) -> Plan:
        """The best plan of a search so far; `keep_candidates` adds the others with as many chunks."""
        best = search.best
        candidates = sorted(search.candidates, key=lambda candidate: candidate.number)
        same = [candidate for candidate in candidates if len(candidate.chunks) == len(best.chunks)]
        return Plan(
            states=self.states(best),
            chunks=self.normalizer.denormalize(best.chunks).cpu().numpy(),
            start=search.start,
            goal=search.goal,
            overlap=self.model.overlap,
            score=best.score,
            overlap_distance=best.overlap,
            candidate=best.number,
            scores=np.array([candidate.score for candidate in candidates]),
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
