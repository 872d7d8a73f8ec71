from dataclasses import replace

import numpy as np
import pytest
import torch

from compdiffuser.domains import PLANE, Space
from compdiffuser.following.learner import ControlLearner, Steps
from compdiffuser.following.network import InverseDynamics, InverseDynamicsConfig
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.loop import fit
from compdiffuser.types import Episodes, UserError

CPU = torch.device("cpu")
SMALL = InverseDynamicsConfig(observation=3, action=2, horizons=(5, 5), hidden=(64, 64))


def drifting(seed: int = 0, length: int = 30) -> Episodes:
    """Points that keep one velocity a for a whole episode, x' = x + a; the third number says nothing."""
    rng = np.random.default_rng(seed)
    velocity = rng.uniform(-1, 1, (40, 1, 2))
    xy = rng.normal(size=(40, 1, 2)) * 5 + np.arange(length)[None, :, None] * velocity
    states = np.concatenate([xy, rng.normal(size=(40, length, 1))], axis=2)
    actions = np.repeat(velocity, length, axis=1)
    terminals = np.tile(np.arange(length) == length - 1, 40)
    return Episodes.from_terminals(states.reshape(-1, 3), actions.reshape(-1, 2), terminals)


def trained(config: InverseDynamicsConfig, out) -> InverseDynamics:
    torch.manual_seed(0)
    network = InverseDynamics(config)
    steps = Steps.from_episodes(drifting(), config.horizons, CPU)
    now, later, _, _ = steps.sample(1000, config.horizons[0], torch.Generator().manual_seed(0))
    network.scale_to(now, network.planned(later - now))
    settings = TrainConfig(steps=250, batch=256, learning_rate=3e-3, warmup=10)
    fit(ControlLearner(network, steps, 256), settings, CPU, out, progress=False)
    return network.eval()


@pytest.mark.parametrize("horizons", [(5, 5), (2, 8)])
def test_it_learns_a_linear_system(tmp_path, horizons):
    network = trained(replace(SMALL, horizons=horizons), tmp_path)
    states = torch.tensor([[7.0, -3.0, 0.2], [0.0, 0.0, -1.0]])
    for h in range(horizons[0], horizons[1] + 1, 3):
        wanted = torch.tensor([[0.5, -0.5], [-0.8, 0.1]])
        with torch.no_grad():
            actions = network(states, states[:, :2] + h * wanted, torch.full((2,), h))
        torch.testing.assert_close(actions, wanted, atol=0.12, rtol=0)


def test_only_what_lies_ahead_in_the_same_episode_is_drawn():
    episodes = drifting(length=6)
    steps = Steps.from_episodes(episodes, (2, 8), CPU)
    assert len(steps.rows) == 40 * 4
    now, later, horizons, actions = steps.sample(2000, 2, torch.Generator().manual_seed(0))
    torch.testing.assert_close(later[:, :2], now[:, :2] + horizons[:, None] * actions, atol=1e-4, rtol=0)
    assert (int(horizons.min()), int(horizons.max())) == (2, 5)
    with pytest.raises(UserError, match="no episode has 6 steps ahead: the longest has 6 states"):
        Steps.from_episodes(episodes, (6, 6), CPU)


def test_speed_is_that_of_single_steps_however_the_way_winds():
    turn = np.arange(40) * np.pi / 6  # a circle of twelve steps
    circle = np.stack([np.cos(turn), np.sin(turn), turn], axis=1)
    episodes = np.stack([circle, circle + np.array([50.0, 0.0, 0.0])])  # far apart, never a step from one to the other
    terminals = np.tile(np.arange(40) == 39, 2)
    steps = Steps.from_episodes(
        Episodes.from_terminals(episodes.reshape(-1, 3), np.zeros((80, 2)), terminals), (1, 12), CPU
    )
    speeds = [steps.speeds(n, torch.Generator().manual_seed(seed), PLANE)[0] for n, seed in ((1, 0), (1, 1), (500, 2))]
    assert speeds == pytest.approx([2 * np.sin(np.pi / 12)] * 3, rel=1e-4)


def test_speed_is_the_median_of_many():
    steps = Steps.from_episodes(drifting(), (2, 8), CPU)
    speeds = np.linalg.norm(drifting().actions[::30], axis=1)
    measured = steps.speeds(20_000, torch.Generator().manual_seed(0), PLANE)
    assert measured == pytest.approx((np.median(speeds),), rel=0.05)


def test_the_place_in_the_maze_does_not_matter():
    network = InverseDynamics(replace(SMALL, observation=29, action=8)).eval()
    states, targets = torch.randn(4, 29), torch.randn(4, 2)
    moved = states.clone()
    moved[:, :2] += 10
    h = torch.full((4,), 5)
    torch.testing.assert_close(network(states, targets, h), network(moved, targets + 10, h), atol=1e-5, rtol=1e-4)


def test_an_ants_network_is_small_on_disk():
    network = InverseDynamics(InverseDynamicsConfig(observation=29, action=8))
    assert sum(2 * tensor.numel() for tensor in network.state_dict().values()) < 2_000_000
    assert "dims" not in network.state_dict()


def test_bad_settings_are_named():
    with pytest.raises(UserError, match="horizons are at least 1 and in order, not 0 to 0"):
        replace(SMALL, horizons=(0, 0))
    with pytest.raises(UserError, match="there is no dimension 3"):
        replace(SMALL, space=Space.of((0, 3)))
    with pytest.raises(UserError, match=r"dropout is a share below 1, not 1\.0"):
        replace(SMALL, dropout=1.0)
    with pytest.raises(UserError, match="unknown body 'centaur'; known bodies: point, ant"):
        replace(SMALL, body="centaur")
    assert InverseDynamicsConfig.from_dict(SMALL.to_dict()) == SMALL
