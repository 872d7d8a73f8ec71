"""All shipped planners plan fixed problems as they did when these arrays were stored, seed by seed.

Plans from pure noise of ants, humanoids and soccer were stored before worlds became records and the planner was taken
apart, and must not change; those of points were stored again when their weights were packed into eight bits. Plans that
begin from scaffolds were stored again when a few scaffolds at the data's own pace came first.

Renew with: python tests/planning/renew_golden_plans.py
"""

from functools import cache

import numpy as np
import pytest
from renew_golden_plans import GOLDEN, keys, numbers, planned

from compdiffuser import Planner

QUICK = (
    "robotics-pointmaze-umaze-v0/default",
    "pointmaze-medium-stitch-v0/default",
    "antmaze-giant-stitch-v0/default",
    "humanoidmaze-medium-stitch-v0/default",
)
"""One problem for each body, and each benchmark."""


@cache
def planner(name: str) -> Planner:
    return Planner.from_pretrained(name, device="cpu")


@pytest.mark.parametrize("key", [key if key in QUICK else pytest.param(key, marks=pytest.mark.long) for key in keys()])
def test_the_same_seed_gives_the_stored_plan(key):
    name, how = key.split("/")
    plan = planned(planner(name), how)
    with np.load(GOLDEN) as stored:
        np.testing.assert_allclose(numbers(plan), stored[f"{key}/numbers"], rtol=1e-3)
        np.testing.assert_allclose(plan.states, stored[key], atol=1e-4)


def test_every_planner_has_its_plans():
    with np.load(GOLDEN) as stored:
        assert set(stored) == {part for key in keys() for part in (key, f"{key}/numbers")}
    assert GOLDEN.stat().st_size < 200_000


@pytest.mark.slow
def test_a_shipped_ant_finds_its_way_round():
    """From a start whose goal lies behind it: 14 m away, and over 60 m to walk."""
    plan = Planner.from_pretrained("antmaze-large-explore-v0", "cpu").plan([12, 16], [0, 24], n_candidates=8)
    assert plan.ok
    assert plan.fault() is None
    assert (plan.stride, plan.length > 60) == (4, True)
