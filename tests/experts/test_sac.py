from dataclasses import replace

import numpy as np
import pytest
import torch

from compdiffuser.experts.config import expert_config
from compdiffuser.experts.replay import Replay, Sizes
from compdiffuser.experts.sac import SoftActorCritic

CPU = torch.device("cpu")


def agent_on_a_toy(tmp_path, **changes) -> SoftActorCritic:
    """A body of one step that moves as it acts: the best action is the direction."""
    config = replace(
        expert_config("ant"), actor_hidden=(32, 32), critic_hidden=(32, 32), batch=64, learning_rate=3e-3,
        environments=10, target_rate=0.05, top_speed=None, **changes,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (500, 2))
    angles = rng.uniform(0, 2 * np.pi, 500)
    direction = np.stack([np.cos(angles), np.sin(angles)], 1)
    observation = rng.normal(size=(500, 3))
    # observation, next observation, action, direction, push, base, goes on
    rows = [observation, observation, actions, direction, actions, np.zeros((500, 1)), np.zeros((500, 1))]
    replay = Replay(tmp_path / "replay.bin", 500, Sizes(3, 2, 2), CPU)
    replay.add(np.concatenate(rows, axis=1).astype(np.float32))
    return SoftActorCritic(config, replay, CPU)


@pytest.mark.parametrize("changes", [{}, {"critic": "mean", "layer_norm": True, "relabel": 1.0}], ids=["ant", "other"])
def test_it_learns_to_go_in_the_commanded_direction(tmp_path, changes):
    agent = agent_on_a_toy(tmp_path, **changes)
    for _ in range(25):
        agent.update()
    batch = agent.replay.sample(200, torch.Generator().manual_seed(1))
    along = (agent.actor(batch.states) * batch.states[:, 3:]).sum(1)
    assert along.mean() > 0.8
    measures = agent.mean_measures()
    assert measures["temperature"] < 0.1
    assert all(np.isfinite(value) for value in measures.values())
    assert agent.updates == 250


def test_each_loss_moves_its_own_weights_only(tmp_path):
    agent = agent_on_a_toy(tmp_path)
    before = [weight.clone() for weight in agent.critics.parameters()]
    agent._step((agent.actor(torch.zeros(1, 5)).sum(), agent.actor), (agent.log_temperature.exp(), None))
    for weight, old in zip(agent.critics.parameters(), before, strict=True):
        assert torch.equal(weight, old)


def test_a_restored_agent_goes_on_as_if_nothing_had_happened(tmp_path):
    first, second = agent_on_a_toy(tmp_path / "a"), agent_on_a_toy(tmp_path / "b", seed=5)
    first.update()
    torch.save(first.state(), tmp_path / "state.pt")
    second.restore(torch.load(tmp_path / "state.pt", weights_only=True))
    first.update()
    second.update()
    for one, other in zip(first.parameters, second.parameters, strict=True):
        torch.testing.assert_close(one, other)
    assert first.updates == second.updates


def test_a_run_may_change_its_device(tmp_path):
    first, second = agent_on_a_toy(tmp_path / "a"), agent_on_a_toy(tmp_path / "b")
    first.update()
    state = first.state()
    state["generator"] = state["generator"][:16]  # as a GPU's
    state["optimizer"]["param_groups"][0]["capturable"] = True
    second.restore(state)
    assert not second.optimizer.param_groups[0]["capturable"]
    second.update()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_rounds_are_one_graph(tmp_path):
    agent = agent_on_a_toy(tmp_path)
    replay = Replay(tmp_path / "gpu.bin", 500, agent.replay.sizes, torch.device("cuda"))
    replay.add(agent.replay.rows.numpy())
    captured = SoftActorCritic(agent.config, replay, torch.device("cuda"))
    for _ in range(40):
        captured.update()
    assert captured.graph is not None
    batch = replay.sample(200, torch.Generator("cuda").manual_seed(1))
    assert (captured.actor(batch.states) * batch.states[:, 3:]).sum(1).mean() > 0.8
