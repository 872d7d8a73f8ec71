"""From a request to a job, and from a finished job to a reply."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from compdiffuser.compose.schedule import SamplerConfig, Schedule
from compdiffuser.evaluation.ends import lacks_posture
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.in_use.choosing import chosen
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.search import Origin
from compdiffuser.planning.steering.regions import region
from compdiffuser.types import UserError
from compdiffuser.web.driving import Stages
from compdiffuser.web.explaining import why
from compdiffuser.web.library import Library, NotReady, Unknown
from compdiffuser.web.messages import CandidateReply, Health, Options, OtherReply, PlanReply, PlanRequest, Verdict
from compdiffuser.web.metrics import Metrics
from compdiffuser.web.scheduler import EVALUATIONS, STOPPING, Closed, Full, Job, Scheduler, most_wave
from compdiffuser.web.settings import Limits, Settings
from compdiffuser.web.streaming import summary

TOLD = (UserError, Full, Closed, Unknown, NotReady, TimeoutError)
"""Errors whose own sentence a client is told."""
SAMPLER, CHOICE = ("order", "rule", "steps", "repeats"), ("score", "blending")
"""What a request may ask of the sampler, and of the choice among candidates."""


class Service:
    """Everything that a running server shares between requests."""

    def __init__(self, settings: Settings, library: Library) -> None:
        self.settings = settings
        self.library = library
        self.metrics = Metrics()
        self.scheduler = Scheduler(settings.queue, self.metrics)
        self.stages = Stages()

    def job(self, request: PlanRequest, placed: bool = True) -> Job:
        """A job for a request. Raises UserError for what cannot be planned, and Unknown for a model that is not here.

        `placed` says that someone chose the start; an agent on its way may well touch a wall.
        """
        planner = self.library.get(request.model)
        evaluations = check(request, planner, self.settings.limits)
        if placed:
            self.library.check(request.model, request.start, request.goal)
        config = configured(request, planner)
        planner = planner.configured(config)
        first, *others = planner.searches(
            np.asarray(request.start)[None], np.asarray(request.goal)[None], request.chunks, request.candidates,
            request.seed, request.steering, request.plans,
        )  # fmt: skip
        group = (request.model, config)
        short = max(1, EVALUATIONS.get(planner.device.type, EVALUATIONS["cpu"]) // evaluations)
        deadline = time.monotonic() + self.settings.timeout
        ways = tuple(Job(planner, search, group, deadline, short, request.wave) for search in others)
        return Job(planner, first, group, deadline, short, request.wave, ways)

    def completed(self, request: PlanRequest) -> PlanRequest:
        """The same request with a whole start, where it names places alone: as the simulator's body waits there."""
        domain = self.library.get(request.model).preset.domain
        if not lacks_posture(domain, request.start):
            return request
        self.library.check(request.model, request.start, request.goal)
        observed = self.stages.placed(domain, request.start, request.goal)
        return request.model_copy(update={"start": domain.space.planned(observed).astype(float).round(4).tolist()})

    def health(self) -> Health:
        """How the server is, and what of it is not ready."""
        faults = {f"model '{name}'": "it could not be loaded, or failed its trial" for name in self.library.not_ready}
        able = bool(self.library.names)
        if self.scheduler.closed or not self.scheduler.alive:
            faults["planning"] = STOPPING if self.scheduler.closed else "its thread has ended"
            able = False
        told = [f"{what} is not ready: {why}" for what, why in faults.items()]
        waiting, running = self.scheduler.load
        return Health(
            status="down" if not able else "degraded" if faults else "ok", waiting=waiting, running=running,
            not_ready=faults, detail="; ".join(told) or "everything is ready",
        )  # fmt: skip

    def submit(self, job: Job) -> None:
        try:
            self.scheduler.submit(job)
        except RuntimeError:
            self.metrics.plan("refused")
            raise
        job.ended.add_done_callback(partial(self._count, job))
        for other in job.others:
            try:
                self.scheduler.submit(other)
            except RuntimeError as error:  # one way will do where the queue is full
                other.fail(error)
            job.ended.add_done_callback(partial(_given_up, other))

    def _count(self, job: Job, ended: Future[bool]) -> None:
        if ended.cancelled():
            self.metrics.plan("cancelled")
        elif error := ended.exception():
            late, stopped = isinstance(error, TimeoutError | Full), isinstance(error, Closed)
            self.metrics.plan("late" if late else "stopped" if stopped else "failed")
        else:
            outcome = "certified" if job.search.certified else "uncertified"
            self.metrics.plan(outcome, time.monotonic() - job.arrived)

    def reply(self, request: PlanRequest, job: Job, complete: bool, columns: Sequence[int] | None = None) -> PlanReply:
        """The reply to a request; paths of candidates hold places, or other `columns` of a planned state."""
        search = job.search
        now = time.monotonic()
        begun = job.begun or now
        plan = chosen([job.planner.result(search, now - begun), *_others(job)], job.planner)
        options = Options(**{name: getattr(request, name) for name in Options.model_fields})
        options.wave = search.wave
        listed = (
            [CandidateReply(**each) for each in summary(job.planner, search, columns)]
            if request.include_candidates
            else None
        )
        return PlanReply(
            model=request.model,
            start=request.start,
            goal=request.goal,
            ok=plan.ok,
            verdict=verdict(plan),
            why=why(search),
            origin=cast(Origin, plan.origin),
            complete=complete,
            states=np.asarray(plan.states, float).round(4).tolist(),
            n_chunks=plan.n_chunks,
            horizon=plan.chunks.shape[1],
            overlap=plan.overlap,
            stride=plan.stride,
            times=None if plan.times is None else plan.times.round(6).tolist(),
            length=plan.length,
            score=_finite(plan.score),
            overlap_distance=_finite(plan.overlap_distance),
            confidence=plan.confidence,
            fault=plan.fault(),
            tried=len(search.candidates),
            wave=search.wave,
            waited=begun - job.arrived,
            seconds=plan.seconds,
            options=options,
            reproduce=reproduce(request, self.library.source(request.model), search.wave, job.planner.device.type),
            candidates=listed,
            via=[str(stop) for stop in plan.via],
            avoid=[str(region) for region in plan.avoid],
            others=[_other(other) for other in plan.others],
        )


