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

from compdiffuser.compose.merge import merge
from compdiffuser.models.runner import Runner
from compdiffuser.planning.candidates import CandidateMaker, Draft
from compdiffuser.planning.checkpoint import Checkpoint, load
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.in_use.choosing import choice
from compdiffuser.planning.in_use.repair import repaired
from compdiffuser.planning.judge import Judge
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.problem import Chunks, one_each
from compdiffuser.planning.progress import Watch
from compdiffuser.planning.recorded.postures import Postures
from compdiffuser.planning.recorded.support import Support
from compdiffuser.planning.roads.carrying import Carrying, roadmap_of
from compdiffuser.planning.roads.roadmap import Roadmap
from compdiffuser.planning.sampler import Sampler
from compdiffuser.planning.search import Candidate, Origin, Search
from compdiffuser.planning.setting import scaffold_level, set_out
from compdiffuser.planning.sharing.exporting import load_onnx
from compdiffuser.planning.steering.ground import Ground
from compdiffuser.planning.steering.regions import Region
from compdiffuser.planning.steering.steering import Cost, Steering, Valid
from compdiffuser.runs import choose_device
from compdiffuser.types import Array

STEERED_LEVEL = 0.25
"""σ up to which scaffolds of steered plans are noised, where a preset does without scaffolds."""
FINER = 2
"""Times as many landmarks, where few show no way round a region."""
MOST_PLANS = 64


