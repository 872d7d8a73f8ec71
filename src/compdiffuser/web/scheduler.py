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
from compdiffuser.planning.progress import Round
from compdiffuser.planning.search import Search
from compdiffuser.planning.setting import WAVE
from compdiffuser.web.metrics import Metrics

GATHER = 0.01  # seconds in which requests that arrive together find each other
ROWS = {"cpu": 128, "cuda": 16_384}
"""Chunks in one wave. More of them take longer and are no more efficient."""
EVALUATIONS = {"cpu": 8_000, "cuda": 256_000}
"""Network evaluations of chunks in one request's wave, so that it ends within seconds and others have their turn."""
STOPPING = "the server is stopping"

log = logging.getLogger("compdiffuser.web")


class Full(RuntimeError):
    """Others are planned for: the queue is full, or nothing was made in time."""

    def __init__(self, pace: float, why: str = "the queue is full") -> None:
        self.retry_after = max(1, math.ceil(pace))
        super().__init__(f"{why}; try again in {self.retry_after} s")


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
    most_wave: int
    """Candidates at a time that keep a wave short."""
    wave: int | None = None
    """Candidates at a time, where the request names it."""
    others: tuple[Job, ...] = ()
    """The same problem on other ways; they are submitted, and given up, with it."""
    on_round: Callable[[int, Round], None] | None = None
    """Sees every round of a batch that this job is part of, with the number of its problem there."""
    on_wave: Callable[[], None] | None = None
    """Called when a wave has been scored."""
    in_company: bool = False
    """Whether others were planned for while it waited."""
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
        self._row_seconds = 0.0  # per chunk of a wave, of late
        self._since = 0.0  # seconds of planning that nobody's leaving has accounted for yet
        self._left = 0  # who left since then
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="planning", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def alive(self) -> bool:
        """Whether the planning thread is there."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Refuse what comes, stop what runs, and fail all that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout=30)

    def submit(self, job: Job) -> None:
        with self._changed:
            if self._closed:
                raise Closed(STOPPING)
            self._leave()
            too_long = len(self.jobs) * self.pace > job.deadline - time.monotonic()
            if len(self.jobs) >= self.capacity or (self.jobs and too_long):
                raise Full(self.pace)
            self.jobs.append(job)
            for each in self.jobs if len(self.jobs) > 1 else ():
                each.in_company = True
            self._changed.notify_all()

    @property
    def begun(self) -> int:
        """Jobs that something has been made for already; the others wait for their first wave."""
        return self.load[1]

    @property
    def load(self) -> tuple[int, int]:
        """Jobs that wait for their first wave, and jobs that are being planned."""
        jobs = self.jobs
        begun = sum(job.begun is not None for job in jobs)
        return len(jobs) - begun, begun

    def _work(self) -> None:
        while not self._closed:
            try:
                if batch := self._next():
                    self._wave(batch)
            except Exception as error:  # the thread must outlive every request
                log.exception("planning failed")
                for job in self.jobs:
                    job.fail(error)
        for job in self.jobs:
            job.fail(Closed(STOPPING))

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
            rows, most = 0, self._most_rows(in_turn[0])
            for job in in_turn:
                if job.group != in_turn[0].group:
                    continue
                if job.begun is None:
                    fair = max(1, default_wave(job.planner.device.type) // len(self.jobs))
                    job.search.wave = min(job.wave or fair, job.most_wave)
                rows += job.next_rows
                if batch and rows > most:
                    break
                job.begun = job.begun or time.monotonic()
                batch.append(job)
            return batch

    def _most_rows(self, job: Job) -> float:
        """Chunks in a wave that begins with a job.

        On a machine that is busy with other things so few that the wave ends in half of the time that the job has left:
        a large batch that comes too late is made for nobody.
        """
        usual = float(most_rows(job.planner.device.type))
        left = max(job.deadline - time.monotonic(), 0.0)
        return min(usual, 0.5 * left / self._row_seconds) if self._row_seconds else usual

    def _leave(self) -> None:
        """Let go of jobs that are done, late or given up; the pace is the planning time per job that leaves."""
        for job in self.jobs:
            if not job.gone and job.late:
                if job.search.candidates:
                    job.end(complete=job.search.done)
                else:
                    job.fail(self._too_late(job))
        staying = [job for job in self.jobs if not job.gone]
        self._left += len(self.jobs) - len(staying)
        self.jobs = staying
        if self._left and self._since:
            self.pace += 0.3 * (self._since / self._left - self.pace)
            self._since, self._left = 0.0, 0

    def _too_late(self, job: Job) -> Exception:
        """Why a job is let go with nothing made for it: there were others, or it alone takes too long."""
        late = "no plan was made in time"
        return Full(self.pace, f"{late}, since others were planned for") if job.in_company else TimeoutError(late)

    def _wave(self, batch: list[Job]) -> None:
        began, rows = time.monotonic(), sum(job.next_rows for job in batch)
        made = False
        try:
            batch[0].planner.advance([job.search for job in batch], lambda seen: self._watch(batch, seen))
            made = True
        except Abandoned:
            pass
        except Exception as error:
            if len(batch) > 1:
                # One of them cannot be planned. Alone, each harms only itself.
                for job in batch:
                    self._wave([job])
                return
            log.exception("a request failed")
            batch[0].fail(error)
        seconds = time.monotonic() - began
        self.metrics.batch(len(batch), seconds)
        for job in batch:
            if made and not job.gone:
                self._tell(job, job.on_wave)
                if job.search.done:
                    job.end(complete=True)
        with self._changed:
            self._row_seconds += 0.3 * (seconds / max(rows, 1) - self._row_seconds)
            self._since += seconds
            self._leave()

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
    return WAVE.get(device, WAVE["cpu"])


def most_rows(device: str) -> int:
    """Chunks that are made at a time on a device."""
    return ROWS.get(device, ROWS["cpu"])


def most_wave(device: str, n_chunks: int) -> int:
    """Candidates of K chunks that a request may have made at a time, so that others need not wait long."""
    return max(default_wave(device), most_rows(device) // n_chunks)
