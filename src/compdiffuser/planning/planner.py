"""The planner: (start, goal) to a plan, by denoising many candidate chains at once and keeping the best.

The number of chunks K is automatic unless given: candidates of several K share one batch, and the best certified one
wins. Candidates come in waves, fresh ones and refined ones in turn, and a problem with a certified plan takes no part
in the next.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.merge import merge, merged_length, split
from compdiffuser.models.runner import Runner
from compdiffuser.planning.candidates import CandidateMaker, Draft
from compdiffuser.planning.carrying import Carrying, roadmap_of
from compdiffuser.planning.checkpoint import Checkpoint, load
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.goals import endings, whole_goals
from compdiffuser.planning.judge import Judge
from compdiffuser.planning.moves import split_groups
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.problem import MOST_CANDIDATES, Chunks, checked, chunk_choices, distances, one_each
from compdiffuser.planning.progress import Watch
from compdiffuser.planning.roadmap import Roadmap, length, paced
from compdiffuser.planning.sampler import Sampler
from compdiffuser.planning.search import Candidate, Origin, Search
from compdiffuser.planning.support import Support
from compdiffuser.runs import choose_device
from compdiffuser.types import Array, UserError

WAVE = {"cuda": 64, "cpu": 8}
"""Candidates at a time that a device makes well."""


class Planner:
    """Plans with one trained chunk model."""

    def __init__(
        self, checkpoint: Checkpoint, device: str = "auto", config: PlanConfig | None = None, compiled: bool = False
    ) -> None:
        self.device = choose_device(device)
        self.model = checkpoint.denoiser.config
        self.normalizer = checkpoint.normalizer
        self.calibration = checkpoint.calibration
        self.support = checkpoint.support.to(self.device) if checkpoint.support else None
        self.record = checkpoint.record
        self.preset = checkpoint.preset
        self.space = checkpoint.preset.space
        self.asked = checkpoint.preset.domain.asked
        self.denoise = Runner(checkpoint.denoiser, self.device, compiled=compiled)
        self._set_up(config or PlanConfig())

    def _set_up(self, config: PlanConfig) -> None:
        self.config = config
        self.scaffold = self._scaffold_level()
        overlap = self.model.overlap
        judge = Judge(
            self.denoise, self.calibration, self.support, self.space, overlap, config.certify, config.blending,
            self.asked,
        )  # fmt: skip
        highest: dict[Origin, float | None] = {"noise": None, "scaffold": self.scaffold, "refined": config.refine}
        self._maker = CandidateMaker(
            Sampler(self.denoise, config.sampler, config.blending), judge, self.normalizer, highest
        )

    def _scaffold_level(self) -> float | None:
        """σ up to which scaffolds are noised; None where all fresh candidates begin from pure noise.

        A scaffold is a way of positions, so that there is none for plans of postures. Raises UserError where one is
        asked for by its level.
        """
        asked = self.config.scaffold
        if asked not in ("auto", None) and not self.space.only_positions:
            raise UserError(f"a scaffold of level {asked} was asked for, but plans here are not of positions alone")
        if self.support is None or not self.space.only_positions:
            return None
        return self.preset.chunks.scaffold if asked == "auto" else asked

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

        Where the world asks only for some groups at the goal, such as a ball, goals may be their places alone, [P, n];
        of a goal [P, D], what is not asked for is left open.

        `n_chunks` is "auto", one K, or one K per problem; `n_candidates` the most fresh ones that are made for a
        problem, refined ones come on top; it and `seed` are one for all or one per problem. The same seed gives the
        same plan, alone or in a batch. `watch` sees the batch after every round; where it raises, planning ends.
        """
        begun = time.perf_counter()
        searches = self.searches(starts, goals, n_chunks, n_candidates, seed)
        while not all(search.done for search in searches):
            self.advance(searches, watch)
        seconds = time.perf_counter() - begun
        return [self.result(search, seconds, keep_candidates) for search in searches]

    def search(
        self, start: Any, goal: Any, n_chunks: int | Literal["auto"] = "auto", n_candidates: int = 64, seed: int = 0
    ) -> Search:
        """A problem to be planned wave by wave with `advance`, beside others that come and go; `result` is its plan."""
        return self.searches(np.asarray(start)[None], np.asarray(goal)[None], n_chunks, n_candidates, seed)[0]

    def searches(
        self, starts: Any, goals: Any, n_chunks: Chunks, n_candidates: int | Sequence[int], seed: int | Sequence[int]
    ) -> list[Search]:
        """The problems of `plan_batch`, checked, with their K and scaffolds. Raises UserError for what cannot be."""
        starts = checked(starts, "start", self.space, self.normalizer)
        goals = whole_goals(goals, starts, self.space, self.asked)
        goals = checked(goals, "goal", self.space, self.normalizer, self.asked)
        if len(starts) != len(goals):
            raise UserError(f"{len(starts)} starts were given with {len(goals)} goals")
        most = one_each(n_candidates, len(starts), "numbers of candidates", 1, MOST_CANDIDATES)
        seeds = one_each(seed, len(starts), "seeds")
        ends = endings(goals, self.normalizer, self._recorded, self.space, self.asked)
        targets = np.stack([found[0] for found in ends]) if ends else goals
        places = [self.space.places(self.normalizer.normalize(torch.from_numpy(each))) for each in (starts, targets)]
        ways = self._ways(*places)
        lines = distances(places[0], places[1], self.space, self.calibration)
        far = [way if way is None else [length(part) for part in split_groups(way, self.space.sizes)] for way in ways]
        choices = chunk_choices(n_chunks, lines, far, self.calibration, self.preset.chunks.most)
        wave = self.config.wave or WAVE.get(self.device.type, WAVE["cpu"])
        refine, score = self.config.refine is not None, self.config.score
        laid = [self._scaffolds(way, ks) for way, ks in zip(ways, choices, strict=True)]
        problems = zip(starts, goals, choices, most, seeds, laid, ends, strict=True)
        return [
            Search(start, goal, ks, count, number, wave, refine, score, scaffolds, endings=found)
            for start, goal, ks, count, number, scaffolds, found in problems
        ]

    @cached_property
    def _recorded(self) -> Support | None:
        """The recorded segments on the CPU, for what is found while the device plans."""
        return None if self.support is None else self.support.to(torch.device("cpu"))

    @cached_property
    def roadmap(self) -> Roadmap | Carrying | None:
        """Ways through the recorded states; small."""
        return None if self._recorded is None else roadmap_of(self._recorded, self.calibration)

    def _ways(self, starts: Tensor, goals: Tensor) -> list[Tensor | None]:
        """The way [n, P] of each problem, where scaffolds are asked for and the data knows one."""
        if self.scaffold is None or self.roadmap is None or not len(starts):
            return [None] * len(starts)
        return self.roadmap.ways(starts, goals)

    def _scaffolds(self, way: Tensor | None, choices: Sequence[int]) -> dict[int, Tensor]:
        """A way [n, D] at an even pace as K chunks [K, H, D], for each K; nothing where there is no way."""
        if way is None:
            return {}
        horizon, overlap = self.model.horizon, self.model.overlap
        paths = {k: paced(way, merged_length(k, horizon, overlap), self.space.sizes) for k in choices}
        return {k: split(states, k, horizon, overlap).to(self.device) for k, states in paths.items()}

    def advance(self, searches: Sequence[Search], watch: Watch | None = None) -> None:
        """The next wave of each search that is not done, all in one batch (one for each origin, where they differ).

        If it fails, no search has changed.
        """
        drafts = [Draft(p, search, proposal) for p, search in enumerate(searches) for proposal in search.proposals()]
        made: list[list[Candidate]] = [[] for _ in searches]
        for origin in get_args(Origin):
            # Asked once for each origin, so that a plan does not depend on how batches are cut.
            settled = [search.settled(found) for search, found in zip(searches, made, strict=True)]
            wanted = [draft for draft in drafts if draft.proposal.origin == origin and not settled[draft.problem]]
            for batch in self._maker.batches(wanted):
                for draft, candidate in zip(batch, self._maker.made(batch, watch), strict=True):
                    made[draft.problem].append(candidate)
        for search, found in zip(searches, made, strict=True):
            search.add(sorted(found, key=lambda candidate: candidate.number))

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
            goal=search.goal if best.goal is None else best.goal,
            overlap=self.model.overlap,
            score=best.score,
            overlap_distance=best.overlap,
            candidate=best.number,
            scores=np.array([candidate.score for candidate in candidates]),
            confidence=self.calibration.confidence(best.score, len(best.chunks)),
            verdict=best.verdict,
            origin=best.origin,
            seconds=seconds,
            space=self.space,
            maze=self.preset.maze,
            stride=self.preset.chunks.stride,
            step_seconds=self.record.get("step_seconds"),
            candidates=np.stack([self.states(candidate) for candidate in same]) if keep_candidates else None,
        )

    def with_sampler(self, **changes: Any) -> Planner:
        """The same planner, sampling differently: `with_sampler(order="autoregressive", steps=50)`."""
        return self.with_config(sampler=replace(self.config.sampler, **changes))

    def with_config(self, **changes: Any) -> Planner:
        """The same planner with other settings: `with_config(scaffold=None, certify=0.99)`."""
        return self.configured(replace(self.config, **changes))

    def configured(self, config: PlanConfig) -> Planner:
        """The same planner, set up anew: `configured(PlanConfig.paper("parallel"))`."""
        if self.scaffold is not None:
            _ = self.roadmap  # made once, for all copies
        other = copy.copy(self)
        other._set_up(config)
        return other