def sentence(error: BaseException, what: str = "planning") -> str:
    """What a client is told; what it cannot help goes to the log only."""
    return str(error) if isinstance(error, TOLD) else f"{what} failed; the server's log says why"


def check(request: PlanRequest, planner: Planner, limits: Limits) -> int:
    """Refuse what would keep others waiting for too long; the network evaluations that a candidate may take."""
    most = request.chunks if isinstance(request.chunks, int) else planner.preset.chunks.most
    asked = {"chunks": most, "candidates": request.candidates, "steps": request.steps, "repeats": request.repeats}
    for name, value in asked.items():
        if value > getattr(limits, name):
            raise UserError(f"{name} may be at most {getattr(limits, name)} here, not {value}")
    sampler = configured(request, planner).sampler
    calls = 1 if sampler.rule == "euler" else 2  # of the network, in a step
    levels = planner.denoise.denoiser.formulation.sampling_levels
    evaluations = most * calls * len(Schedule.build(levels, sampler, "cpu"))
    if evaluations > limits.evaluations:
        raise UserError(
            f"{most} chunks with these steps and repeats take {evaluations} evaluations per candidate; "
            f"at most {limits.evaluations} are allowed here"
        )
    widest = most_wave(planner.device.type, most)
    if request.wave is not None and request.wave > widest:
        raise UserError(f"wave may be at most {widest} with up to {most} chunks here, not {request.wave}")
    return evaluations


def configured(request: PlanRequest, planner: Planner) -> PlanConfig:
    """How to plan, as a request asks for it. Raises UserError for an unknown name."""
    sampler = replace(planner.config.sampler, **{name: getattr(request, name) for name in SAMPLER})
    return replace(planner.config, sampler=sampler, **{name: getattr(request, name) for name in CHOICE})


