"""Independent jobs over local processes, through joblib, or a Ray cluster. Results do not depend on the engine.

`run` gives the results in the order of the jobs; `stream` gives them as they finish, each with its job's number.
Local workers end when their parent does, however that ends.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from compdiffuser.clusters import RETRIES, on_ray
from compdiffuser.progress import progress_bar
from compdiffuser.runs import end_with
from compdiffuser.shortages import WorkerError
from compdiffuser.types import UserError

Job = TypeVar("Job")
Result = TypeVar("Result")

ENGINES = ("local", "ray")
QUIET_SECONDS = 2.0
"""Shorter work prints nothing where stderr is no terminal."""


def run(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    workers: int | None = None,
    engine: str = "local",
    progress: str | None = None,
    cpus: float = 1,
    gpus: float = 0,
) -> list[Result]:
    """`[function(job) for job in jobs]`, spread over workers (all cores by default).

    `progress` labels a bar on stderr; without a label nothing is shown. On Ray, each job takes so many CPUs and GPUs.
    """
    finished = dict(stream(function, jobs, workers, engine, progress, cpus, gpus))
    return [finished[number] for number in range(len(jobs))]


def stream(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    workers: int | None = None,
    engine: str = "local",
    progress: str | None = None,
    cpus: float = 1,
    gpus: float = 0,
) -> Iterator[tuple[int, Result]]:
    """Job numbers and results as they finish."""
    if engine not in ENGINES:
        raise UserError(f"unknown engine '{engine}'; known engines: {', '.join(ENGINES)}")
    if workers is not None and workers < 1:
        raise UserError(f"the number of workers is at least 1, not {workers}")
    results = _local(function, jobs, workers) if engine == "local" else on_ray(function, jobs, workers, cpus, gpus)
    return results if progress is None else _shown(results, len(jobs), progress)


def _local(function: Callable[[Job], Result], jobs: Sequence[Job], workers: int | None) -> Iterator[tuple[int, Result]]:
    """Where a worker is killed, those that are left unfinished run again in new ones."""
    left, deaths = dict(enumerate(jobs)), 0
    while left:
        try:
            for number, result in _once(function, left, workers):
                deaths = 0
                del left[number]
                yield number, result
        except TerminatedWorkerError:
            deaths += 1
            if deaths > RETRIES:
                raise WorkerError("a worker process ended; if memory ran out, use fewer workers") from None


def _once(
    function: Callable[[Job], Result], jobs: Mapping[int, Job], workers: int | None
) -> Iterator[tuple[int, Result]]:
    numbered = [joblib.delayed(_numbered)(function, number, job) for number, job in jobs.items()]
    limit = min(workers or joblib.cpu_count(), len(jobs))
    # Workers are kept for the next call; where this process finds other modules by then, new ones take their place.
    watched = {"initializer": _begin, "initargs": (os.getpid(), tuple(sys.path))}
    made = joblib.Parallel(n_jobs=limit, return_as="generator_unordered", backend="loky", **watched)(numbered)
    try:
        while (result := next(made, None)) is not None:
            yield result
    finally:
        with warnings.catch_warnings():  # of jobs that are given up, which whoever gave them up knows
            warnings.simplefilter("ignore")
            made.close()


def _begin(parent: int, path: tuple[str, ...]) -> None:
    """A worker ends with its parent, and finds the modules that its parent finds."""
    end_with(parent)
    sys.path[:] = path


def _numbered(function: Callable[[Job], Result], number: int, job: Job) -> tuple[int, Result]:
    return number, function(job)


def _shown(results: Iterable[Result], total: int, label: str) -> Iterator[Result]:
    """The same results, with a bar on a terminal, or one closing line where stderr is a file."""
    began = time.monotonic()
    if not sys.stderr.isatty():
        yield from results
        seconds = time.monotonic() - began
        if seconds > QUIET_SECONDS:
            print(f"{label}: {total} of {total} in {seconds:.1f} s", file=sys.stderr)
        return
    with progress_bar() as bar:
        task = bar.add_task(label, total=total)
        for result in results:
            yield result
            bar.advance(task)
