import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from humanoid_walks import recorded
from oracle import OraclePlanner

from compdiffuser.cli import main
from compdiffuser.data import storage
from compdiffuser.domains.body import BODIES, true_heading, turned
from compdiffuser.evaluation.rollout import evaluate
from compdiffuser.files import pretrained_folder
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.heading import HeadingConfig, HeadingEstimator, HeadingNetwork
from compdiffuser.following.inverse_dynamics import InverseController, load_controller, train_controller
from compdiffuser.following.network import InverseDynamics, InverseDynamicsConfig
from compdiffuser.following.settings import Following
from compdiffuser.following.true_heading import TellingWorld, telling, told
from compdiffuser.presets import preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import UserError

MEDIUM = preset("humanoidmaze-medium-stitch-v0")
SMALL = {"hidden": (32, 32), "frame": "heading", "horizons": (8, 80)}
STORED = {
    "medium-explore": (
        "world",
        [-0.503812, 0.106157, -0.301278, -0.394266, -0.159967, -0.459978, -0.534332, -0.063675],
    ),
    "large-explore": ("world", [-0.245499, -0.134789, -0.30896, -0.268358, -0.039022, -0.646644, -0.700735, 0.080306]),
    "giant-stitch": ("heading", [0.88671, -1.0, 0.345871, 0.379114, -0.426142, 0.792184, 1.0, -0.401273]),
}
"""The frame of shipped ants, and what they do at np.linspace(-1, 1, 29), told to go to (0.6, −0.3).

Print `acted` there to renew it."""
ANT = InverseDynamicsConfig(29, 8, body="ant", **SMALL)
HUMANOID = InverseDynamicsConfig(69, 21, body="humanoid", **SMALL)


@pytest.fixture(scope="module")
def walks():
    return recorded()


@pytest.fixture
def humanoid() -> InverseController:
    torch.manual_seed(0)
    estimator = HeadingEstimator(HeadingNetwork(HeadingConfig(hidden=(16,))))
    return InverseController(InverseDynamics(HUMANOID).eval(), (0.06,), estimator=estimator)


def ants(number: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(number, 29))
    observations[:, 3:7] /= np.linalg.norm(observations[:, 3:7], axis=1, keepdims=True)
    return observations


def turned_ants(observations: np.ndarray, angle: float) -> np.ndarray:
    """The same ants in a world that is turned about its origin."""
    angles = np.full(len(observations), angle)
    seen = observations.copy()
    seen[:, :2] = turned(observations[:, :2], angles)
    w, x, y, z = observations[:, 3:7].T
    c, s = np.cos(angle / 2), np.sin(angle / 2)
    seen[:, 3:7] = np.stack([c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w], axis=1)
    seen[:, 15:18] = turned(observations[:, 15:18], angles)
    return seen


@pytest.mark.parametrize("angle", [0.4, 2.0, -3.0])
def test_an_ant_that_sees_by_its_heading_knows_no_north(angle):
    torch.manual_seed(0)
    controller = InverseController(InverseDynamics(ANT).eval(), (0.1,))
    observations, targets = ants(20), np.random.default_rng(1).normal(size=(20, 2))
    other = turned_ants(observations, angle)
    np.testing.assert_allclose(BODIES["ant"].heading(other) - BODIES["ant"].heading(observations), angle, atol=7)
    acted = controller(other, turned(targets, np.full(20, angle)))
    np.testing.assert_allclose(acted, controller(observations, targets), atol=1e-4)
    torch.manual_seed(0)
    world = InverseController(InverseDynamics(replace(ANT, frame="world")).eval(), (0.1,))
    assert np.abs(world(other, turned(targets, np.full(20, angle))) - world(observations, targets)).max() > 0.01


