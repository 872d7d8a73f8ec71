from dataclasses import replace

import numpy as np
import pytest
import torch
from oracle import OraclePlanner

from compdiffuser.cli import main
from compdiffuser.domains.mazes import maze
from compdiffuser.domains.rising import rocking
from compdiffuser.evaluation.causes import FALLEN, TIME_OUT, Ending, cause_of
from compdiffuser.files import pretrained_folder, read_json, write_json
from compdiffuser.following.controllers import controller_for
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.inverse_dynamics import InverseController, load_controller, train_controller
from compdiffuser.following.network import InverseDynamics, InverseDynamicsConfig
from compdiffuser.following.settings import Following
from compdiffuser.planning.steering.steering import Waypoint
from compdiffuser.presets import preset
from compdiffuser.runs import run_folder
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import Episodes, UserError

ANT = preset("antmaze-medium-stitch-v0")
LAYOUT = maze("medium")
SMALL = InverseDynamicsConfig(observation=29, action=8, body="ant", hidden=(32, 32))


def ants(xy, upside_down: bool = False) -> np.ndarray:
    """Observations [E, 29] of ants at xy [E, 2], on their feet or on their backs."""
    observations = np.zeros((len(xy), 29))
    observations[:, :2] = xy
    observations[:, 2:7] = (0.5, 0.0, 1.0, 0.0, 0.0) if upside_down else (0.5, 1.0, 0.0, 0.0, 0.0)
    return observations


@pytest.fixture
def controller() -> InverseController:
    torch.manual_seed(0)
    return InverseController(InverseDynamics(SMALL).eval(), speeds=(0.1,))


def pushed_by_actions(episodes: int = 30, length: int = 40) -> Episodes:
    """Ants whose first two actions are their velocity, in tenths of a metre per step."""
    rng = np.random.default_rng(0)
    velocity = rng.uniform(-1, 1, (episodes, 1, 2))
    observations = rng.normal(size=(episodes, length, 29)) * 0.1
    observations[:, :, :2] = rng.normal(size=(episodes, 1, 2)) + 0.1 * np.arange(length)[None, :, None] * velocity
    actions = np.zeros((episodes, length, 8))
    actions[:, :, :2] = velocity
    terminals = np.tile(np.arange(length) == length - 1, episodes)
    return Episodes.from_terminals(observations.reshape(-1, 29), actions.reshape(-1, 8), terminals)


def test_the_horizon_is_the_time_that_the_distance_takes(controller):
    at = ants(np.zeros((4, 2)))
    targets = np.array([[1.2, 0.0], [0.0, -2.0], [0.1, 0.0], [30.0, 0.0]])
    np.testing.assert_array_equal(controller.horizons(at, targets), [12, 20, 4, 28])
    assert controller(at, targets).shape == (4, 8)
    assert np.abs(controller(at, targets)).max() <= 1
    one = InverseController(InverseDynamics(replace(SMALL, horizons=(12, 12))), speeds=(0.1,))
    np.testing.assert_array_equal(one.horizons(at, targets), 12)


@pytest.mark.slow
def test_what_was_learned_is_done_again_from_its_folder(tmp_path):
    model = InverseDynamicsConfig(29, 8, hidden=(64, 64))
    config = TrainConfig(steps=200, batch=256, learning_rate=3e-3, warmup=10)
    trained = train_controller(pushed_by_actions(), ANT, tmp_path, model=model, config=config, progress=False)
    loaded = load_controller(tmp_path)
    at, targets = ants(np.ones((2, 2))), np.array([[2.0, 1.0], [1.0, 0.0]])
    at[:, 2:] = 0
    np.testing.assert_allclose(loaded(at, targets), trained(at, targets), atol=0.01)  # half precision
    towards = loaded(at, targets)[:, :2] / np.linalg.norm(loaded(at, targets)[:, :2], axis=1, keepdims=True)
    assert (towards * [[1, 0], [0, -1]]).sum(1).min() > 0.8
    assert 0.05 < loaded.speed < 0.15
    assert loaded.record["dataset"] == ANT.name
    assert (tmp_path / "model.safetensors").stat().st_size < 2_000_000


def test_the_pace_is_how_fast_a_body_walks_though_it_gets_nowhere(tmp_path):
    observations = pushed_by_actions().observations.copy()
    observations[:, :2] = 0.1 * (np.arange(len(observations)) % 2)[:, None] * [1.0, 0.0]  # to and fro
    episodes = replace(pushed_by_actions(), observations=observations)
    config = TrainConfig(steps=1, batch=8, warmup=1)
    trained = train_controller(episodes, ANT, tmp_path, model=SMALL, config=config, progress=False)
    assert trained.speed == pytest.approx(0.1)


def test_a_learned_controller_beats_doing_nothing_and_anything(tmp_path):
    config = TrainConfig(steps=150, batch=256, learning_rate=3e-3, warmup=10)
    trained = train_controller(pushed_by_actions(), ANT, tmp_path, model=SMALL, config=config, progress=False)
    held_out = pushed_by_actions(episodes=10, length=20)
    now, later = held_out.observations[::20], held_out.observations[12::20]
    true = held_out.actions[::20]
    error = np.square(trained(now, later[:, :2]) - true).mean()
    assert error < 0.5 * np.square(true).mean()
    assert error < 0.5 * np.square(np.random.default_rng(0).uniform(-1, 1, true.shape) - true).mean()