class Planner:
    """Plans with one trained chunk model."""

    def __init__(
        self, checkpoint: Checkpoint, device: str = "auto", config: PlanConfig | None = None, compiled: bool = False
    ) -> None:
        self.device = choose_device(device)
        self.checkpoint = checkpoint
        self.model = checkpoint.denoiser.config
        self.normalizer = checkpoint.normalizer
        self.calibration = checkpoint.calibration
        self.support = checkpoint.support.to(self.device) if checkpoint.support else None
        self.postures = checkpoint.postures.to(self.device) if checkpoint.postures else None
        self.record = checkpoint.record
        self.preset = checkpoint.preset
        self.space = checkpoint.preset.space
        self.asked = checkpoint.preset.domain.asked
        self.denoise = Runner(checkpoint.denoiser, self.device, compiled=compiled)
        self.ground = Ground(self.space, self.normalizer, self.calibration)
        self.known = Steering()
        """What is known of the world for good: a map."""
        self._set_up(config or PlanConfig())

    def _set_up(self, config: PlanConfig) -> None:
        self.config = config
        self.scaffold = scaffold_level(self)
        overlap = self.model.overlap
        judge = Judge(
            self.denoise, self.calibration, self.support if config.support else None, self.space, overlap,
            config.certify, config.blending, self.asked, self.postures, self.ground,
        )  # fmt: skip
        level = STEERED_LEVEL if self.scaffold is None else self.scaffold
        highest: dict[Origin, float | None] = {"noise": None, "scaffold": level, "refined": config.refine}
        # Ways tell where to go, not how: places lead, and postures are found on the way.
        led = () if self.space.only_places else tuple(self.space.columns)
        self._maker = CandidateMaker(
            Sampler(self.denoise, config.sampler, config.blending), judge, self.normalizer, highest, led
        )

    def __repr__(self) -> str:
        """In a line: whose planner it is, and what it plans where."""
        about = f"{', '.join(self.space.names)}; chunks of {self.model.horizon} states; on {self.device}"
        return f"Planner({self.preset.name}: {about})"

    @property
    def lays(self) -> bool:
        """Whether ways of positions can become whole states."""
        return self.space.only_places or self.postures is not None

    @classmethod
    def from_pretrained(
        cls, name: str | os.PathLike[str], device: str = "auto", config: PlanConfig | None = None,
        compiled: bool = False,
    ) -> Planner:  # fmt: skip
        """Load a shipped planner by its dataset's name, one of yours by its folder, or one from the hub by its id.

        `compiled` spends some seconds at first and then plans about twice as fast, where thousands of plans follow.
        """
        return cls(load(name), device, config, compiled)

    @classmethod
    def from_onnx(cls, folder: str | os.PathLike[str], config: PlanConfig | None = None) -> Planner:
        """Load what `compdiffuser export NAME --onnx FOLDER` wrote; the network runs in onnxruntime, on the CPU."""
        return cls(load_onnx(folder), "cpu", config)

    def push_to_hub(self, repository: str, **options: Any) -> str:
        """Upload it with a model card as `owner/name`; see `planning.sharing.publishing`."""
        from compdiffuser.planning.sharing.publishing import pushed

        return pushed(self.checkpoint, repository, device=str(self.device), **options)

    def plan(
        self, start: Any, goal: Any, *, via: Sequence[Any] = (), avoid: Sequence[Region] = (),
        prefer: Cost | None = None, valid: Valid | None = None, margin: float = 0.0, within: float | None = None,
        n_plans: int = 1, **options: Any,
    ) -> Plan:  # fmt: skip
        """One plan; further options as for `plan_batch`.

        It passes the places `via` in order, each `within` some metres (by default as near as plans come to their goal),
        keeps out of the regions `avoid` by a `margin`, is `valid` everywhere (a function of states [n, D]: bool, or
        metres of room) and, among plans that can be, has a low cost `prefer` (a function of states [n, T, D] in torch).
        With `n_plans`, the plan's `others` are up to so many more that take other ways.
        """
        steering = Steering.of(via, avoid, valid, prefer, margin, within)
        ends = [start], [goal]
        if n_plans == 1:
            return self.plan_batch(*ends, steering=steering, **options)[0]
        (several,) = one_each(n_plans, 1, "numbers of plans", 1, MOST_PLANS)
        return choice(self, *ends, steering, several, **options)

    def repair(self, plan: Plan, at: Any = None, **options: Any) -> Plan:
        """A plan in use, made to fit what is new; see `planning.in_use.repair`."""
        return repaired(self, plan, at, **options)

    def plan_batch(
        self,
        starts: Any,
        goals: Any,
        n_chunks: Chunks = "auto",
        n_candidates: int | Sequence[int] = 64,
        seed: int | Sequence[int] = 0,
        keep_candidates: bool = False,
        watch: Watch | None = None,
        steering: Steering | Sequence[Steering | None] | None = None,
    ) -> list[Plan]:
        """P plans: starts [P, D], goals [P, D] in the data's units.

        Where the world asks only for some groups at the goal, such as a ball, goals may be their places alone, [P, n];
        of a goal [P, D], what is not asked for is left open.

        `n_chunks` is "auto", one K, or one K per problem; `n_candidates` the most fresh ones that are made for a
        problem, refined ones come on top; it and `seed` are one for all or one per problem. The same seed gives the
        same plan, alone or in a batch. `watch` sees the batch after every round; where it raises, planning ends.
        `steering` is one for all or one per problem.
        """
        begun = time.perf_counter()
        searches = self.searches(starts, goals, n_chunks, n_candidates, seed, steering)
        self.finish(searches, watch)
        seconds = time.perf_counter() - begun
        return [self.result(search, seconds, keep_candidates) for search in searches]

    def search(
        self,
        start: Any,
        goal: Any,
        n_chunks: int | Literal["auto"] = "auto",
        n_candidates: int = 64,
        seed: int = 0,
        steering: Steering | None = None,
    ) -> Search:
        """A problem to be planned wave by wave with `advance`, beside others that come and go; `result` is its plan."""
        return self.searches([start], [goal], n_chunks, n_candidates, seed, steering)[0]

    def searches(
        self,
        starts: Any,
        goals: Any,
        n_chunks: Chunks,
        n_candidates: int | Sequence[int],
        seed: int | Sequence[int],
        steering: Steering | Sequence[Steering | None] | None = None,
        n_ways: int = 1,
    ) -> list[Search]:
        """The problems of `plan_batch`, checked, with their K and scaffolds. Raises UserError for what cannot be.

        With `n_ways`, each problem is searched on up to so many ways that differ.
        """
        return set_out(self, starts, goals, n_chunks, n_candidates, seed, steering, n_ways)

    @cached_property
    def _recorded(self) -> Support | None:
        """The recorded segments on the CPU, for what is found while the device plans."""
        return None if self.support is None else self.support.to(torch.device("cpu"))

    @cached_property
    def _recorded_postures(self) -> Postures | None:
        """The recorded postures on the CPU, likewise."""
        return None if self.postures is None else self.postures.to(torch.device("cpu"))

    @cached_property
    def roadmap(self) -> Roadmap | Carrying | None:
        """Ways through the recorded states; small."""
        return None if self._recorded is None else roadmap_of(self._recorded, self.calibration)

    @cached_property
    def finer_roadmap(self) -> Roadmap | Carrying | None:
        """The same with more landmarks, between which narrow ways are seen."""
        return None if self._recorded is None else roadmap_of(self._recorded, self.calibration, FINER)

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

    def finish(self, searches: Sequence[Search], watch: Watch | None = None) -> None:
        """Wave after wave, until all searches are done."""
        while not all(search.done for search in searches):
            self.advance(searches, watch)

    def states(self, candidate: Candidate) -> Array:
        """The merged states [T, D] of a candidate, in the data's units."""
        chunks = self.normalizer.denormalize(candidate.chunks)
        return merge(chunks, self.model.overlap, self.config.blending).cpu().numpy()

    def result(self, search: Search, seconds: float = 0.0, keep_candidates: bool = False) -> Plan:
        """The best plan of a search so far; `keep_candidates` adds all candidates with as many chunks."""
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
            candidate=next(place for place, made in enumerate(candidates) if made is best),
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
            avoid=() if search.course is None else search.course.steering.avoid,
            via=() if search.course is None else search.course.steering.via,
        )

    def with_map(self, *regions: Region, valid: Valid | None = None, margin: float = 0.0) -> Planner:
        """The same planner in a world of which a map is known: all its plans keep out of these regions by a margin.

        `valid` is a function of states [n, D], as for `plan`. What an earlier map says holds as well.
        """
        other = copy.copy(self)
        other.known = Steering.of(avoid=regions, valid=valid, margin=margin).joined(self.known)
        return other

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
