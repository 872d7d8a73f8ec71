"""Goals that ask for the ball alone: what they may leave out, and where the agent ends."""

import numpy as np
import pytest
import torch
from fetching import AHEAD, FETCHING, WORLD, checkpoint

from compdiffuser import Planner
from compdiffuser.compose import SamplerConfig
from compdiffuser.compose.chains import Chains
from compdiffuser.domains import PLANE, Space
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.roads.goals import ENDINGS, check_room, endings, whole_goals
from compdiffuser.types import UserError

START, BALL = [0.0, 0.0, 3.0, 3.0], [10.0, 1.0]
QUICK = PlanConfig(SamplerConfig(steps=2, repeats=1), wave=8)


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner(checkpoint(), "cpu", QUICK)


def ends(goal, asked=WORLD.asked, known=True) -> np.ndarray:
    """The endings [n, 4] of one goal."""
    made = checkpoint()
    goals = np.array([goal], np.float32)
    return np.stack(endings(goals, made.normalizer, made.support if known else None, WORLD.space, asked)[0])


def test_a_goal_may_be_the_balls_place_alone():
    starts = np.array([[0, 0, 3, 3, 0.7], [1, 1, 4, 4, 0.9]])
    space = Space.of((0, 1, 2, 3, 4), WORLD.position_dims)
    asked = space.positions[1:]
    whole = whole_goals([[8, 2], [9, 1]], starts, space, asked)
    assert whole.tolist() == [[8, 2, 8, 2, 0.7], [9, 1, 9, 1, 0.9]], "the posture is the start's"
    for given in ([[1, 2, 3, 4, 5]], [[1, 2, 3]], "far", [[1], [2, 3]]):
        assert whole_goals(given, starts, space, asked) is given
    pair = [[1, 2]]
    assert whole_goals(pair, np.zeros((1, 2)), PLANE, PLANE.positions) is pair


def test_endings_have_the_ball_in_its_place_and_the_agent_beside_it():
    found = ends([*BALL, *BALL])
    assert found.shape == (ENDINGS, 4)
    np.testing.assert_allclose(found[:, 2:], np.tile(BALL, (ENDINGS, 1)), atol=1e-4)
    apart = np.linalg.norm(found[:, :2] - BALL, axis=1)
    assert (abs(apart - AHEAD) < 0.2).all()
    assert len(np.unique(found.round(3), axis=0)) > 1, "candidates try different ones"


def test_a_goal_that_asks_for_all_is_its_only_ending():
    goal = [0.0, 1.0, *BALL]
    for options in ({"asked": WORLD.space.positions}, {"known": False}):
        np.testing.assert_array_equal(ends(goal, **options), np.array([goal], np.float32))


def test_plans_end_with_the_agent_where_the_data_had_it(planner):
    from_ball = planner.plan(START, BALL, n_candidates=8, seed=3)
    whole = planner.plan(START, [*BALL, *BALL], n_candidates=8, seed=3)
    np.testing.assert_array_equal(from_ball.states, whole.states)
    np.testing.assert_allclose(from_ball.goal[2:], BALL, atol=1e-4)
    assert abs(np.linalg.norm(from_ball.goal[:2] - BALL) - AHEAD) < 0.2


def test_candidates_try_the_endings_and_refined_ones_keep_theirs(planner):
    refining = planner.with_config(refine=0.1, certify=1e-6)
    search = refining.search(START, BALL, 2, 8)
    refining.advance([search])
    fresh = {tuple(candidate.goal) for candidate in search.candidates}
    assert len(fresh) > 4
    parents = [tuple(candidate.goal) for candidate in search.ranked()[:2]]
    refining.advance([search])
    children = [tuple(candidate.goal) for candidate in search.candidates if candidate.refined]
    assert children == [parents[number % 2] for number in range(8)]


@pytest.mark.parametrize(("column", "missed"), [(0, False), (2, True)])
def test_where_the_agent_ends_is_not_judged(planner, column, missed):
    """Chunks that begin at the start and end elsewhere than the goal: for the ant, or for the ball."""
    end = np.array([10, 2, 10.5, 2], np.float32)
    line = planner.normalizer.normalize(torch.tensor(np.linspace(START, end, 24, dtype=np.float32)))
    goal = end.copy()
    goal[column] -= 4
    ends = [planner.normalizer.normalize(torch.tensor(np.array([state], np.float32))) for state in (START, goal)]
    chains = Chains.build(*ends, torch.tensor([1]), torch.tensor([0]))
    (verdict,) = planner._maker.judge(line[None], chains).verdicts
    assert (verdict.measures["ends"] > 1) == missed


@pytest.mark.parametrize(
    ("start", "goal", "sentence"),
    [
        ([0, 0], BALL, r"a start has 4 dimensions here \(agent x, agent y, ball x, ball y\), but"),
        (START, [1], r"ball y\) or 2 \(ball x, ball y\), but an array of \(1,\) was given"),
        (START, [99, 0], "the goal .* lies outside the data"),
        (START, [np.nan, 0], "is not finite"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(planner, start, goal, sentence):
    with pytest.raises(UserError, match=sentence):
        planner.plan(start, goal)


def test_walls_are_for_balls_too():
    check_room(WORLD, START, BALL)
    check_room(WORLD, START[:2], BALL[:1])
    with pytest.raises(UserError, match=r"the start's ball \[6.0, 0.0\] lies in a wall"):
        check_room(WORLD, [0, 0, 6, 0], BALL)
    for goal in ([6, 0], [0, 0, 6, 0]):
        with pytest.raises(UserError, match=r"the goal's ball \[6.0, 0.0\] lies in a wall"):
            check_room(WORLD, START, goal)
    assert FETCHING.domain is WORLD
