"""What runs out is seen: outcomes are told apart, and limits hold."""

import random
import resource

import pytest


@pytest.fixture
def exhaustion(benchmark_script):
    return benchmark_script("exhaustion")


@pytest.mark.parametrize(
    ("code", "said", "outcome"),
    [
        (0, "", "enough"),
        (3, "some progress", "enough"),
        (2, "some progress\ncompdiffuser: memory ran out", "one sentence"),
        (1, "compdiffuser: a worker process ended", "one sentence"),
        (2, "usage: …", "no sentence"),
        (1, "Traceback (most recent call last):\n…\nMemoryError", "no sentence"),
        (0, "Exception in thread x\nTraceback (most recent call last):", "no sentence"),
        (-6, "", "crashes"),
        (134, "terminate called", "crashes"),
    ],
)
def test_outcomes_are_told_apart(exhaustion, code, said, outcome):
    assert exhaustion.judged(code, said) == outcome


def test_limits_lie_between_nothing_and_what_was_taken(exhaustion, tmp_path):
    took, rng = exhaustion.Took(disk=1000, memory=2**30, files=40), random.Random(0)
    for _ in range(20):
        with exhaustion.few_files(tmp_path, took, rng) as place:
            assert exhaustion.FEW <= place.limits[resource.RLIMIT_NOFILE] <= 40
        with exhaustion.little_memory(tmp_path, took, rng) as place:
            assert exhaustion.STARTS <= place.limits[resource.RLIMIT_AS] <= 2**30
