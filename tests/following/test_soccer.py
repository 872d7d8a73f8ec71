"""Following plans of an ant and a ball."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from soccer import ARENA, SOCCER, StraightPlanner, controller, seen, walk_then_dribble

from compdiffuser.domains import BODIES, Controller, Group, Space
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.inverse_dynamics import InverseController, load_controller, train_controller
from compdiffuser.following.learner import Steps
from compdiffuser.following.network import InverseDynamics, InverseDynamicsConfig
from compdiffuser.following.settings import Following
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import Episodes, UserError

START, GOAL = np.array([0.0, 0.0, 4.5, 0.0]), np.array([12.0, 0.0, 12.0, 0.0])
ACTIVE = np.ones(1, bool)


class Still(Controller):
    """Reads planned states of some dimensions, remembers them and does nothing."""

    look_ahead, spacing, stall, patience = 1.0, 0.3, 10, 30

    def __init__(self, dims: tuple[int, ...] = ARENA.space.dims) -> None:
        self.space, self.targets = ARENA.planning(dims).space, []

    def __call__(self, observations, targets):
        self.targets.append(targets.copy())
        return np.zeros((len(observations), 8))


def follower(planner=None, task=SOCCER, led=None, **following) -> PlanFollower:
    policy = PlanFollower(planner or StraightPlanner(), task, Following(**following), led or Still())
    policy.reset(seen(START[None]), seen(GOAL[None]))
    return policy


def carry_along(policy: PlanFollower, upto: float = 1.0) -> np.ndarray:
    """Move ant and ball along their plan, states two by two, up to a share of it; where they end, [4]."""
    path = walk_then_dribble(START, GOAL)
    for state in path[: int(upto * len(path)) : 2]:
        policy.act(seen(state[None]), ACTIVE)
    return state


def test_the_target_lies_as_far_ahead_while_walking_as_while_dribbling():
    """Along all positions together, a dribble of a metre is 1.4 m long: the target was 0.7 m ahead."""
    policy = follower()
    for state in walk_then_dribble(START, GOAL)[5:90:5]:
        policy.act(seen(state[None]), ACTIVE)
        away = np.abs(policy.targets()[0] - state)
        assert 0.75 < away.max() < 1.75  # 1 m along the plan, in steps of 0.3 m, and up to 0.3 m of tracking
    assert policy.decisions[0][-1].reason == "start"


def test_h_is_what_the_slowest_takes():
    """Ants take 10 steps for a metre here, balls 5."""
    at = seen(np.zeros((3, 4)))
    targets = np.array([[3.0, 0, 0, 0], [3.0, 0, 3.0, 0], [1.0, 0, 4.0, 0]])
    np.testing.assert_array_equal(controller().horizons(at, targets), [30, 30, 20])
    assert controller().steps_ahead == round(10 * controller().look_ahead)


def test_speeds_are_those_of_each_while_it_moves():
    """The median step of a ball that lies still for most of the time is none."""
    states = np.zeros((2, 40, 42), np.float32)
    states[0, :, 0] = 0.1 * np.arange(40)  # a walk beside a ball
    states[1, :, 0] = 0.1 * np.arange(40)
    states[1, 30:, 15] = 0.4 * np.arange(10)
    terminals = np.tile(np.arange(40) == 39, 2)
    episodes = Episodes.from_terminals(states.reshape(-1, 42), np.zeros((80, 8), np.float32), terminals)
    steps = Steps.from_episodes(episodes, (1, 8), "cpu")
    measured = steps.speeds(2000, torch.Generator().manual_seed(0), ARENA.space)
    assert measured == pytest.approx((0.1, 0.4), rel=1e-4)
    steps = Steps.from_episodes(episodes[0], (1, 8), "cpu")
    assert steps.speeds(100, torch.Generator().manual_seed(0), ARENA.space)[1] == 0


def test_an_ant_off_its_plan_is_lost_and_so_is_a_ball():
    for moved, reason in (([0.0, 3.0, 0.0, 0.0], "lost"), ([0.0, 0.0, 0.0, 3.0], "ball lost")):
        planner = StraightPlanner()
        policy = follower(planner)
        where = carry_along(policy, upto=0.6) + moved
        policy.act(seen(where[None]), ACTIVE)
        assert [decision.reason for decision in policy.decisions[0]] == ["start", reason]
        np.testing.assert_allclose(planner.starts[-1], where)
        np.testing.assert_allclose(policy.plans[0].states[0], where)


def test_the_ball_is_lost_as_often_as_plans_are_left():
    policy = follower()
    for n in range(6):
        policy.act(seen(np.array([[0.0, 0.0, 4.5, 4.0 * n]])), ACTIVE)
    told = [(decision.reason, decision.planned) for decision in policy.decisions[0]]
    assert told == [("start", True)] + [("ball lost", True)] * 3 + [("ball lost", False)]


def test_only_the_ball_has_to_be_at_the_goal():
    """An ant that has brought its ball is not stuck, wherever it stands; one without it is, though it is there."""
    for place, reasons in (([10.0, 0.0, 12.2, 0.0], ["start"]), ([12.0, 0.0, 11.0, 0.0], ["start", "stuck"])):
        policy = follower()
        carry_along(policy)
        for _ in range(40):
            policy.act(seen(np.array([place])), ACTIVE)
        assert [decision.reason for decision in policy.decisions[0]][:2] == reasons


def test_the_ant_ends_where_its_plan_ends_and_the_ball_at_the_goal():
    policy = follower()
    carry_along(policy)
    np.testing.assert_allclose(policy.targets()[0], [11.5, 0.0, 12.0, 0.0])


def test_an_ant_steps_aside_on_its_way_to_the_ball_but_never_from_the_ball():
    for upto, aside in ((0.05, True), (0.6, False)):
        policy = follower(replan=False)
        where = carry_along(policy, upto)
        for _ in range(15):
            policy.act(seen(where[None]), ACTIVE)
        assert bool(abs(policy.controller.targets[-1][0, 1]) > 1) is aside


def test_plans_of_all_the_ants_dimensions_are_followed_by_a_controller_of_places():
    wide = SOCCER.planning(range(17))
    policy = follower(StraightPlanner(tuple(range(17))), wide, controller())
    policy.act(seen(START[None]), ACTIVE)
    assert policy.targets().shape == (1, 17)
    narrow = follower(led=controller())
    actions = [each.act(seen(START[None]), ACTIVE) for each in (policy, narrow)]
    np.testing.assert_array_equal(*actions)


def test_a_controller_of_all_the_ants_dimensions_needs_plans_of_them():
    sentence = (
        "the controller follows dimension 2 of an observation, which is not planned: "
        "plans of 'antsoccer-toy' have dimensions 0, 1, 15, 16"
    )
    with pytest.raises(UserError, match=sentence):
        follower(led=controller(space=Space.of(range(17), ARENA.position_dims)))


def test_a_target_without_the_ball_is_refused_in_one_sentence():
    sentence = r"planned states of 4 numbers \(agent x, agent y, ball x, ball y\), not of 2"
    with pytest.raises(UserError, match=sentence):
        controller()(seen(START[None]), np.zeros((1, 2)))


def test_a_goal_can_only_ask_for_what_has_a_place():
    with pytest.raises(UserError, match="asks for 'puck'; its positions are agent, ball"):
        replace(ARENA, goal_groups=("puck",))
    assert [name for name, _ in ARENA.asked] == ["ball"]
    assert [name for name, _ in ARENA.planning((0, 1)).asked] == ["agent"]  # the ball is not planned


def test_training_measures_both_and_the_file_keeps_both(tmp_path):
    rng = np.random.default_rng(0)
    states = seen(rng.normal(size=(600, 4)))
    states[:, 0] = 0.1 * np.arange(600)
    states[:, 15] = 0.3 * np.arange(600)
    states[:, [1, 16]] = 0
    episodes = Episodes.from_terminals(
        states.astype(np.float32), rng.uniform(-1, 1, (600, 8)).astype(np.float32), np.arange(600) % 200 == 199
    )
    config = TrainConfig(steps=1, batch=8, warmup=1)
    model = controller().network.config
    trained = train_controller(episodes, SOCCER, tmp_path, model=model, config=config, progress=False)
    assert load_controller(tmp_path).speed == pytest.approx({"agent": 0.1, "ball": 0.3}, rel=1e-3)
    assert trained.speeds == load_controller(tmp_path).speeds


def test_its_usual_network_sees_ant_and_ball_from_the_ants_heading():
    control = BODIES["ant-ball"].control
    assert control["frame"] == "heading"
    assert control["horizons"] == (8, 120)


def test_beside_a_ball_that_is_to_move_the_ants_own_target_does_not_count():
    led = controller(free=0.5)
    at = seen(np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 6.0, 0.0]]))
    ball = at[:, 15:17] + [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]  # beside a ball that moves, that stays, and far from one
    near, aside = (np.concatenate([np.tile(own, (3, 1)), ball], axis=1) for own in ([0.5, 0.0], [0.5, 0.5]))
    differs = np.abs(led(at, near) - led(at, aside)).max(axis=1) > 1e-6
    np.testing.assert_array_equal(differs, [False, True, True])
    told = replace(led, frees=False)
    assert (np.abs(told(at, near) - told(at, aside)).max(axis=1) > 1e-6).all()


def test_an_agent_may_have_more_numbers_than_what_it_moves():
    space = Space.of(range(5), (Group("drone", (0, 1, 2)), Group("box", (3, 4))))
    config = InverseDynamicsConfig(5, 2, "point", space, hidden=(8,), free=0.5)
    drone = InverseController(InverseDynamics(config).eval(), (0.1, 0.1))
    above = np.array([[0.0, 0.0, 9.0, 1.0, 0.0]])
    near, aside = (np.array([[*own, 9.0, 2.0, 0.0]]) for own in ([0.5, 0.0], [0.5, 0.5]))
    np.testing.assert_array_equal(drone(above, near), drone(above, aside), err_msg="it is beside its box")


def test_of_the_samples_half_begin_where_the_ball_is_about_to_move():
    states = np.zeros((1000, 42), np.float32)
    states[900:930, 15] = 0.1 * np.arange(30)
    states[930:, 15] = 3.0
    episodes = Episodes.from_terminals(states, np.zeros((1000, 8), np.float32), np.arange(1000) == 999)
    steps = Steps.from_episodes(episodes, (8, 40), "cpu").with_moving(ARENA.space)
    assert steps.moving is not None
    assert 880 <= int(steps.rows[steps.moving].min()) <= int(steps.rows[steps.moving].max()) < 930
    numbered = replace(steps, observations=torch.arange(1000.0)[:, None])
    rows = numbered.sample(4000, 8, torch.Generator().manual_seed(0))[0][:, 0]
    assert 0.48 < float(((rows >= 880) & (rows < 930)).float().mean()) < 0.56
    still = Steps.from_episodes(episodes[:1], (8, 40), "cpu").with_moving(Space.of((0, 1)))
    assert still.moving is None  # nothing but the agent is planned


def test_one_thing_that_moves_has_nothing_to_be_left_out():
    assert not controller(free=0.5, space=Space.of((0, 1))).network.config.frees
    with pytest.raises(UserError, match=r"free must lie between 0 and 1, not 1\.5"):
        controller(free=1.5)
