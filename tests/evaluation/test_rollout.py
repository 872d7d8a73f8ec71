from dataclasses import replace

import numpy as np
import pytest
from meadow import BALL, WALK, Herder
from oracle import OraclePlanner

from compdiffuser.domains import Controller
from compdiffuser.evaluation.causes import CAUSES
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.problems import Placement, Task
from compdiffuser.evaluation.rollout import episode_seed, evaluate
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.settings import Following
from compdiffuser.presets import preset
from compdiffuser.types import UserError

MEDIUM = preset("pointmaze-medium-stitch-v0")
NAMES = ["pointmaze-medium-stitch-v0", "robotics-pointmaze-umaze-v0", "robotics-pointmaze-medium-v0"]


def oracle(task=MEDIUM, **following) -> PlanFollower:
    return PlanFollower(OraclePlanner(task.maze.name, spacing=0.02), task, Following(**following))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_perfect_plan_reaches_every_goal_in_the_real_environment(name):
    task = preset(name)
    results = evaluate(oracle(task, replan=False), task, episodes=1, workers=1)
    assert [result.cause for result in results] == [None] * len(results)
    assert all(0 < result.steps < task.evaluation.step_limit for result in results)


@pytest.mark.slow
def test_results_are_the_same_whatever_the_number_of_workers():
    runs = [evaluate(oracle(), MEDIUM, tasks=[1, 3], episodes=2, seed=4, workers=workers) for workers in (0, 2)]
    assert [(r.task, r.episode, r.seed) for r in runs[0]] == [(1, 0, 4), (1, 1, 4), (3, 0, 4), (3, 1, 4)]
    for one, two in zip(*runs, strict=True):
        assert (one.success, one.steps, one.decisions) == (two.success, two.steps, two.decisions)
        np.testing.assert_array_equal(one.path, two.path)


def test_a_world_of_ones_own_is_evaluated_by_its_tasks():
    results = evaluate(Herder(), BALL, seed=3, workers=0)
    assert [(result.task, result.success) for result in results] == [(1, True), (2, True), (3, True)]
    assert [result.problem for result in results] == [Task(n, episode_seed(3, n, 0)) for n in (1, 2, 3)]
    for result in results:
        assert result.path.shape == (result.steps + 1, 4)  # the agent's positions and the ball's
        np.testing.assert_allclose(result.path[-1, 2:], (5, result.task), atol=0.2)
    (walk,) = evaluate(Herder(), WALK, tasks=[2], workers=0)
    assert walk.path.shape[1] == 2


class Walker:
    """A policy that always walks on, to nowhere."""

    def reset(self, observations, goals):
        pass

    def act(self, observations, active):
        return np.full((len(observations), 2), 0.01)


@pytest.mark.parametrize("limit", [1, 150, 500, 601])
def test_a_thinned_path_ends_where_the_episode_does(limit):
    (result,) = evaluate(Walker(), WALK, tasks=[1], step_limit=limit, workers=0)
    assert len(result.path) <= 402
    gone = result.path[-1] - result.path[0]
    np.testing.assert_allclose(gone, 0.01 * limit, atol=1e-6)
    assert len({tuple(place) for place in result.path}) == len(result.path)


def test_placements_are_tasks_of_ones_own():
    ends = [(np.array([1.0, 1.0]), np.array([3.0, 3.0])), (np.array([2.0, 2.0]), np.array([5.0, 1.0]))]
    with EnvironmentPool(WALK.domain, workers=0) as pool:
        results = evaluate(Herder(), WALK, episodes=2, seed=7, pool=pool, placements=ends)
        (second,) = evaluate(Herder(), WALK, tasks=[2], seed=7, pool=pool, placements=ends)
    assert [(result.task, result.episode, result.success) for result in results] == [
        (1, 0, True), (1, 1, True), (2, 0, True), (2, 1, True),
    ]  # fmt: skip
    np.testing.assert_array_equal(results[2].path[0], ends[1][0])
    assert np.linalg.norm(results[2].path[-1] - ends[1][1]) < 0.2
    assert isinstance(second.problem, Placement)
    assert second.problem.seed == results[2].problem.seed == episode_seed(7, 2, 0)
    with pytest.raises(UserError, match="unknown task 3; 2 placements were given"):
        evaluate(Herder(), WALK, tasks=[3], workers=0, placements=ends)


