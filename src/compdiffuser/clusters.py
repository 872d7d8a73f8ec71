"""Jobs as tasks of a Ray cluster: the one that RAY_ADDRESS names, else one that is started on this machine.

A worker or a node that dies is replaced, and its job runs again: Ray gives each job's result once, whatever was lost on
the way. Jobs that leave files must therefore be such that a second run continues or repeats the first.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from compdiffuser.runs import end_with
from compdiffuser.shortages import WorkerError
from compdiffuser.types import UserError, install

Job = TypeVar("Job")
Result = TypeVar("Result")

RETRIES = 3
"""Times that a job is run again whose worker died."""
PATIENCE = 3.0
"""Seconds in which a cluster answers."""
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client of HTTP/2, which Ray speaks, begins: with its settings, and it is answered with settings."""


def on_ray(
    function: Callable[[Job], Result], jobs: Sequence[Job], workers: int | None, cpus: float, gpus: float
) -> Iterator[tuple[int, Result]]:
    """Job numbers and results as they finish, at most `workers` at a time. Each job takes so many CPUs and GPUs."""
    ray = _joined()
    from ray.exceptions import RayError, RayTaskError

    task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(_in_worker)
    shared, here, waiting = ray.put(function), _surroundings(), iter(enumerate(jobs))
    # Without a limit, two jobs for each CPU that is there: one runs, and the next one waits.
    limit = workers or max(2 * int(ray.cluster_resources().get("CPU", 1)), 1)
    running: dict[Any, int] = {}
    try:
        while True:
            while len(running) < limit and (following := next(waiting, None)) is not None:
                running[task.remote(shared, following[1], here)] = following[0]
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1)
            try:
                result = ray.get(done[0])
            except RayTaskError as error:
                raise error.cause from None
            except RayError as error:
                told = f"a job ended {RETRIES + 1} times with its worker ({type(error).__name__})"
                raise WorkerError(f"{told}; if memory ran out, use fewer workers") from None
            yield running.pop(done[0]), result
    finally:
        for left in running:
            ray.cancel(left, force=True)


def _surroundings() -> tuple[str, dict[str, str]]:
    """The present folder, and the variables that tell where data is: those of a job are the same."""
    return os.getcwd(), {name: value for name, value in os.environ.items() if name.startswith("COMPDIFFUSER_")}


def _in_worker(function: Callable[[Job], Result], job: Job, here: tuple[str, dict[str, str]]) -> Result:
    """Do a job in a worker, which ends with its node: what it writes to is then free for the one that follows it."""
    _watch(os.getppid())
    folder, variables = here
    with suppress(OSError):  # a node that does not see the folder can do what needs no files
        os.chdir(folder)
    os.environ.update(variables)
    return function(job)


@cache
def _watch(node: int) -> None:
    """Once in a process, which does many jobs."""
    end_with(node)


def _joined() -> Any:
    """Ray, connected to a cluster. Raises UserError where it is not installed, or its cluster cannot be reached."""
    try:
        import ray
    except ImportError as error:
        raise UserError(f"engine 'ray' needs Ray, which is not installed; {install('ray')}") from error
    if ray.is_initialized():
        return ray
    address = os.environ.get("RAY_ADDRESS", "")
    check_reachable(address)
    try:
        ray.init(log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        told = f"RAY_ADDRESS '{address}'" if address else "this machine"
        raise UserError(f"no Ray cluster can be had at {told}: {' '.join(str(error).split())}") from None
    return ray


def check_reachable(address: str) -> None:
    """Raise UserError where nothing that could be a cluster answers at HOST:PORT, for which Ray waits over a minute."""
    if address in ("", "auto", "local"):
        return
    scheme, _, place = address.rpartition("://")
    if scheme not in ("", "ray"):
        return  # Ray's own to find
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise UserError(f"RAY_ADDRESS is HOST:PORT, ray://HOST:PORT, auto or local, not '{address}'")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            connection.sendall(GREETING)
            answer = connection.recv(9)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"the Ray cluster at RAY_ADDRESS '{address}' cannot be reached: {reason}") from None
    if answer[3:4] != GREETING[-6:-5]:
        raise UserError(f"what answers at RAY_ADDRESS '{address}' is no Ray cluster")
