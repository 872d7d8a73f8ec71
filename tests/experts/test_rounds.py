from dataclasses import replace

import numpy as np
import pytest
import torch
from small_experts import imaginary, tiny
from torch.distributions import Normal, TanhTransform, TransformedDistribution

from compdiffuser.experts.networks import LOG_STD, Actor, Critics, Normalizer
from compdiffuser.experts.replay import Replay
from compdiffuser.experts.sac import SoftActorCritic, shortened

CPU = torch.device("cpu")
ANT = {
    "top_speed": None, "actor_hidden": (32, 32), "critic_hidden": (32, 32), "batch": 64, "learning_rate": 3e-3,
    "environments": 10, "target_rate": 0.05,
}  # fmt: skip
LARGE = {
    "activation": "silu",
    "layer_norm": True,
    "normalized_steps": 10,
    "critic": "mean",
    "huber": 2.0,
    "relabel": 1.0,
}


def agent_on_a_toy(folder, device=CPU, **changes) -> SoftActorCritic:
    """A body of one step that moves as it acts: the best action is the direction."""
    config = tiny("ant", **ANT | changes)
    rng = np.random.default_rng(0)
    bodies = imaginary(view=3, action=2, ingredients=1)
    rows = np.zeros((500, bodies.transitions.width), np.float32)
    parts = bodies.transitions.split(rows)
    parts["view"][:] = parts["following"][:] = rng.normal(size=(500, 3))
    parts["action"][:] = parts["displacement"][:] = rng.uniform(-1, 1, (500, 2))
    angles = rng.uniform(0, 2 * np.pi, 500)
    parts["command"][:] = np.stack([np.cos(angles), np.sin(angles)], 1)
    agent = SoftActorCritic(config, bodies, device)
    agent.replay = Replay(folder / f"{device.type}.bin", 500, bodies.transitions, device, together=500)
    agent.replay.add(rows)
    return agent


def along(agent) -> float:
    parts = agent.replay.sample(200, torch.Generator(agent.device).manual_seed(1))
    acted = agent.actor(agent.actor.state(parts["view"], parts["command"]))
    return float((acted.detach() * parts["command"]).sum(1).mean())


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, LARGE], ids=["ant", "large"])
def test_a_few_updates_teach_it_to_go_in_the_commanded_direction(tmp_path, changes):
    agent = agent_on_a_toy(tmp_path, **changes)
    assert along(agent) < 0.3
    for _ in range(25):
        agent.update()
    assert along(agent) > 0.8
    means = agent.take_means()
    assert means["temperature"] < 0.1
    assert all(np.isfinite(value) for value in means.values())
    assert agent.updates == 250


def test_half_of_a_batch_is_told_something_else(tmp_path):
    agent = agent_on_a_toy(tmp_path, batch=400)
    rows = agent.replay.layout.split(agent.replay.rows)
    batch = agent.sample()
    index = (batch.states[:, :1] == rows["view"][:, 0]).float().argmax(1)
    shown, push = batch.states[:, 3:], rows["displacement"][index]
    torch.testing.assert_close(batch.rewards, (push * shown).sum(1))
    torch.testing.assert_close(batch.following, batch.states)
    torch.testing.assert_close(shown.norm(dim=1), torch.ones(400))
    assert abs(int((shown == rows["command"][index]).all(1).sum()) - 200) < 50


def test_a_step_moves_the_weights_it_was_given_gradients_for(tmp_path):
    agent = agent_on_a_toy(tmp_path)
    before = [weight.clone() for weight in agent.critics.parameters()]
    weights = agent.groups[1]
    moved = weights[0].clone()
    agent.step((weights, torch.autograd.grad(agent.actor(torch.ones(1, 5)).sum(), weights)))
    assert not torch.equal(moved, weights[0])
    for weight, old in zip(agent.critics.parameters(), before, strict=True):
        assert torch.equal(weight, old)


