"""The route of `/v1/drive`: a world in a thread of its own, its agent's path as server-sent events."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from compdiffuser.evaluation.ends import whole
from compdiffuser.planning.in_use.repair import mending, renewal
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.steering.regions import Region, region
from compdiffuser.planning.steering.steering import waypoint
from compdiffuser.types import Array, UserError
from compdiffuser.web.driving import Stopped, drive, verdict
from compdiffuser.web.messages import DriveRequest, PlanRequest
from compdiffuser.web.scheduler import STOPPING, Closed, Full, Job
from compdiffuser.web.service import TOLD, Service, sentence
from compdiffuser.web.streaming import HEADERS, Film, Mailbox, event

RETRY_AFTER = 5  # seconds

log = logging.getLogger("compdiffuser.web")


def add_drive(app: FastAPI, service: Service, responses: dict[int | str, dict[str, Any]]) -> None:
    free = threading.BoundedSemaphore(service.settings.drives)
    # Threads of their own: the event loop has a few per core, and needs one of these to end all that is under way.
    threads = ThreadPoolExecutor(service.settings.drives, "drive")

    @app.post("/v1/drive", response_class=StreamingResponse, responses=responses)
    async def road(body: DriveRequest) -> StreamingResponse:
        """Follow a plan in the real environment: `moved`, `replanning`, `replanned`, and at last `end` or `error`.

        A new plan streams in as plans do, with `wave`, `frame` and `scored`. Where regions appear on the way
        (`changes`), the plan is repaired; where they vanish or waypoints change, there is a new plan.
        """
        await run_in_threadpool(_check, service, body)
        if not free.acquire(blocking=False):
            raise Full(RETRY_AFTER)
        mailbox, stopped = Mailbox(), threading.Event()

        def tell(kind: str, data: Any) -> None:
            if stopped.is_set():
                raise Stopped
            if service.scheduler.closed:
                raise Closed(STOPPING)
            mailbox.post(kind, data)

        def run() -> None:
            try:
                planner = service.library.get(body.model)
                makers = Queued(service, planner, body.model, stopped, mailbox)
                result = verdict(drive(service.stages, planner.preset, body, makers, tell))
                service.metrics.drive("success" if result["success"] else str(result["cause"]))
                mailbox.post("end", result)
            except Stopped:
                service.metrics.drive("cancelled")
            except Closed as error:
                service.metrics.drive("stopped")
                mailbox.post("error", {"detail": sentence(error)})
            except Exception as error:
                if not isinstance(error, TOLD):
                    log.exception("a drive failed")
                service.metrics.drive("failed")
                mailbox.post("error", {"detail": sentence(error, "the drive")})
            finally:
                free.release()
                mailbox.post("ended", None)

        asyncio.get_running_loop().run_in_executor(threads, run)
        return StreamingResponse(_events(mailbox, stopped), 200, HEADERS, "text/event-stream")


class Queued:
    """Plans on the way from the queue that all requests share; their denoising goes to the mailbox."""

    def __init__(
        self, service: Service, planner: Planner, model: str, stopped: threading.Event, mailbox: Mailbox
    ) -> None:
        self.service, self.planner, self.model, self.stopped, self.mailbox = service, planner, model, stopped, mailbox

    def anew(self, request: PlanRequest) -> Plan:
        return self._made(lambda: self.service.job(request, placed=False))

    def closed(self, request: PlanRequest) -> bool:
        course = self.service.job(request, placed=False).search.course
        return course is not None and course.closed

    def repaired(self, plan: Plan, here: Array, avoid: Sequence[Region], seed: int, executed: int, passed: int) -> Plan:
        found = renewal(self.planner, plan, here, avoid=avoid, seed=seed, executed=executed, passed=passed)
        if isinstance(found, Plan):
            return found
        mender = mending(self.planner)
        wave, group = found.wave, (self.model, mender.config)

        def job() -> Job:
            return Job(mender, found, group, time.monotonic() + self.service.settings.timeout, wave, wave)

        return self._made(job)

    def _made(self, asked: Callable[[], Job]) -> Plan:
        job = _submitted(self.service, asked, self.stopped, self.mailbox)
        while not wait([job.ended], timeout=0.2).done:
            if self.stopped.is_set():
                job.ended.cancel()
                raise Stopped
        job.ended.result()
        return job.planner.result(job.search)


def _submitted(
    service: Service, asked: Callable[[], Job], stopped: threading.Event, mailbox: Mailbox | None = None
) -> Job:
    """A job in the queue, its denoising in the mailbox; where it is full, a drive waits as long as a request may."""
    until = time.monotonic() + service.settings.timeout
    while True:
        job = asked()
        if mailbox is not None:
            film = Film(job.planner, job.search, mailbox)
            job.on_round, job.on_wave = film.on_round, film.on_wave
        try:
            service.submit(job)
            return job
        except Full as full:
            if time.monotonic() + full.retry_after > until:
                raise
            if stopped.wait(full.retry_after):
                raise Stopped from None


async def _events(mailbox: Mailbox, stopped: threading.Event) -> AsyncIterator[str]:
    try:
        yield event("accepted", {})
        async for text in mailbox.read():
            yield text
    finally:
        stopped.set()


def _check(service: Service, body: DriveRequest) -> None:
    model = service.library.describe(body.model)
    if not model.drivable:
        raise UserError(f"there is no environment in which plans of '{body.model}' could be driven")
    service.library.check(body.model, body.start, body.goal)
    planner = service.library.get(body.model)
    whole(planner.preset.domain, body.start, body.goal)
    regions = (*body.avoid, *(text for change in body.changes for text in change.avoid or ()))
    stops = (
        *body.via,
        *(text for made in body.made for text in made.via),
        *(text for change in body.changes for text in change.via or ()),
    )
    planner.ground.check_places([region(text) for text in regions], [waypoint(text) for text in stops])
    for state in (*body.states, *(state for made in body.made for state in made.states)):
        if len(state) != model.dim:
            raise UserError(f"a state has {model.dim} numbers here, not {len(state)}")
