"""One planning thread for all requests: those that ask for the same kind of planning share a batch, wave by wave.

Who has been given least so far goes first, so a new or an easy request does not wait for hard ones. Alone, a request
makes a full wave of candidates at a time; among many, each makes fewer, and all stop at their first certified plan. A
request keeps the size of wave that it began with, so its plan can be made again.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from compdiffuser.planning.planner import Planner
from compdiffuser.planning.search import Search
from compdiffuser.planning.watching import Round
from compdiffuser.web.metrics import Metrics

GATHER = 0.01  # seconds in which requests that arrive together find each other
ROWS = {"cpu": 128, "cuda": 16_384}
"""Chunks in one wave. More of them take longer and are no more efficient."""

log = logging.getLogger("compdiffuser.web")


class Full(RuntimeError):
    """The queue is full."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the queue is full; try again in {retry_after} s")
        self.retry_after = retry_after


class Closed(RuntimeError):
    """The server is stopping."""


class Abandoned(Exception):
    """Nobody waits for this batch any more."""


@dataclass(eq=False)
class Job:
    """A search that someone waits for."""

    planner: Planner
    search: Search
    group: Hashable
    """Jobs of one group can share a batch: the same model, sampled the same way."""
    deadline: float
    """On the clock of `time.monotonic`."""
    wave: int | None = None
    """Candidates at a time, where the request names it."""
    on_round: Callable[[int, Round], None] | None = None
    """Sees every round of a batch that this job is part of, with the number of its problem there."""
    on_wave: Callable[[], None] | None = None
    """Called when a wave has been scored."""
    arrived: float = field(default_factory=time.monotonic)
    begun: float | None = None
    ended: Future[bool] = field(default_factory=Future)
    """Whether all was tried that was to be; cancelled by whoever waited and went away."""

    @property
    def gone(self) -> bool:
        return self.ended.done()

    @property
    def received(self) -> int:
        """Chunks denoised for it so far."""
        return sum(len(candidate.chunks) for candidate in self.search.candidates)

    @property
    def next_rows(self) -> int:
        """Chunks in its next wave."""
        with suppress(Exception):  # a search that cannot go on says so when it is its turn
            return sum(proposal.n_chunks for proposal in self.search.proposals())
        return 0

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def end(self, complete: bool) -> None:
        with suppress(Exception):  # it may have been cancelled this moment
            self.ended.set_result(complete)

    def fail(self, error: BaseException) -> None:
        with suppress(Exception):
            self.ended.set_exception(error)


class Scheduler:
    """Everyone who waits, and the thread that plans for them."""

    def __init__(self, capacity: int, metrics: Metrics) -> None:
        self.capacity = capacity
        self.metrics = metrics
        self.jobs: list[Job] = []
        self.pace = 1.0
        """Seconds per plan of late: who would wait for longer than it may is told to come back."""
        self._since = 0.0  # seconds of planning since the last plan
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="planning", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Refuse what comes, stop what runs, and fail all that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout=30)

    def submit(self, job: Job) -> None:
        with self._changed:
            if self._closed:
                raise Closed("the server is stopping")
            self.jobs = [other for other in self.jobs if not other.gone]
            too_long = len(self.jobs) * self.pace > job.deadline - time.monotonic()
            if len(self.jobs) >= self.capacity or (self.jobs and too_long):
                raise Full(max(1, math.ceil(self.pace)))
            self.jobs.append(job)
            self._changed.notify_all()

    @property
    def begun(self) -> int:
        """Jobs that something has been made for already; the others wait for their first wave."""
        return sum(job.begun is not None for job in self.jobs)

    def _work(self) -> None:
        while batch := self._next():
            try:
                self._wave(batch)
            except Exception as error:  # the thread must outlive every request
                log.exception("planning failed")
                for job in batch:
                    job.fail(error)
        for job in self.jobs:
            job.fail(Closed("the server is stopping"))

    def _next(self) -> list[Job]:
        """The jobs of the next wave; none when the server stops."""
        with self._changed:
            self._leave()
            while not self._closed and not self.jobs:
                self._changed.wait()
                self._changed.wait_for(lambda: self._closed, timeout=GATHER)
                self._leave()
            if self._closed:
                return []
            in_turn = sorted(self.jobs, key=lambda job: (job.received, job.arrived))
            batch: list[Job] = []
            rows = 0
            for job in in_turn:
                if job.group != in_turn[0].group:
                    continue
                if job.begun is None:
                    fair = max(1, default_wave(job.planner.device.type) // len(self.jobs))
                    job.search.wave = min(job.wave or fair, job.search.most)
                rows += job.next_rows
                if batch and rows > ROWS[job.planner.device.type]:
                    break
                job.begun = job.begun or time.monotonic()
                batch.append(job)
            return batch

    def _leave(self) -> None:
        """Let go of jobs that are done, late or given up."""
        for job in self.jobs:
            if not job.gone and job.late:
                if job.search.candidates:
                    job.end(complete=job.search.done)
                else:
                    job.fail(TimeoutError("no plan was made in time"))
        self.jobs = [job for job in self.jobs if not job.gone]

    def _wave(self, batch: list[Job]) -> None:
        began = time.monotonic()
        with suppress(Abandoned):
            try:
                batch[0].planner.advance([job.search for job in batch], lambda seen: self._watch(batch, seen))
            except Abandoned:
                raise
            except Exception as error:
                if len(batch) == 1:
                    log.exception("a request failed")
                    batch[0].fail(error)
                else:
                    # One of them cannot be planned. Alone, each harms only itself.
                    for job in batch:
                        self._wave([job])
                return
        seconds = time.monotonic() - began
        self.metrics.batch(len(batch), seconds)
        self._since += seconds
        finished = 0
        for job in batch:
            if job.gone or not job.search.candidates:
                continue
            self._tell(job, job.on_wave)
            if job.search.done:
                job.end(complete=True)
                finished += 1
        if finished:
            self.pace += 0.3 * (self._since / finished - self.pace)
            self._since = 0.0

    def _watch(self, batch: list[Job], seen: Round) -> None:
        if self._closed or all(job.gone or job.late for job in batch):
            raise Abandoned
        for index, job in enumerate(batch):
            if not job.gone:
                self._tell(job, job.on_round, index, seen)

    def _tell(self, job: Job, listener: Callable[..., None] | None, *what: object) -> None:
        """A listener that fails ends its own request only."""
        if listener is None:
            return
        try:
            listener(*what)
        except Exception as error:
            log.exception("a listener failed")
            job.fail(error)


def default_wave(device: str) -> int:
    """Candidates at a time where nobody else waits: what the planner makes by itself."""
    return 64 if device == "cuda" else 8
