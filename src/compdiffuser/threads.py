"""Threads that wait without working: what a busy machine needs before PyTorch is imported.

OpenMP's threads wait for each other many times in a forward pass, by default at full speed for some milliseconds. On a
machine with other work, a thread that waits so takes the core from the one it waits for, and everything takes many
times as long. Only the waiting changes here, never the number of threads, on which the last digits of a result depend.
"""

from __future__ import annotations

import os

SPINS = 10_000
"""Turns of a waiting loop, some microseconds, before a thread sleeps; OpenMP's own number is 300,000."""
BUSY = 0.5
"""Waiting processes per core from which a machine counts as busy."""


def wait_quietly() -> None:
    """Let threads sleep soon while they wait, on a busy machine at once; what the user has set stays."""
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        return
    if load_per_core() > BUSY:
        os.environ["OMP_WAIT_POLICY"] = "passive"
    else:
        os.environ["GOMP_SPINCOUNT"] = str(SPINS)


def load_per_core() -> float:
    """Processes that ran or waited for a core in the last minute, for each core that this one may use."""
    try:
        cores = len(os.sched_getaffinity(0))
        return os.getloadavg()[0] / cores
    except (AttributeError, OSError):  # not every system tells
        return 0.0