def test_long_gradients_are_shortened():
    long = shortened((torch.full((4,), 30.0), torch.full((9,), 40.0)))
    assert float(torch.cat(long).norm()) == pytest.approx(10, rel=1e-4)
    torch.testing.assert_close(shortened((torch.ones(4),))[0], torch.ones(4))


@pytest.mark.parametrize("changes", [{}, LARGE], ids=["ant", "large"])
def test_a_restored_agent_goes_on_as_if_nothing_had_happened(tmp_path, changes):
    for name in "ab":
        (tmp_path / name).mkdir()
    first, second = agent_on_a_toy(tmp_path / "a", **changes), agent_on_a_toy(tmp_path / "b", **changes, seed=5)
    first.update()
    torch.save(first.state(), tmp_path / "state.pt")
    second.restore(torch.load(tmp_path / "state.pt", weights_only=True))
    first.update(0.5)
    second.update(0.5)
    for name, module in first.modules().items():
        for one, other in zip(module.parameters(), second.modules()[name].parameters(), strict=True):
            torch.testing.assert_close(one, other)
    assert first.updates == second.updates


def test_a_run_may_change_its_device(tmp_path):
    agent = agent_on_a_toy(tmp_path)
    agent.update()
    state = agent.state()
    state["generator"] = state["generator"][:16]  # as a GPU's
    state["optimizer"]["param_groups"][0]["capturable"] = True
    agent.restore(state)
    assert not agent.optimizer.param_groups[0]["capturable"]
    agent.update()


def test_the_learning_rate_falls_as_a_cosine(tmp_path):
    agent = agent_on_a_toy(tmp_path, final_rate=0.1)
    for done, share in ((0.0, 1.0), (0.5, 0.55), (1.0, 0.1), (2.0, 0.1)):
        agent.update(done)
        assert float(agent.optimizer.param_groups[0]["lr"]) == pytest.approx(3e-3 * share, rel=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_rounds_are_one_graph(tmp_path):
    agent = agent_on_a_toy(tmp_path, torch.device("cuda"), **LARGE)
    for _ in range(60):
        agent.update()
    assert agent.graph is not None
    assert along(agent) > 0.8


def test_densities_are_those_of_a_squashed_gaussian():
    torch.manual_seed(0)
    actor = Actor(tiny("ant", actor_hidden=(16,)), 3, 2, 3).double()
    states = torch.randn(64, 5, dtype=torch.float64)
    actions, density = actor.sample(states, torch.Generator().manual_seed(1))
    mean, spread = actor.network(states).chunk(2, -1)
    squashed = TransformedDistribution(Normal(mean, spread.clamp(*LOG_STD).exp()), [TanhTransform()])
    torch.testing.assert_close(density, squashed.log_prob(actions).sum(-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_two_critics_in_one_product_are_two_networks(layer_norm):
    torch.manual_seed(0)
    critics = Critics(replace(tiny("ant", critic_hidden=(8, 8)), layer_norm=layer_norm), 4 + 2)
    states, actions = torch.randn(5, 4), torch.randn(5, 2)
    values = critics(states, actions)
    assert values.shape == (2, 5)
    assert not torch.equal(values[0], values[1])
    x = torch.cat([states, actions], 1)
    for number in range(3):
        x = x @ critics.weights[number][1] + critics.biases[number][1]
        if number < 2:
            x = torch.relu(torch.nn.functional.layer_norm(x, (8,)) if layer_norm else x)
    torch.testing.assert_close(values[1], x[:, 0])


def test_running_means_are_those_of_all_inputs():
    rows = torch.randn(1000, 3) * torch.tensor([1.0, 5.0, 0.0]) + torch.tensor([0.0, 2.0, 1.0])
    normalizer = Normalizer(3)
    for part in rows.split([100, 250, 650]):
        normalizer.see(part)
    torch.testing.assert_close(normalizer.mean, rows.mean(0), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(normalizer.variance, rows.var(0), rtol=2e-2, atol=1e-3)
    assert normalizer(torch.tensor([[0.0, 2.0, 1e9]])).abs().max() == 10
