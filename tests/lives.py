"""Processes in tests: which are alive, and a program that is killed as `kill -9` does it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def alive(number: int) -> bool:
    """Whether a process runs, and is no zombie."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def family(number: int) -> set[int]:
    """The processes that a process started, and those that they started."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rsplit(")", 1)[1].split()[1])
    found = {number}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {number}


def shared_memory(number: int) -> list[str]:
    """Names of the shared memory that bear the number of a process."""
    return [path.name for path in Path("/dev/shm").glob("*") if str(number) in re.split(r"\D+", path.name)]


def start(program: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """A Python program that finds what tests find."""
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, **options)


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def until(true: Callable[[], bool], seconds: float = 20) -> bool:
    """Wait until something is true; whether it became so."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


# Jobs stand here, where a worker has little to import.


def die(job: int) -> int:
    """A job whose worker is killed."""
    os.kill(os.getpid(), signal.SIGKILL)
    return job


def die_once(folder: str) -> str:
    """A job whose worker is killed when it first runs."""
    path = Path(folder, "began")
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def slow_square(number: int) -> int:
    """Later jobs finish first."""
    time.sleep(0.02 * (5 - number))
    return number * number


class Endless:
    """A problem that never begins; says in which process."""

    def check(self, domain: object) -> None:
        pass

    def begin(self, world: object) -> None:
        print(os.getpid(), flush=True)
        time.sleep(600)
