from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from oracle import OraclePlanner, oracle_states

from compdiffuser.domains import Controller, Space
from compdiffuser.domains.mazes import maze
from compdiffuser.domains.ogbench import PointController
from compdiffuser.domains.robotics import PointVelocityController
from compdiffuser.following.controllers import controller_for
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.settings import Following
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.steering.steering import Waypoint
from compdiffuser.presets import preset
from compdiffuser.types import UserError

MEDIUM = preset("pointmaze-medium-stitch-v0")
LAYOUT = maze("medium")
START, GOAL = LAYOUT.center((1, 1)), LAYOUT.center((6, 6))


def follower(episodes=1, planner=None, task=MEDIUM, **following) -> PlanFollower:
    policy = PlanFollower(planner or OraclePlanner("medium"), task, Following(**following))
    policy.reset(np.tile(START, (episodes, 1)), np.tile(GOAL, (episodes, 1)))
    return policy


def drive(policy: PlanFollower, at, steps: int, blocked: bool = False):
    """Move ideal points without walls as the policy says; `blocked` ones stay where they are."""
    active = np.ones(len(at), bool)
    for _ in range(steps):
        actions = policy.act(at, active)
        at = at if blocked else at + 0.2 * actions
    return at


def test_controllers_clip_and_damp():
    at = np.array([[0.0, 0.0], [1.0, 1.0]])
    actions = PointController()(at, np.array([[0.1, -5.0], [1.0, 1.0]]))
    np.testing.assert_allclose(actions, [[0.5, -1.0], [0.0, 0.0]])
    fast = np.array([[0.0, 0.0, 3.0, 0.0]])
    assert PointVelocityController()(fast, np.array([[0.05, 0.0]]))[0, 0] < 0
    assert controller_for(MEDIUM) is MEDIUM.domain.controller


@pytest.mark.parametrize("by", ["progress", "time"])
def test_all_episodes_are_planned_in_one_call_and_followed_to_the_goal(by):
    planner = OraclePlanner("medium")
    policy = follower(episodes=3, planner=planner, by=by, seed=7)
    at = drive(policy, np.tile(START, (3, 1)), steps=600)
    assert [(call["problems"], call["seed"]) for call in planner.calls] == [(3, [7000, 7001, 7002])]
    assert np.linalg.norm(at - GOAL, axis=1).max() < 0.1


def test_shapes_that_are_not_of_all_episodes_are_told():
    policy = PlanFollower(OraclePlanner("medium"), MEDIUM)
    at = np.tile(START, (2, 1))
    with pytest.raises(UserError, match="0 episodes began with reset"):
        policy.act(at, np.ones(2, bool))
    for wrong in ((START, GOAL), (at, at[:1])):
        with pytest.raises(UserError, match=r"begin with observations \[E, obs\] and goals \[E, goal\], not of shapes"):
            policy.reset(*wrong)
    policy.reset(at, np.tile(GOAL, (2, 1)))
    for wrong in ((at[:1], np.ones(1, bool)), (at, np.ones(3, bool))):
        with pytest.raises(UserError, match="2 episodes began with reset; observations and active are of all of them"):
            policy.act(*wrong)


def test_progress_never_goes_backwards():
    policy = follower(replan=False)
    rng, seen = np.random.default_rng(0), []
    at = START[None].copy()
    for _ in range(300):
        at = at + 0.2 * policy.act(at, np.ones(1, bool)) + rng.normal(size=(1, 2)) * 0.3
        seen.append(policy.executed(0))
    assert (np.diff(seen) >= 0).all()
    assert seen[-1] > 100


def test_waypoints_are_left_until_the_agent_has_been_there():
    stops = tuple(Waypoint(tuple(LAYOUT.center(cell)), within=0.5) for cell in ((2, 1), (1, 1), (1, 2)))

    class There(OraclePlanner):
        """Into a dead end and back past the start."""

        def plan_batch(self, starts, goals, n_chunks="auto", *, seed=0):
            legs = [START, *(stop.place for stop in stops), GOAL]
            states = np.concatenate([oracle_states("medium", a, b) for a, b in pairwise(legs)])
            return [Plan(states, states[None], START, GOAL, 0, maze=LAYOUT, via=stops)]

    policy, at, left = follower(planner=There("medium")), START[None], [3]
    for _ in range(120):
        at = drive(policy, at, 1)
        left.append(len(policy.left(0)))
        assert policy.left(0) == stops[len(stops) - left[-1] :]
    assert sorted(set(left), reverse=True) == [3, 2, 1, 0]
    assert left == sorted(left, reverse=True)


