"""What all agents promise, and the losses of single methods by hand."""

import math

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compdiffuser.baselines import METHODS, Sizes
from compdiffuser.baselines.gciql import GCIQL, GCIQLConfig
from compdiffuser.baselines.gcivl import GCIVL, GCIVLConfig
from compdiffuser.baselines.goals import Batch, Experience, SubgoalBatch, Trajectories
from compdiffuser.baselines.hiql import HIQL, HIQLConfig
from compdiffuser.baselines.qrl import QRL, QRLConfig
from compdiffuser.types import Episodes

SIX = ("gcbc", "gcivl", "gciql", "qrl", "crl", "hiql")
SIZES = Sizes(observation=3, action=2, goal=3)
PLAIN = {"hidden": (16, 16), "batch": 12}
SMALL = dict.fromkeys(("gcbc", "gcivl", "gciql", "hiql", "rvs"), PLAIN) | {
    "qrl": PLAIN | {"latent": 16},
    "crl": PLAIN | {"latent": 16},
    "dt": {"width": 16, "blocks": 2, "heads": 2, "batch": 12, "warmup": 4},
}


def walks(count: int = 6, length: int = 30) -> Experience:
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (count, length, 2)).astype(np.float32)
    states = np.concatenate([actions.cumsum(1), np.ones((count, length, 1), np.float32)], -1)
    terminals = np.zeros((count, length), bool)
    terminals[:, -1] = True
    flat = states.reshape(-1, 3), actions.reshape(-1, 2), terminals.reshape(-1)
    return Experience(Trajectories.from_episodes(Episodes.from_terminals(*flat)))


def agent_of(name: str, seeds, **changes):
    chosen = METHODS[name]
    return chosen.agent(chosen.config(**SMALL[name], **changes), SIZES, seeds)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", SIX)
def test_the_contract(name):
    agent = agent_of(name, [4, 5, 6])
    batch = agent.draw(walks(), generator())
    losses = agent.loss(batch)
    assert losses.shape == (3, len(agent.parts))
    assert losses.isfinite().all()
    assert all(weight.shape[0] == 3 for weight in agent.state_dict().values())
    observations, goals = torch.randn(2, 3, 7, 3, generator=generator())
    assert agent.act(observations, goals).shape == (3, 7, 2)
    if name != "gcbc":
        assert agent.value(observations, goals).shape == (3, 7)
    losses.sum().backward()
    trained = [p for p in agent.parameters() if p.requires_grad]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in trained)


def learn(agent, batches) -> None:
    optimizer = torch.optim.AdamW([p for p in agent.parameters() if p.requires_grad], lr=1e-3, weight_decay=0.0)
    for batch in batches:
        optimizer.zero_grad()
        agent.loss(batch).sum().backward()
        optimizer.step()
        agent.after_update()


@pytest.mark.parametrize("name", SIX)
def test_a_seed_among_others_learns_what_it_learns_alone(name):
    together, alone = agent_of(name, [4, 5, 6]), agent_of(name, [5])
    draws, experience = generator(), walks()
    batches = [together.draw(experience, draws) for _ in range(10)]
    assert not torch.equal(batches[0].observations[0], batches[0].observations[1])
    learn(together, batches)
    learn(alone, [type(batch)(*(field[1:2] for field in batch)) for batch in batches])
    for key, weight in alone.state_dict().items():
        torch.testing.assert_close(together.state_dict()[key][1:2], weight, rtol=1e-4, atol=1e-5)
        changed = not torch.equal(agent_of(name, [5]).state_dict()[key], weight)
        assert changed, f"{key} is not trained"


