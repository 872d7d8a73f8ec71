"""All shipped planners plan fixed problems as they did when these arrays were stored, seed by seed.

Plans from pure noise (all points; ants with `scaffold=None`) were stored before worlds became records and the planner
was taken apart, and must not change. Plans of ants that begin from scaffolds were stored after: half of each wave of a
CPU's eight candidates begins from noise since then, where all eight began from a scaffold before.

Renew with: python tests/planning/renew_golden_plans.py
"""

from functools import cache

import numpy as np
import pytest
from renew_golden_plans import GOLDEN, keys, numbers, planned

from compdiffuser import Planner
from compdiffuser.presets import PRESETS

LONG = ("pointmaze-large", "pointmaze-giant", "robotics-pointmaze-medium", "robotics-pointmaze-large")
"""Worlds in which a plan from pure noise takes a CPU some seconds."""


def quick(key: str) -> bool:
    """One problem of each planner that soon finds a plan."""
    return key.endswith("/default/1") and PRESETS[key.split("/")[0]].domain.name not in LONG


@cache
def planner(name: str) -> Planner:
    return Planner.from_pretrained(name, device="cpu")


@pytest.mark.parametrize("key", [key if quick(key) else pytest.param(key, marks=pytest.mark.slow) for key in keys()])
def test_the_same_seed_gives_the_stored_plan(key):
    name, how, problem = key.split("/")
    plan = planned(planner(name), how, int(problem))
    with np.load(GOLDEN) as stored:
        np.testing.assert_allclose(numbers(plan), stored[f"{key}/numbers"], rtol=1e-3)
        np.testing.assert_allclose(plan.states, stored[key], atol=1e-4)


def test_every_planner_has_its_plans():
    with np.load(GOLDEN) as stored:
        assert set(stored) == {part for key in keys() for part in (key, f"{key}/numbers")}
    assert GOLDEN.stat().st_size < 200_000