def test_hovering_is_skipped():
    class Hovering(OraclePlanner):
        def plan_batch(self, *args, **kwargs):
            plan = super().plan_batch(*args, **kwargs)[0]
            hover = plan.states[30] + np.random.default_rng(0).normal(size=(200, 2)) * 0.1
            states = np.concatenate([plan.states[:30], hover, plan.states[30:]])
            return [replace(plan, states=states)]

    steps = []
    for planner in (OraclePlanner("medium"), Hovering("medium")):
        policy, at, count = follower(planner=planner), START[None], 0
        while np.linalg.norm(at - GOAL) > 1 and count < 1000:
            at, count = at + 0.2 * policy.act(at, np.ones(1, bool)), count + 1
        steps.append(count)
    assert steps[1] < steps[0] + 10


def test_lost_agents_are_replanned_together_with_automatic_chunks():
    planner = OraclePlanner("medium")
    policy = follower(episodes=3, planner=planner)
    at = drive(policy, np.tile(START, (3, 1)), steps=20)
    at[[0, 2]] = LAYOUT.center((6, 1))
    policy.act(at, np.ones(3, bool))
    assert [call["problems"] for call in planner.calls] == [3, 2]
    assert planner.calls[1]["n_chunks"] == "auto"
    assert planner.calls[1]["seed"] != planner.calls[0]["seed"]
    assert [[d.reason for d in own] for own in policy.decisions] == [["start", "lost"], ["start"], ["start", "lost"]]
    assert np.linalg.norm(drive(policy, at, steps=500) - GOAL, axis=1).max() < 0.1


class Bounded(OraclePlanner):
    """Knows nothing beyond the maze; where one start lies there, it plans for none."""

    def plan_batch(self, starts, goals, n_chunks="auto", seed=0, **options):
        for start in starts:
            if start.max() > 25:
                raise UserError(f"the start {start.tolist()} lies outside the data")
        return super().plan_batch(starts, goals, n_chunks, seed, **options)


@pytest.mark.parametrize("chunks", ["auto", 6])
def test_one_agent_outside_the_data_is_given_up_and_the_others_get_their_plans(chunks):
    planner = Bounded("medium")
    policy = follower(episodes=4, planner=planner, n_chunks=chunks)
    at = np.tile(LAYOUT.center((6, 1)), (4, 1))
    at[2] = 30.0
    policy.act(at, np.ones(4, bool))
    assert [[(d.reason, d.planned) for d in own[1:]] for own in policy.decisions] == [
        [("lost", True)], [("lost", True)], [("lost", False)], [("lost", True)],
    ]  # fmt: skip
    assert [call["seed"] for call in planner.calls[1:]] == [[1000, 1001], [1003]]
    drive(policy, at, steps=3, blocked=True)
    assert len(policy.decisions[2]) == 2, "it is given up once"
    with pytest.raises(UserError, match="outside the data"):
        policy.reset(at, np.tile(GOAL, (4, 1)))


def test_new_plans_of_an_episode_depend_on_no_other():
    planner = OraclePlanner("medium")
    policy = follower(episodes=2, planner=planner, seed=3)
    for away in ((1,), (1,), (0, 1)):
        at = np.array([policy.plans[e].states[policy.executed(e)] for e in range(2)])
        at[list(away)] += 20.0 * np.sign(10.0 - at[list(away)])
        policy.act(at, np.ones(2, bool))
    assert [call["seed"] for call in planner.calls] == [[3000, 3001], [4001], [5001], [4000, 6001]]


def test_finished_agents_are_left_alone():
    planner = OraclePlanner("medium")
    policy = follower(episodes=2, planner=planner)
    at = np.tile(LAYOUT.center((6, 1)), (2, 1))
    policy.act(at, np.array([True, False]))
    assert [call["problems"] for call in planner.calls] == [2, 1]


def test_fixed_chunks_recede():
    planner = OraclePlanner("medium")
    policy = follower(planner=planner, n_chunks=6)
    at = drive(policy, START[None].copy(), steps=100)
    done, planned = policy.executed(0), len(policy.plans[0].states)
    policy.act(LAYOUT.center((6, 1))[None], np.ones(1, bool))
    assert planner.calls[1]["n_chunks"] == [int(np.ceil((1 - (done - 10) / planned) * 6))]
    assert planner.calls[1]["n_chunks"][0] < 6
    assert len(at) == 1


def test_stuck_agents_are_replanned_at_most_so_often():
    planner = OraclePlanner("medium")
    policy = follower(
        planner=planner, task=replace(MEDIUM, execution=replace(MEDIUM.execution, max_replans=3)), patience=10
    )
    drive(policy, START[None], steps=200, blocked=True)
    assert len(planner.calls) == 4
    assert [d.reason for d in policy.decisions[0]] == ["start"] + ["stuck"] * 4
    assert [d.planned for d in policy.decisions[0]] == [True] * 4 + [False]


