"""From a request to a job, and from a finished job to a reply."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np

from compdiffuser.compose.schedule import SamplerConfig, Schedule
from compdiffuser.planning.planner import Planner
from compdiffuser.types import UserError
from compdiffuser.web.library import Library
from compdiffuser.web.messages import CandidateReply, Options, PlanReply, PlanRequest
from compdiffuser.web.metrics import Metrics
from compdiffuser.web.scheduler import Job, Scheduler
from compdiffuser.web.settings import Limits, Settings
from compdiffuser.web.streaming import summary


class Service:
    """Everything that a running server shares between requests."""

    def __init__(self, settings: Settings, library: Library) -> None:
        self.settings = settings
        self.library = library
        self.metrics = Metrics()
        self.scheduler = Scheduler(settings.queue, self.metrics)

    def job(self, request: PlanRequest, placed: bool = True) -> Job:
        """A job for a request, or a sentence about what is wrong with it.

        `placed` says that someone chose the start; an agent on its way may well touch a wall.
        """
        planner = self.library.get(request.model)
        check(request, planner, self.settings.limits)
        if placed:
            self.library.check(request.model, {"start": request.start, "goal": request.goal})
        sampler = _sampler(request, planner)
        planner = planner.with_sampler(**sampler)
        search = planner.search(request.start, request.goal, request.chunks, request.candidates, request.seed)
        group = (request.model, *sampler.items())
        return Job(planner, search, group, time.monotonic() + self.settings.timeout, request.wave)

    def submit(self, job: Job) -> None:
        try:
            self.scheduler.submit(job)
        except RuntimeError:
            self.metrics.plan("refused")
            raise

    def reply(self, request: PlanRequest, job: Job, complete: bool) -> PlanReply:
        search = job.search
        now = time.monotonic()
        begun = job.begun or now
        plan = job.planner.result(search, now - begun)
        self.metrics.plan("certified" if plan.ok else "uncertified", now - job.arrived)
        options = Options(**{name: getattr(request, name) for name in Options.model_fields})
        options.wave = search.wave
        listed = (
            [CandidateReply(**each) for each in summary(job.planner, search)] if request.include_candidates else None
        )
        return PlanReply(
            model=request.model,
            start=request.start,
            goal=request.goal,
            ok=plan.ok,
            complete=complete,
            states=np.asarray(plan.states, float).round(4).tolist(),
            n_chunks=plan.n_chunks,
            horizon=plan.chunks.shape[1],
            overlap=plan.overlap,
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
            reproduce=reproduce(request, search.wave, job.planner.device.type),
            candidates=listed,
        )


def check(request: PlanRequest, planner: Planner, limits: Limits) -> None:
    """Refuse what would keep others waiting for too long."""
    most = request.chunks if isinstance(request.chunks, int) else planner.preset.max_chunks
    asked = {"chunks": most, "candidates": request.candidates, "steps": request.steps, "repeats": request.repeats}
    for name, value in asked.items():
        if value > getattr(limits, name):
            raise UserError(f"{name} may be at most {getattr(limits, name)} here, not {value}")
    sampler = replace(planner.config.sampler, **_sampler(request, planner))
    evaluations = most * len(Schedule.build(planner.denoise.denoiser.formulation.sampling_levels, sampler, "cpu"))
    if evaluations > limits.evaluations:
        raise UserError(
            f"{most} chunks with these steps and repeats take {evaluations} evaluations per candidate; "
            f"at most {limits.evaluations} are allowed here"
        )
    if request.wave is not None and request.wave > limits.candidates:
        raise UserError(f"wave may be at most {limits.candidates} here, not {request.wave}")


def _sampler(request: PlanRequest, planner: Planner) -> dict[str, Any]:
    return {"order": request.order, "steps": request.steps, "repeats": request.repeats}


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None


def reproduce(request: PlanRequest, wave: int, device: str) -> dict[str, str]:
    """The lines that make the same plan, in Python and in a shell."""
    usual = SamplerConfig()
    changes = {name: getattr(request, name) for name in ("order", "steps", "repeats")}
    changes = {name: value for name, value in changes.items() if value != getattr(usual, name)}
    name, chunks = json.dumps(request.model), json.dumps(request.chunks)
    written = "".join(f", {key}={value!r}" for key, value in changes.items())[2:]
    sampler = f"sampler=SamplerConfig({written}), " if changes else ""
    python = [
        f"from compdiffuser import PlanConfig, Planner{', SamplerConfig' if changes else ''}",
        "",
        f"planner = Planner.from_pretrained({name}, device={device!r}, config=PlanConfig({sampler}wave={wave}))",
        f"plan = planner.plan({tuple(request.start)}, {tuple(request.goal)}, n_chunks={chunks}, "
        f"n_candidates={request.candidates}, seed={request.seed})",
        'plan.plot("plan.png")',
    ]
    # With "=", since a number may begin with a minus.
    places = [
        f"--{what}={','.join(f'{x:g}' if float(f'{x:g}') == x else repr(x) for x in state)}"
        for what, state in (("start", request.start), ("goal", request.goal))
    ]
    shell = [
        f"compdiffuser plan {request.model} {places[0]} {places[1]} --chunks {request.chunks}",
        f"--candidates {request.candidates} --seed {request.seed} --wave {wave} --device {device}",
        *(f"--{key} {value}" for key, value in changes.items()),
        "--png plan.png",
    ]
    return {"python": "\n".join(python) + "\n", "shell": " ".join(shell) + "\n"}
