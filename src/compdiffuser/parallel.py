"""Independent jobs over local processes or a Ray cluster, through joblib. Results do not depend on the engine.

`run` gives the results in the order of the jobs; `stream` gives them as they finish, each with its job's number.
Local workers end when their parent does, however that ends.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

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
) -> list[Result]:
    """`[function(job) for job in jobs]`, spread over workers (all cores by default).

    `progress` labels a bar on stderr; without a label nothing is shown.
    """
    finished = dict(stream(function, jobs, workers, engine, progress))
    return [finished[number] for number in range(len(jobs))]


def stream(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    workers: int | None = None,
    engine: str = "local",
    progress: str | None = None,
) -> Iterator[tuple[int, Result]]:
    """Job numbers and results as they finish."""
    if engine not in ENGINES:
        raise UserError(f"unknown engine '{engine}'; known engines: {', '.join(ENGINES)}")
    if workers is not None and workers < 1:
        raise UserError(f"the number of workers is at least 1, not {workers}")
    results = _results(function, jobs, workers, engine)
    return results if progress is None else _shown(results, len(jobs), progress)


def _results(
    function: Callable[[Job], Result], jobs: Sequence[Job], workers: int | None, engine: str
) -> Iterator[tuple[int, Result]]:
    numbered = [joblib.delayed(_numbered)(function, number, job) for number, job in enumerate(jobs)]
    if engine == "local":
        limit = min(workers or joblib.cpu_count(), max(len(jobs), 1))
        # Workers are kept for the next call; where this process finds other modules by then, new ones take their place.
        watched = {"initializer": _begin, "initargs": (os.getpid(), tuple(sys.path))}
        made = joblib.Parallel(n_jobs=limit, return_as="generator_unordered", backend="loky", **watched)(numbered)
        try:
            while (result := next(made, None)) is not None:
                yield result
        except TerminatedWorkerError:
            raise WorkerError("a worker process ended; if memory ran out, use fewer workers") from None
        finally:
            with warnings.catch_warnings():  # of jobs that are given up, which whoever gave them up knows
                warnings.simplefilter("ignore")
                made.close()
        return
    with _ray(workers):
        # Ray's backend gives whole lists only; rounds of a few jobs per worker keep results coming.
        size = 4 * joblib.effective_n_jobs(workers or -1)
        for first in range(0, len(numbered), size):
            yield from joblib.Parallel(n_jobs=workers or -1)(numbered[first : first + size])


def _begin(parent: int, path: tuple[str, ...]) -> None:
    """A worker ends with its parent, and finds the modules that its parent finds."""
    end_with(parent)
    sys.path[:] = path


def _numbered(function: Callable[[Job], Result], number: int, job: Job) -> tuple[int, Result]:
    return number, function(job)


def _ray(workers: int | None) -> Any:
    """Ray as joblib's backend, within a `with`."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise UserError("engine 'ray' needs Ray, which is not installed: pip install 'compdiffuser[ray]'") from error
    if not ray.is_initialized():
        # Joins the cluster that RAY_ADDRESS names, else starts one on this machine.
        ray.init(log_to_driver=False, configure_logging=False)
    register_ray()
    return joblib.parallel_config(backend="ray", n_jobs=workers or -1)


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