class NoSynchronization(TorchDispatchMode):
    """Refuses what a CUDA graph cannot capture: reading a value, and shapes that depend on values."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        assert name not in ("_local_scalar_dense", "nonzero", "masked_select", "unique", "_unique2", "item"), name
        if name in ("index", "index_put_"):
            assert all(index is None or index.dtype != torch.bool for index in args[1]), "an index by a mask"
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", SIX)
def test_an_update_can_be_captured(name):
    agent, experience = agent_of(name, [0, 1]), walks()
    with NoSynchronization():
        agent.loss(agent.draw(experience, generator())).sum().backward()
        agent.after_update()
    with pytest.raises(AssertionError, match="_local_scalar_dense"), NoSynchronization():
        float(torch.ones(1))


@pytest.mark.parametrize("name", ["gciql", "qrl", "crl"])
def test_an_actor_does_not_bend_what_it_climbs(name):
    agent = agent_of(name, [0])
    batch = agent.draw(walks(), generator())
    loss = agent.actor_loss(batch, torch.zeros(1, 12, 16)) if name == "qrl" else agent.actor_loss(batch)
    loss.sum().backward()
    touched = {key.split(".")[0] for key, p in agent.named_parameters() if p.grad is not None}
    assert touched == {"actor"}


def q_of(agent, name: str, batch: Batch, mean: torch.Tensor) -> torch.Tensor:
    """What the actor of a method is to climb, [S, B]."""
    states, goals = batch.observations, batch.actor_goals
    if name == "gciql":
        return agent.critics(states, goals, mean).amin(1)
    if name == "crl":
        return agent.critics(states, mean, goals).amin(1)
    expected = agent._step(agent.encoder(states)[:, 0], mean)
    return -agent.metric(expected, agent.encoder(goals)[:, 0])


@pytest.mark.parametrize("name", ["gciql", "qrl", "crl"])
def test_an_actor_climbs(name):
    """Without the cloning term, a small step of the actor alone makes what it does worth more."""
    agent = agent_of(name, [0], alpha=0.0)
    batch = agent.draw(walks(), generator())

    def worth() -> float:
        return q_of(agent, name, batch, agent.actor(batch.observations, batch.actor_goals).clamp(-1, 1)).mean().item()

    before = worth()
    now = agent.encoder(batch.observations)[:, 0].detach() if name == "qrl" else None
    loss = agent.actor_loss(batch, now) if name == "qrl" else agent.actor_loss(batch)
    loss.sum().backward()
    with torch.no_grad():
        for parameter in agent.actor.parameters():
            parameter -= 1e-2 * parameter.grad
    assert worth() > before + 1e-6


@pytest.mark.parametrize("name", ["gcivl", "gciql", "hiql"])
def test_targets_follow_and_are_not_trained(name):
    agent = agent_of(name, [0], target_rate=0.25)
    online = agent.critics if name == "gciql" else agent.values
    assert not any(p.requires_grad for p in agent.targets.parameters())
    before = [p.clone() for p in agent.targets.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, online.parameters(), strict=True))
    with torch.no_grad():
        for p in online.parameters():
            p += 1.0
    agent.after_update()
    for was, now in zip(before, agent.targets.parameters(), strict=True):
        torch.testing.assert_close(now, was + 0.25)


def constant(network, *values: float) -> None:
    """Make a network with one output give these numbers, one for each copy, whatever it is asked."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.layers[-1].bias.copy_(torch.tensor(values).reshape(network.layers[-1].bias.shape))


def two_rows() -> Batch:
    """The first row is on its way, the second has reached its goal."""
    states = torch.zeros(1, 2, 3)
    actions = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    return Batch(states, states, actions, states, torch.tensor([[0.0, 1.0]]), states)


def test_gcivl_by_hand():
    agent = GCIVL(GCIVLConfig(hidden=(4,), discount=0.9, expectile=0.8, alpha=2.0), SIZES, [0])
    constant(agent.targets.network, -4.0, -6.0)
    constant(agent.values.network, -3.0, -5.0)
    constant(agent.actor.network, 0.0, 0.0)
    # On its way: targets −1 − 3.6 and −1 − 5.4; A = −6.4 + 5 < 0. At the goal: targets 0; A = 0 + 5 > 0.
    way = 0.2 * ((-4.6 + 3) ** 2 + (-6.4 + 5) ** 2)
    goal = 0.8 * (3**2 + 5**2)
    assert agent.value_loss(two_rows()).item() == pytest.approx((way + goal) / 2, rel=1e-5)
    # V(s′) = V(s), so all weights are 1: plain cloning.
    cloning = math.log(2 * math.pi) + (0.5 + 2.0) / 2
    assert agent.actor_loss(two_rows()).item() == pytest.approx(cloning, rel=1e-5)


def test_gciql_by_hand():
    agent = GCIQL(GCIQLConfig(hidden=(4,), discount=0.9, expectile=0.8), SIZES, [0])
    constant(agent.targets.network, -4.0, -6.0)
    constant(agent.critics.network, -3.0, -5.0)
    constant(agent.values.network, -5.0)
    # min Q⁻ − V = −1 in both rows.
    assert agent.value_loss(two_rows()).item() == pytest.approx(0.2, rel=1e-5)
    # On its way the target is −1 − 4.5, at the goal 0.
    expected = ((2.5**2 + 0.5**2) + (3**2 + 5**2)) / 2
    assert agent.critic_loss(two_rows()).item() == pytest.approx(expected, rel=1e-5)


def test_qrl_by_hand():
    agent = QRL(QRLConfig(hidden=(4,), latent=16, margin=0.05), SIZES, [0])
    with torch.no_grad():
        agent.log_multiplier.fill_(math.log(3.0))
    far, near = torch.tensor([[400.0, 600.0]]), torch.tensor([[0.5, 3.0]])
    value, multiplier = agent.value_losses(far, near)
    apart = 100 * (math.log(1 + math.e) + math.log(1 + 1 / math.e)) / 2
    assert value.item() == pytest.approx(apart + 3 * 2.0, rel=1e-5)  # relu(3 − 1)² / 2
    assert multiplier.item() == pytest.approx(3 * (0.05 - 2.0), rel=1e-5)
    # A step that is too long makes the multiplier grow.
    multiplier.sum().backward()
    assert agent.log_multiplier.grad.item() < 0


