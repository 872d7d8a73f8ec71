"""A run that is killed leaves no process and no shared memory behind."""

import os
import sys

import pytest
from lives import alive, family, kill, shared_memory, start, until

from compdiffuser.runs import end_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

JOBS = """
import os, sys, time
import numpy as np
from compdiffuser import parallel

def job(given):
    time.sleep(given[0])
    return os.getpid()

# Arrays of more than a megabyte travel through shared memory.
large = np.zeros(2_000_000)
for number, process in parallel.stream(job, [(seconds, large) for seconds in (0, 0, 600, 600, 600)], workers=2):
    print(process, flush=True)
"""
EPISODES = """
from lives import Endless
from compdiffuser.domains import DOMAINS
from compdiffuser.evaluation.environments import EnvironmentPool

if __name__ == "__main__":
    with EnvironmentPool(DOMAINS["robotics-pointmaze-umaze"], 1) as pool:
        pool.reset([Endless()])
"""
WAITING = """
import os, sys, time
if sys.argv[1] == "looks":
    del os.pidfd_open
from compdiffuser.runs import end_with
parent, child = os.getpid(), os.fork()
if child == 0:
    end_with(parent)  # named before the fork: it may be over by now
    time.sleep(600)
print(child, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_workers_trackers_and_shared_memory_go_with_a_killed_run():
    process = start(JOBS)
    workers = {int(process.stdout.readline()) for _ in range(2)}
    others = family(process.pid)
    assert workers <= others
    assert shared_memory(process.pid)
    kill(process)
    assert until(lambda: not any(map(alive, others))), [number for number in others if alive(number)]
    assert until(lambda: not shared_memory(process.pid)), shared_memory(process.pid)


@pytest.mark.slow
def test_a_simulator_in_the_middle_of_something_goes_with_a_killed_run():
    process = start(EPISODES)
    worker, others = int(process.stdout.readline()), family(process.pid)
    assert worker in others
    kill(process)
    assert until(lambda: not any(map(alive, others))), [number for number in others if alive(number)]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["is told", "looks"])
def test_a_process_ends_with_its_parent(way):
    process = start(WAITING, way)
    child = int(process.stdout.readline())
    assert alive(child)
    kill(process)
    assert until(lambda: not alive(child))


def test_who_comes_too_late_ends_at_once(monkeypatch):
    """The parent was over before its child could look for it."""
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    end_with(os.getpid())  # which is not the parent's number
    assert until(lambda: ended == [1])
