"""Plans in a folder: found again by the same question, and by no other."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from compdiffuser import Box, PlanConfig, SamplerConfig, Steering, UserError, Walls
from compdiffuser.domains.space import Group
from compdiffuser.planning.in_use.plan_cache import PlanCache, fingerprint
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.recorded.postures import SNIPPET_SPAN, Postures
from compdiffuser.planning.steering.steering import waypoint

STARTS = np.array([[1.0, -1.0], [1.0, 0.0]])
GOALS = np.array([[-1.0, -1.0], [0.0, -1.0]])


@pytest.fixture(scope="module")
def planner() -> Planner:
    quick = PlanConfig(sampler=SamplerConfig(steps=4, repeats=1))
    return Planner.from_pretrained("robotics-pointmaze-umaze-v0", "cpu", quick)


class Counting:
    """Counts the problems that reach the planner."""

    def __init__(self, planner: Planner) -> None:
        self.planner, self.problems = planner, 0

    def __getattr__(self, name):
        return getattr(self.planner, name)

    def plan_batch(self, starts, *arguments, **options):
        self.problems += len(starts)
        return self.planner.plan_batch(starts, *arguments, **options)


@pytest.mark.slow
def test_a_plan_is_made_once(planner, tmp_path):
    counting = Counting(planner)
    kept = PlanCache(counting, tmp_path)
    first = kept.plan_batch(STARTS, GOALS, seed=[3, 4], n_candidates=4)
    assert counting.problems == 2
    again = PlanCache(counting, tmp_path).plan_batch(STARTS[::-1], GOALS[::-1], seed=[4, 3], n_candidates=4)
    assert counting.problems == 2
    for made, found in zip(first, again[::-1], strict=True):
        np.testing.assert_array_equal(made.states, found.states)
    own = planner.plan_batch(STARTS, GOALS, seed=[3, 4], n_candidates=4)
    np.testing.assert_allclose(first[1].states, own[1].states, atol=1e-5)
    for change in ({"seed": [3, 5]}, {"n_chunks": [3, 3]}, {"n_candidates": 5}):
        before = counting.problems
        kept.plan_batch(STARTS, GOALS, **{"seed": [3, 4], "n_candidates": 4, **change})
        assert counting.problems == before + (1 if "seed" in change else 2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"steering": [Steering(), Steering()]}, "steering is the same for all problems where plans are cached"),
        ({"n_candidates": [1, 2]}, "n_candidates is the same for all problems where plans are cached, not [1, 2]"),
        ({"n_chunks": [3]}, "1 numbers of chunks were given for 2 problems"),
        ({"goals": GOALS[:1]}, "2 starts were given with 1 goals"),
    ],
)
def test_what_is_not_of_all_problems_is_refused(planner, tmp_path, asked, said):
    with pytest.raises(UserError, match=re.escape(said)):
        PlanCache(planner, tmp_path).plan_batch(STARTS, **{"goals": GOALS, **asked})


def test_another_planner_has_other_plans(planner):
    other = planner.with_sampler(steps=5)
    assert fingerprint(other) != fingerprint(planner)
    assert fingerprint(planner) == fingerprint(planner.with_sampler())
    other = planner.with_sampler()
    other.calibration = replace(planner.calibration, reach=9.0)
    assert fingerprint(other) != fingerprint(planner)


def test_a_planner_that_is_asked_for_other_positions_has_other_plans(planner):
    other = planner.with_sampler()
    other.asked = (*planner.asked, Group("ball", (2, 3)))
    assert fingerprint(other) != fingerprint(planner)


def test_a_planner_with_other_postures_has_other_plans(planner):
    snippets = torch.zeros(2, SNIPPET_SPAN + 1, len(planner.space.dims))
    found = {fingerprint(planner)}
    for recorded, oddity in ((snippets, 1.0), (snippets + 1, 1.0), (snippets, 2.0)):
        other = planner.with_sampler()
        other.postures = Postures(recorded, (oddity,), planner.space)
        found.add(fingerprint(other))
    assert len(found) == 4


def test_a_planner_that_knows_a_map_has_other_plans(planner):
    box, other = Box((0, 0), (1, 1)), Box((0, 0), (1, 2))
    assert len({fingerprint(each) for each in (planner, planner.with_map(box), planner.with_map(other))}) == 3
    assert fingerprint(planner.with_map(box)) == fingerprint(planner.with_map(box))
    grid = np.zeros((60, 60), bool)  # so large that its text leaves out its middle
    changed = grid.copy()
    changed[30, 30] = True
    maps = [Walls.occupied(cells, 1.0, (0, 0)) for cells in (grid, changed)]
    assert len({fingerprint(planner.with_map(each)) for each in maps}) == 2
    with pytest.raises(UserError, match="plans cannot be cached where they depend on a function"):
        fingerprint(planner.with_map(valid=lambda states: np.ones(len(states), bool)))


def test_what_steers_a_plan_tells_it_from_another(planner, tmp_path):
    cache = PlanCache(planner, tmp_path)
    for via in ((0.0, -1.0), (0.5, -1.0)):
        cache.plan_batch(STARTS[:1], GOALS[:1], n_candidates=1, n_chunks=1, steering=Steering.of([via]))
    assert len(list(cache.folder.iterdir())) == 2


@pytest.mark.parametrize("text", ["0,-1", "0,-1~0.2"])
def test_a_plan_that_is_found_again_passes_its_waypoints_as_near(planner, tmp_path, text):
    cache, stop = PlanCache(planner, tmp_path), waypoint(text)
    for _ in ("made", "found"):
        (plan,) = cache.plan_batch(STARTS[:1], GOALS[:1], n_candidates=1, n_chunks=1, steering=Steering((stop,)))
        assert plan.via == (stop,)


def test_plans_that_depend_on_a_function_are_not_cached(planner, tmp_path):
    cache = PlanCache(planner, tmp_path)
    with pytest.raises(UserError, match="plans cannot be cached where they depend on a function"):
        cache.plan_batch(STARTS, GOALS, steering=Steering(valid=lambda states: states[:, 0] > 0))


@pytest.mark.slow
def test_plans_that_begin_from_other_ways_are_other_plans(planner):
    along = planner.with_config(scaffold=0.5)
    assert fingerprint(along) != fingerprint(planner)
    assert fingerprint(along) == fingerprint(planner.with_config(scaffold=0.5))
    other = along.with_config()
    other.roadmap = replace(along.roadmap, costs=along.roadmap.costs * 2)
    assert fingerprint(other) != fingerprint(along)
    other = along.with_config()
    chunks = replace(along.preset.chunks, most=along.preset.chunks.most + 1)
    other.preset = replace(along.preset, chunks=chunks)
    assert fingerprint(other) != fingerprint(along)