def test_falls_are_noted_once_and_explain_a_failure(controller):
    start, goal = LAYOUT.center((1, 1)), LAYOUT.center((6, 6))
    policy = PlanFollower(OraclePlanner("medium"), ANT, Following(), controller)
    policy.reset(ants(start[None]), ants(goal[None]))
    active = np.ones(1, bool)
    for _ in range(300):  # longer than patience: a new plan would not help it up
        policy.act(ants(start[None], upside_down=True), active)
    assert [(d.reason, d.planned) for d in policy.decisions[0]] == [("start", True), ("fallen", False)]
    assert cause_of(Ending(fallen=True, decisions=policy.decisions[0]), ANT.space) == FALLEN
    policy.act(ants(start[None]), active)
    policy.act(ants(start[None], upside_down=True), active)
    assert [d.reason for d in policy.decisions[0]] == ["start", "fallen", "fallen"]


@pytest.mark.parametrize("rise", [True, False])
def test_a_follower_gets_a_fallen_ant_up_where_it_may(controller, rise):
    start, goal = LAYOUT.center((1, 1)), LAYOUT.center((6, 6))
    policy = PlanFollower(OraclePlanner("medium"), ANT, Following(rise=rise), controller)
    policy.reset(ants(start[None]), ants(goal[None]))
    active, lying = np.ones(1, bool), ants(start[None], upside_down=True)
    for step in range(3):
        action, walking = policy.act(lying, active), controller(lying, policy.targets()[:, :2])
        np.testing.assert_allclose(action, rocking(np.array([step])) if rise else walking, atol=1e-6)
    upright = ants(start[None])
    np.testing.assert_array_equal(policy.act(upright, active), controller(upright, policy.targets()[:, :2]))


def test_an_ant_that_gets_up_does_not_let_go_of_its_waypoints(controller):
    class There(OraclePlanner):
        def plan_batch(self, *problem, **options):
            stop = Waypoint(tuple(LAYOUT.center((1, 1)) + np.array([1.0, 0.0])), within=1.2)
            return [replace(plan, via=(stop,)) for plan in super().plan_batch(*problem, **options)]

    start, goal = LAYOUT.center((1, 1)), LAYOUT.center((6, 6))
    policy = PlanFollower(There("medium"), ANT, Following(), controller)
    policy.reset(ants(start[None]), ants(goal[None]))
    for _ in range(2 * policy.stall):
        policy.act(ants(start[None], upside_down=True), np.ones(1, bool))
    assert len(policy.left(0)) == 1


def test_a_pushed_ant_is_replanned_with_fewer_chunks_and_a_wedged_one_after_its_patience(controller):
    start, goal = LAYOUT.center((1, 1)), LAYOUT.center((6, 6))
    policy = PlanFollower(OraclePlanner("medium"), ANT, Following(n_chunks=6), controller)
    policy.reset(ants(start[None]), ants(goal[None]))
    active = np.ones(1, bool)
    track = policy.plans[0].states
    for state in track[::2][: len(track) // 3]:
        policy.act(ants(state[None, :2]), active)
    policy.act(ants(LAYOUT.center((1, 6))[None]), active)  # teleported
    assert [d.reason for d in policy.decisions[0]] == ["start", "lost"]
    assert policy.decisions[0][1].n_chunks < 6
    stays = ants(policy.plans[0].states[:1, :2])
    for _ in range(controller.patience + 2):
        policy.act(stays, active)
    assert policy.decisions[0][-1].reason == "stuck"
    assert cause_of(Ending(decisions=policy.decisions[0]), ANT.space) == TIME_OUT


def test_the_target_lies_the_look_ahead_before_the_ant(controller):
    start, goal = LAYOUT.center((1, 1)), LAYOUT.center((6, 6))
    policy = PlanFollower(OraclePlanner("medium"), ANT, Following(), controller)
    policy.reset(ants(start[None]), ants(goal[None]))
    for step in range(0, 60, 5):
        at = policy.plans[0].states[step, :2]
        policy.act(ants(at[None]), np.ones(1, bool))
        away = np.linalg.norm(policy.targets()[0, :2] - at)
        assert 0.7 < away < 1.7  # 1.2 m along the plan, in steps of 0.3 m


def test_a_controller_says_where_it_comes_from(tmp_path, monkeypatch, controller):
    """One that was trained here is taken instead of the shipped one, and nothing said so."""
    monkeypatch.chdir(tmp_path)
    assert controller_for(ANT).source == str(pretrained_folder() / "controllers" / ANT.name)
    own = controller.save(run_folder(ANT.name, "controller"))
    assert controller_for(ANT).source == str(own)


def test_a_controller_of_one_horizon_is_led_that_far_ahead(controller):
    """Followed by time, a plan was given one step ahead, whatever the controller was trained for."""
    assert controller.steps_ahead == round(controller.look_ahead / controller.speed) == 12
    for horizon in (1, 7):
        network = InverseDynamics(replace(SMALL, horizons=(horizon, horizon)))
        assert InverseController(network, speeds=(0.1,)).steps_ahead == horizon


def test_mistakes_are_sentences(tmp_path, monkeypatch, controller, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("compdiffuser.following.controllers.pretrained_folder", lambda: tmp_path)
    with pytest.raises(UserError, match="train one with: compdiffuser train-controller antmaze-medium-stitch-v0"):
        controller_for(ANT)
    with pytest.raises(UserError, match="takes observations of 29, not 69"):
        controller(np.zeros((1, 69)), np.zeros((1, 2)))
    with pytest.raises(UserError, match="there is no controller at 'nowhere'"):
        load_controller("nowhere")
    controller.save(tmp_path / "c")
    config = read_json(tmp_path / "c" / "config.json")
    config["inverse_dynamics"]["hidden"] = [8]
    write_json(tmp_path / "c" / "config.json", config)
    with pytest.raises(UserError, match="holds weights of another network than its config says"):
        load_controller(tmp_path / "c")
    assert main(["train-controller", "antmaze-huge-stitch-v0"]) == 2
    assert "unknown dataset 'antmaze-huge-stitch-v0'" in capsys.readouterr().err