def test_without_replanning_being_lost_is_noted_once():
    planner = OraclePlanner("medium")
    policy = follower(planner=planner, replan=False)
    drive(policy, LAYOUT.center((6, 1))[None], steps=5, blocked=True)
    assert len(planner.calls) == 1
    assert [(d.reason, d.planned) for d in policy.decisions[0]] == [("start", True), ("lost", False)]


def test_a_policy_can_be_reset_and_used_again():
    policy = follower()
    first = drive(policy, START[None], steps=50)
    policy.reset(START[None], GOAL[None])
    np.testing.assert_array_equal(drive(policy, START[None], steps=50), first)


def test_bad_settings_are_named():
    with pytest.raises(UserError, match="'arc'"):
        Following(by="arc")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="n_chunks must be at least 1, not 0"):
        Following(n_chunks=0)
    with pytest.raises(UserError, match="n_chunks must be a whole number, not 'few'"):
        Following(n_chunks="few")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="window must be at least 2, not 1"):
        Following(window=1)
    policy = PlanFollower(OraclePlanner("medium"), MEDIUM.planning((0, 1, 5)))
    with pytest.raises(UserError, match="observations have dimensions 0 to 1, there is no dimension 5"):
        policy.reset(START[None], GOAL[None])


def test_an_agent_held_by_a_corner_looks_further_ahead():
    policy = follower(by="progress", replan=False)
    at = START[None]
    first = policy.act(at, np.ones(1, bool))
    near = np.linalg.norm(policy.targets()[0] - at[0])
    for _ in range(30):
        policy.act(at, np.ones(1, bool))
    far = np.linalg.norm(policy.targets()[0] - at[0])
    assert first.shape == (1, 2)
    assert far > 2 * near


def test_an_agent_that_stepping_aside_does_not_free_goes_back_along_its_plan():
    policy = follower(by="progress", replan=False)
    at = drive(policy, START[None], steps=40)
    policy.controller = Trained()
    drive(policy, at, steps=4 * policy.stall, blocked=True)
    back = policy.controller.targets[-policy.stall // 2][0]
    assert np.linalg.norm(back - at[0]) == pytest.approx(policy.retreat, abs=0.3)
    way = policy.plans[0].states[: policy.executed(0) + 1]
    assert np.linalg.norm(way - back, axis=1).min() < 1e-9


def test_by_time_a_strided_plan_has_a_slower_clock():
    chunks, execution = replace(MEDIUM.chunks, stride=4), replace(MEDIUM.execution, replan_distance=100.0)
    policy = follower(by="time", task=replace(MEDIUM, chunks=chunks, execution=execution))
    drive(policy, START[None], steps=9, blocked=True)
    assert policy.executed(0) == 2  # steps 0 to 8


class Trained(Controller):
    """A controller that heads for where it should be in `steps_ahead` steps, and remembers what it was asked for."""

    def __init__(self, steps_ahead: int = 1, space: Space | None = None) -> None:
        self.steps_ahead, self.space = steps_ahead, space
        self.targets: list[np.ndarray] = []

    def __call__(self, observations, targets):
        self.targets.append(targets.copy())
        return np.zeros((len(observations), 2))


@pytest.mark.parametrize(("horizon", "stride", "ahead"), [(1, 1, 1), (12, 1, 12), (12, 4, 3)])
def test_by_time_a_controller_gets_the_state_as_far_ahead_as_it_was_trained_for(horizon, stride, ahead):
    """A controller of horizon h was asked for the state one step ahead, whatever its h."""
    chunks, execution = replace(MEDIUM.chunks, stride=stride), replace(MEDIUM.execution, replan_distance=100.0)
    task = replace(MEDIUM, chunks=chunks, execution=execution)
    controller = Trained(horizon)
    policy = PlanFollower(OraclePlanner("medium"), task, Following(by="time"), controller)
    policy.reset(START[None], GOAL[None])
    for _ in range(9):
        policy.act(START[None], np.ones(1, bool))
    expected = [policy.plans[0].states[step // stride + ahead] for step in range(9)]
    np.testing.assert_allclose(np.concatenate(controller.targets), expected)


def test_a_controller_of_other_dimensions_is_refused_in_one_sentence():
    """Where a controller asked for what was not planned, tensors of different sizes met in a RuntimeError."""
    sentence = "the controller follows dimension 5 of an observation, which is not planned: plans of 'point.* 0, 1$"
    with pytest.raises(UserError, match=sentence):
        PlanFollower(OraclePlanner("medium"), MEDIUM, controller=Trained(space=Space.of((0, 1, 5))))


def test_a_controller_reads_what_it_knows_of_a_wider_plan():
    controller = Trained(space=Space.of((1,)))
    policy = PlanFollower(OraclePlanner("medium"), MEDIUM, controller=controller)
    policy.reset(START[None], GOAL[None])
    policy.act(START[None], np.ones(1, bool))
    np.testing.assert_array_equal(controller.targets[0], policy.targets()[:, 1:])