@pytest.mark.parametrize("dims", [15, 29])
@pytest.mark.parametrize("angle", [0.4, 2.0, -3.0])
def test_whole_planned_states_are_turned_as_bodies_are(dims, angle):
    torch.manual_seed(0)
    space = preset("antmaze-medium-stitch-v0").domain.planning(range(dims)).space
    controller = InverseController(InverseDynamics(replace(ANT, space=space)).eval(), (0.1,))
    observations, later = ants(20), ants(40)[20:]
    other, turned_later = (turned_ants(each, angle)[:, : each.shape[1]] for each in (observations, later))
    acted = controller(other, space.planned(turned_later))
    np.testing.assert_allclose(acted, controller(observations, space.planned(later)), atol=1e-4)
    # An orientation and its negative are the same, in what is planned as long as both have the sign of the body's.
    other[:, 3:7] *= -1
    turned_later[:, 3:7] *= -1
    np.testing.assert_allclose(controller(other, space.planned(turned_later)), acted, atol=1e-4)


def test_planned_states_are_turned_group_by_group_and_posture_is_not():
    space = preset("antmaze-medium-stitch-v0").domain.planning((0, 1, 7)).space
    network = InverseDynamics(replace(ANT, space=space))
    observations = ants(6)
    facing = BODIES["ant"].heading(observations)
    seen = torch.from_numpy(network.see(observations))
    targets = space.planned(observations) + np.array([1.0, 0.0, 0.3])
    relative = network.relative(seen, torch.tensor(targets, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(relative[:, :2], np.stack([np.cos(facing), -np.sin(facing)], axis=1), atol=1e-5)
    np.testing.assert_allclose(relative[:, 2], 0.3, atol=1e-5)


def test_a_humanoid_keeps_its_heading_from_step_to_step_and_forgets_it_at_a_reset(humanoid):
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 3, 69))
    for each in (first, second):
        each[:, 36:39] /= np.linalg.norm(each[:, 36:39], axis=1, keepdims=True)
    targets = np.zeros((3, 2))
    humanoid.reset(first)
    humanoid(first, targets)
    after = humanoid(second, targets)
    humanoid.reset(second)
    fresh = humanoid(second, targets)
    assert np.abs(after - fresh).max() > 1e-4
    humanoid.reset(first)
    humanoid(first, targets)
    np.testing.assert_array_equal(humanoid(second, targets), after)


def test_followers_share_a_controller_but_not_its_memory(humanoid):
    followers = [PlanFollower(OraclePlanner("medium"), MEDIUM, Following(), humanoid) for _ in range(2)]
    observations = np.zeros((2, 69))
    observations[:, 38], observations[:, 23] = 1.0, 1.4
    goals = observations + np.eye(69)[0]
    for follower in followers:
        follower.reset(observations, goals)
    assert followers[0].controller is not followers[1].controller
    followers[0].act(observations, np.ones(2, bool))
    assert followers[1].controller._track._attitude is None


def test_a_fallen_humanoid_is_given_time_to_get_up(humanoid):
    follower = PlanFollower(OraclePlanner("medium"), MEDIUM, Following(), humanoid)
    lying = np.zeros((1, 69))
    lying[:, 38], lying[:, 23] = 1.0, 0.3
    follower.reset(lying, lying + 4 * np.eye(69)[0])
    for _ in range(follower.patience - 1):
        follower.act(lying, np.ones(1, bool))
    assert [decision.reason for decision in follower.decisions[0]] == ["start"]
    np.testing.assert_array_equal(follower._since, 0)  # no corner holds it
    for _ in range(3):
        follower.act(lying, np.ones(1, bool))
    assert [decision.reason for decision in follower.decisions[0]] == ["start", "fallen"]  # for good
    standing = lying.copy()
    standing[:, 23] = 1.4
    for _ in range(follower.patience + 2):
        follower.act(standing, np.ones(1, bool))
    assert [decision.reason for decision in follower.decisions[0]] == ["start", "fallen", "stuck"]
    assert follower.decisions[0][-1].planned