def test_hiql_by_hand():
    agent = HIQL(HIQLConfig(hidden=(4,), discount=0.9, expectile=0.8, representation=2), SIZES, [0])
    constant(agent.targets.network, -4.0, -6.0)
    constant(agent.values.network, -3.0, -5.0)
    constant(agent.high_actor.network, 0.0, 0.0)
    constant(agent.low_actor.network, 0.0, 0.0)
    constant(agent.represent, 3.0, 4.0)  # everything is represented so, scaled to length √2
    states = torch.zeros(1, 2, 3)
    batch = SubgoalBatch(*two_rows()[:5], states, states, states, states)
    way, goal = 0.2 * (1.6**2 + 1.4**2), 0.8 * (3**2 + 5**2)
    assert agent.value_loss(batch).item() == pytest.approx((way + goal) / 2, rel=1e-5)
    low, high = agent.actor_losses(batch)
    assert low.item() == pytest.approx(math.log(2 * math.pi) + (0.5 + 2.0) / 2, rel=1e-5)
    assert high.item() == pytest.approx(math.log(2 * math.pi) + 0.5 * 2, rel=1e-5)
    reps = agent.representation(states, states)
    assert reps[0, 0].tolist() == pytest.approx([0.6 * math.sqrt(2), 0.8 * math.sqrt(2)], rel=1e-5)


def test_hiql_targets_see_goals_through_the_representation_that_is_trained():
    agent = HIQL(HIQLConfig(hidden=(4,), representation=2), SIZES, [0])
    constant(agent.values.network, -3.0, -5.0)
    states = torch.zeros(1, 2, 3)
    batch = SubgoalBatch(*two_rows()[:5], states, states, states, states)
    constant(agent.represent, 3.0, 4.0)
    before = agent.value_loss(batch)
    constant(agent.represent, -4.0, 3.0)
    after = agent.value_loss(batch)
    assert after.item() != pytest.approx(before.item(), rel=1e-4)
    # The trained values are constant here, so a gradient could come through the targets alone.
    after.sum().backward()
    assert not any(parameter.grad.any() for parameter in agent.represent.parameters())


def worth_its_first_number(network) -> None:
    """Make a value function of two copies give the first number of the state."""
    network.forward = lambda states, goals: states[:, None, :, 0].expand(-1, 2, -1)


def rows_that_gain(gains: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """States at 0, and others worth `gains`."""
    return torch.zeros(1, 2, 3), torch.tensor([[[gain, 0.0, 0.0] for gain in gains]])


def test_gcivl_clones_what_gains_value():
    agent = GCIVL(GCIVLConfig(hidden=(4,), alpha=2.0), SIZES, [0])
    worth_its_first_number(agent.values)
    constant(agent.actor.network, 0.0, 0.0)
    now, then = rows_that_gain([0.5, -0.5])
    batch = two_rows()._replace(observations=now, next_observations=then)
    cost = [math.log(2 * math.pi) + 0.5, math.log(2 * math.pi) + 2.0]
    assert agent.actor_loss(batch).item() == pytest.approx((math.e * cost[0] + cost[1] / math.e) / 2, rel=1e-5)


def test_hiql_clones_what_gains_value_on_both_levels():
    agent = HIQL(HIQLConfig(hidden=(4,), alpha=2.0, representation=2), SIZES, [0])
    worth_its_first_number(agent.values)
    constant(agent.represent, 3.0, 4.0)
    constant(agent.low_actor.network, 0.0, 0.0)
    constant(agent.high_actor.network, 0.0, 0.0)
    now, then = rows_that_gain([0.5, -0.5])
    _, waypoints = rows_that_gain([-1.0, 1.0])
    fields = two_rows()._replace(observations=now, next_observations=then)[:5]
    batch = SubgoalBatch(*fields, subgoals=now, actor_goals=now, waypoints=waypoints, waypoint_goals=now)
    low, high = agent.actor_losses(batch)
    first, second = math.log(2 * math.pi) + 0.5, math.log(2 * math.pi) + 2.0
    assert low.item() == pytest.approx((math.e * first + second / math.e) / 2, rel=1e-5)
    # What the upper level proposes has length √2, so it costs 1 and the constant in both rows.
    weights = (math.exp(-2) + math.exp(2)) / 2
    assert high.item() == pytest.approx(weights * (math.log(2 * math.pi) + 1), rel=1e-5)


def test_imitation_draws_goals_once():
    """GCBC and RvS learn from a state, its action and one later state of the same episode."""
    experience, calls = walks(), []

    def counted(*arguments):
        calls.append(1)
        return experience.sample_goals(*arguments)

    batch = agent_of("gcbc", [0, 1]).draw(Experience(experience.data, counted), generator())
    assert batch._fields == ("observations", "actions", "goals")
    assert len(calls) == 1
    assert [tuple(field.shape) for field in batch] == [(2, 12, 3), (2, 12, 2), (2, 12, 3)]