class Scripted:
    """A policy without plans that always does the same."""

    def __init__(self, action):
        self.action = np.asarray(action, float)

    def reset(self, observations, goals):
        self.episodes = len(observations)

    def act(self, observations, active):
        return np.tile(self.action, (self.episodes, 1))


@pytest.mark.parametrize(("task", "cause"), [(MEDIUM, "time out"), (BALL, "ball never reached")])
def test_a_policy_without_decisions_times_out_and_a_broken_one_is_unstable(task, cause):
    idle = evaluate(Scripted([0, 0]), task, tasks=[1], episodes=2, step_limit=7, workers=0)
    assert [(result.cause, result.steps, len(result.path)) for result in idle] == [(cause, 7, 8)] * 2
    broken = evaluate(Scripted([np.nan, 0]), task, tasks=[1], episodes=1, step_limit=7, workers=0)
    assert [(result.cause, result.steps) for result in broken] == [("unstable simulation", 1)]


class Straight(OraclePlanner):
    """Plans straight through the walls."""

    def plan_batch(self, starts, goals, **options):
        from compdiffuser.planning.plan import Plan

        lines = [np.linspace(s, g, 300) for s, g in zip(starts, goals, strict=True)]
        return [Plan(line, line[None], line[0], line[-1], overlap=0, maze=MEDIUM.maze) for line in lines]


def test_plans_through_walls_are_the_cause_of_failure():
    policy = PlanFollower(Straight("medium"), MEDIUM, Following(patience=20))
    (result,) = evaluate(policy, MEDIUM, tasks=[1], episodes=1, step_limit=150, workers=0)
    assert result.cause == "infeasible plan"
    assert "wall" in result.decisions[0].fault
    assert len(result.decisions) > 1


class Hugging(OraclePlanner):
    """Plans that keep so close to the walls on one side that the agent's body meets every corner."""

    def plan_batch(self, starts, goals, **options):
        plans = super().plan_batch(starts, goals, **options)
        return [replace(plan, states=plan.states + np.array([1.75, -1.75])) for plan in plans]


def test_corners_do_not_hold_an_agent():
    results = evaluate(PlanFollower(Hugging("medium"), MEDIUM, Following(replan=False)), MEDIUM, episodes=1, workers=1)
    assert [result.success for result in results] == [True] * 5


class Idle(Controller):
    """Does nothing."""

    def __call__(self, observations, targets):
        return np.zeros((len(observations), 2))


def test_an_agent_that_does_not_follow_is_lost():
    policy = PlanFollower(OraclePlanner("medium"), MEDIUM, Following(replan=False, patience=20), Idle())
    (result,) = evaluate(policy, MEDIUM, tasks=[1], episodes=1, step_limit=60, workers=0)
    assert result.cause == "controller lost"
    assert result.cause in CAUSES


def test_seeds_differ_for_every_seed_task_and_episode():
    seeds = {episode_seed(s, t, e) for s in range(5) for t in range(1, 6) for e in range(20)}
    assert len(seeds) == 500


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"episodes": 0}, "at least 1 episode per task, not 0"),
        ({"step_limit": 0}, "at least 1 step, not 0"),
        ({"tasks": [9]}, "unknown task 9"),
        ({"tasks": []}, "at least one task"),
        ({"placements": []}, "at least one task"),
    ],
)
def test_bad_input_is_named(wrong, sentence):
    with pytest.raises(UserError, match=sentence):
        evaluate(Herder(), BALL, workers=0, **wrong)