def verdict(plan: Plan) -> Verdict:
    """What the judge found, as JSON has it."""
    measures = {name: _finite(share) for name, share in plan.verdict.measures.items()}
    where = dict(plan.verdict.where)
    return Verdict(failed=list(plan.verdict.failed), measures=measures, where=where, told=str(plan.verdict))


def _given_up(other: Job, ended: Future[bool]) -> None:
    """Nobody waits for the other ways of a job that was cancelled."""
    if ended.cancelled():
        other.ended.cancel()


def _others(job: Job) -> list[Plan]:
    """The plans of a job on its other ways, once they are made."""
    plans = []
    for other in job.others:
        with suppress(Exception):  # late, refused or failed: there is one way less
            other.ended.result(max(other.deadline - time.monotonic(), 0))
            plans.append(job.planner.result(other.search))
    return plans


def _other(plan: Plan) -> OtherReply:
    return OtherReply(
        states=np.asarray(plan.states, float).round(4).tolist(), n_chunks=plan.n_chunks, length=plan.length,
        score=_finite(plan.score), confidence=plan.confidence, verdict=verdict(plan),
    )  # fmt: skip


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None


def reproduce(request: PlanRequest, source: str, wave: int, device: str) -> dict[str, str]:
    """The lines that make the same plan, in Python and in a shell."""
    changes, choices = (
        {name: value for name in names if (value := getattr(request, name)) != getattr(usual, name)}
        for names, usual in ((SAMPLER, SamplerConfig()), (CHOICE, PlanConfig()))
    )
    name, chunks = json.dumps(source), json.dumps(request.chunks)
    written = "".join(f", {key}={value!r}" for key, value in changes.items())[2:]
    sampler = f"sampler=SamplerConfig({written}), " if changes else ""
    sampler += "".join(f"{key}={value!r}, " for key, value in choices.items())
    stops, regions = request.steering.via, [region(text) for text in request.avoid]
    steered = [
        *([f"via=[{', '.join(map(repr, stops))}]"] if stops else []),
        *([f"avoid=[{', '.join(map(repr, regions))}]"] if regions else []),
        *([f"margin={request.margin}"] if request.margin else []),
        *([f"n_plans={request.plans}"] if request.plans > 1 else []),
    ]
    used = {type(each).__name__ for each in (*stops, *(part for each in regions for part in each.parts))}
    names = sorted({"PlanConfig", "Planner", *(["SamplerConfig"] if changes else []), *used})
    python = [
        f"from compdiffuser import {', '.join(names)}",
        "",
        f"planner = Planner.from_pretrained({name}, device={device!r}, config=PlanConfig({sampler}wave={wave}))",
        f"plan = planner.plan({tuple(request.start)}, {tuple(request.goal)}, n_chunks={chunks}, "
        f"n_candidates={request.candidates}, seed={request.seed}{''.join(f', {part}' for part in steered)})",
        'plan.plot("plan.png")',
    ]
    # With "=", since a number may begin with a minus.
    places = [
        f"--{what}={','.join(f'{x:g}' if float(f'{x:g}') == x else repr(x) for x in state)}"
        for what, state in (("start", request.start), ("goal", request.goal))
    ]
    shell = [
        f"compdiffuser plan {shlex.quote(source)} {places[0]} {places[1]} --chunks {request.chunks}",
        f"--candidates {request.candidates} --seed {request.seed} --wave {wave} --device {device}",
        *(f"--{key} {value}" for key, value in (changes | choices).items()),
        *(f"--via={shlex.quote(text)}" for text in request.via),
        *(f"--avoid={shlex.quote(text)}" for text in request.avoid),
        *([f"--margin {request.margin}"] if request.margin else []),
        *([f"--plans {request.plans}"] if request.plans > 1 else []),
        "--png plan.png",
    ]
    return {"python": "\n".join(python) + "\n", "shell": " ".join(shell) + "\n"}