def test_a_world_can_tell_the_true_heading(humanoid):
    task = telling(MEDIUM)
    assert isinstance(task.domain.make, partial)
    world = task.domain.open()
    observation, goal = world.reset(1, 0)
    assert (observation.shape, goal.shape) == ((70,), (69,))
    stepped = world.step(np.zeros(21))
    assert isinstance(world, TellingWorld)
    assert stepped.observation[-1] == pytest.approx(true_heading(world.scene()[1]))
    world.close()
    follower = PlanFollower(OraclePlanner("medium"), task, Following(), told(humanoid))
    results = evaluate(follower, task, [1], 1, step_limit=3, workers=0)
    assert results[0].steps == 3
    assert humanoid._track is None  # told, it estimates nothing


@pytest.mark.slow
def test_a_humanoids_controller_is_trained_and_comes_back_with_its_estimator(walks, tmp_path, humanoid):
    config = TrainConfig(steps=40, batch=64, learning_rate=3e-3, warmup=5, precision="float32")
    given = {"model": HUMANOID, "config": config, "progress": False}
    with pytest.raises(UserError, match="observations of the humanoid do not hold its heading: train an estimator"):
        train_controller(walks, MEDIUM, tmp_path, **given)
    trained = train_controller(walks, MEDIUM, tmp_path, **given, estimator=humanoid.estimator)
    assert 0.01 < trained.speed < 0.1
    again = load_controller(tmp_path)
    assert again.estimator is not None
    observations = np.asarray(walks.observations[100:104])
    targets = MEDIUM.space.planned(observations) + 1
    for controller in (again, trained):
        controller.reset(observations)
    np.testing.assert_allclose(again(observations, targets), trained(observations, targets), atol=0.05)


def test_mistakes_are_sentences(humanoid):
    with pytest.raises(UserError, match="a controller's frame is 'world' or 'heading', not 'moon'"):
        replace(HUMANOID, frame="moon")
    with pytest.raises(UserError, match="takes observations of 69, not 29"):
        humanoid(np.zeros((1, 29)), np.zeros((1, 2)))
    ant = InverseController(InverseDynamics(ANT), (0.1,), source="runs/ant")
    with pytest.raises(UserError, match="'runs/ant' drives the body 'ant'; 'humanoidmaze-medium-stitch-v0' moves"):
        PlanFollower(OraclePlanner("medium"), MEDIUM, Following(), ant)
    assert BODIES["humanoid"].control["frame"] == "heading"


@pytest.mark.parametrize("name", STORED)
def test_shipped_ants_act_as_they_always_did(name):
    controller = load_controller(pretrained_folder() / "controllers" / f"antmaze-{name}-v0")
    frame, stored = STORED[name]
    assert controller.network.config.frame == frame
    assert controller.estimator is None
    acted = controller(np.linspace(-1, 1, 29)[None], np.array([[0.6, -0.3]]))
    np.testing.assert_allclose(acted[0], stored, atol=1e-5)


@pytest.mark.slow
def test_the_command_trains_estimator_and_controller(walks, tmp_path, capsys):
    file = tmp_path / "walks.npz"
    storage.save(walks, file, {"name": MEDIUM.name})
    out, few = tmp_path / "out", ["--steps", "2", "--batch", "16", "--heading-steps", "2", "--device", "cpu"]
    assert main(["train-controller", str(file), "--out", str(out), *few, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["heading_errors"]["episodes"] == 1
    controller = load_controller(out)
    assert controller.network.config == InverseDynamicsConfig(
        69, 21, "humanoid", MEDIUM.space, **BODIES["humanoid"].control
    )
    files = [*out.glob("*.safetensors"), *(out / "heading").glob("*.safetensors")]
    assert sum(part.stat().st_size for part in files) < 6_000_000
    assert main(["train-controller", str(file), "--horizon", "12", "--horizons", "8", "80"]) == 2
    assert "give one of them" in capsys.readouterr().err
