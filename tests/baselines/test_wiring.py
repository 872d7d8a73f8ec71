"""Every loss of the six row by row from its equations: which network is asked about what, and what each part trains."""

import math

import torch
import torch.nn.functional as F
from test_agents import SIZES, generator

from compdiffuser.baselines import METHODS
from compdiffuser.baselines.goals import Batch, Imitation, SubgoalBatch

ROWS = 24
DISCOUNT, EXPECTILE = 0.9, 0.8


def stirred(name: str, **settings):
    """An agent with all weights drawn anew: targets differ from what they follow, and actors leave [−1, 1]."""
    chosen, numbers = METHODS[name], generator(1)
    agent = chosen.agent(chosen.config(hidden=(8,), discount=DISCOUNT, **settings), SIZES, [0]).double()
    with torch.no_grad():
        for weight in agent.parameters():
            weight.copy_(torch.randn(weight.shape, generator=numbers))
    return agent


def batch_of(kind):
    """A batch in which no field is another one, with steps of all lengths and some goals reached; and its rows."""
    numbers = generator(3)
    batch = kind(*(torch.randn(1, ROWS, 3, generator=numbers, dtype=torch.float64) for _ in kind._fields))
    batch = batch._replace(actions=batch.actions[..., :2])
    if kind is not Imitation:
        steps = torch.logspace(-2, 0.5, ROWS)[:, None] * batch.next_observations
        reached = (torch.arange(ROWS) % 3 == 1).double()[None]
        batch = batch._replace(next_observations=batch.observations + steps, reached=reached)
    return batch, [kind(*row) for row in zip(*(field[0] for field in batch), strict=True)]


def at(network, *vectors: torch.Tensor) -> torch.Tensor:
    """What a network says of one row: a number, a vector, or one number of each copy."""
    return network(*(vector[None, None] for vector in vectors)).squeeze()


def mean(terms):
    return sum(terms) / len(terms)


def log_normal(middle: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.distributions.Normal(middle, 1.0).log_prob(x).sum()


def share(advantage: torch.Tensor) -> float:
    """|τ − 1(A < 0)|"""
    return 1 - EXPECTILE if advantage < 0 else EXPECTILE


def expectiles(rows, values, targets) -> torch.Tensor:
    """L(V) of GCIVL and HIQL; `values` and `targets` give both copies' numbers for a state and a goal."""
    terms, shares = [], set()
    for row in rows:
        s, then, g = row.observations, row.next_observations, row.value_goals
        aims = [0 * value if row.reached else -1 + DISCOUNT * value for value in targets(then, g)]
        weight = share(min(aims) - mean(targets(s, g)))
        shares.add(weight)
        terms.append(weight * sum((aim - value) ** 2 for aim, value in zip(aims, values(s, g), strict=True)))
    assert len(shares) == 2
    return mean(terms)


def cloning(gains, logs, alpha: float) -> torch.Tensor:
    """−E min(exp(α·A), 100)·log π, for one A and one log π a row."""
    weights = [(alpha * gain).exp().item() for gain in gains]
    assert min(weights) < 1 < 100 < max(weights)
    return -mean([min(weight, 100) * log for weight, log in zip(weights, logs, strict=True)])


def climbing(rows, actor, worth, alpha: float) -> torch.Tensor:
    """−E Q(s, μ, g) / E|Q| − α·E log π(a | s, g); `worth` gives Q of a row and an action."""
    means = [at(actor, row.observations, row.actor_goals) for row in rows]
    assert min(m.abs().min() for m in means) < 1 < max(m.abs().max() for m in means)
    worths = [worth(row, m.clamp(-1, 1)) for row, m in zip(rows, means, strict=True)]
    logs = [log_normal(m, row.actions) for row, m in zip(rows, means, strict=True)]
    return -mean(worths) / mean([abs(q.item()) for q in worths]) - alpha * mean(logs)


def agrees(agent, batch, **parts: tuple[torch.Tensor, set[str]]) -> None:
    """Each part is the loss given here, and has its gradient with regard to the networks named here and no others."""
    assert tuple(parts) == agent.parts
    weights = {name: weight for name, weight in agent.named_parameters() if weight.requires_grad}
    for loss, (wanted, trained) in zip(agent.loss(batch)[0], parts.values(), strict=True):
        torch.testing.assert_close(loss, wanted, rtol=1e-5, atol=0)
        chosen = [name for name in weights if name.split(".")[0] in trained]
        by_rows = torch.autograd.grad(wanted, [weights[name] for name in chosen], retain_graph=True)
        expected = dict(zip(chosen, by_rows, strict=True))
        slopes = torch.autograd.grad(loss, list(weights.values()), retain_graph=True, materialize_grads=True)
        for (name, weight), slope in zip(weights.items(), slopes, strict=True):
            assert slope.any() == (name in chosen), name
            torch.testing.assert_close(slope, expected.get(name, torch.zeros_like(weight)), rtol=1e-5, atol=1e-5)


def test_gcbc_row_by_row():
    agent, (batch, rows) = stirred("gcbc"), batch_of(Imitation)
    logs = [log_normal(at(agent.actor, row.observations, row.goals), row.actions) for row in rows]
    agrees(agent, batch, actor=(-mean(logs), {"actor"}))


def test_gcivl_row_by_row():
    agent, (batch, rows) = stirred("gcivl", alpha=5.0, expectile=EXPECTILE), batch_of(Batch)
    value = expectiles(rows, lambda s, g: at(agent.values, s, g), lambda s, g: at(agent.targets, s, g))
    gains, logs = [], []
    for row in rows:
        s, then, g = row.observations, row.next_observations, row.actor_goals
        gains.append(mean(at(agent.values, then, g)) - mean(at(agent.values, s, g)))
        logs.append(log_normal(at(agent.actor, s, g), row.actions))
    agrees(agent, batch, value=(value, {"values"}), actor=(cloning(gains, logs, alpha=5.0), {"actor"}))


def test_gciql_row_by_row():
    agent, (batch, rows) = stirred("gciql", alpha=0.5, expectile=EXPECTILE), batch_of(Batch)
    value, critic = [], []
    for row in rows:
        s, then, a, g = row.observations, row.next_observations, row.actions, row.value_goals
        advantage = min(at(agent.targets, s, g, a)) - at(agent.values, s, g)
        value.append(share(advantage) * advantage**2)
        aim = 0 if row.reached else -1 + DISCOUNT * at(agent.values, then, g)
        critic.append(sum((aim - q) ** 2 for q in at(agent.critics, s, g, a)))

    def worth(row, action):
        return min(at(agent.critics, row.observations, row.actor_goals, action))

    actor = climbing(rows, agent.actor, worth, alpha=0.5)
    agrees(agent, batch, value=(mean(value), {"values"}), critic=(mean(critic), {"critics"}), actor=(actor, {"actor"}))


def test_qrl_row_by_row():
    agent, (batch, rows) = stirred("qrl", latent=8, component=4, margin=0.5, alpha=0.5), batch_of(Batch)
    apart, excess, model = [], [], []

    def step(z, action):
        return z + at(agent.dynamics, z, action)

    def worth(row, action):
        return -at(agent.metric, step(at(agent.encoder, row.observations), action), at(agent.encoder, row.actor_goals))

    for row in rows:
        z, then, goal = (at(agent.encoder, x) for x in (row.observations, row.next_observations, row.value_goals))
        expected = step(z, row.actions)
        apart.append(100 * F.softplus(5 - at(agent.metric, z, goal) / 100))
        excess.append(F.relu(at(agent.metric, z, then) - 1))
        model.append((at(agent.metric, then, expected) + at(agent.metric, expected, then)) / 2)
    assert min(excess) == 0 < max(excess)
    squared, multiplier = mean([x**2 for x in excess]), agent.log_multiplier.exp().squeeze()
    agrees(
        agent,
        batch,
        value=(mean(apart) + multiplier * squared, {"encoder", "metric"}),
        multiplier=(multiplier * (0.5 - squared), {"log_multiplier"}),
        dynamics=(mean(model), {"encoder", "dynamics", "metric"}),
        actor=(climbing(rows, agent.actor, worth, alpha=0.5), {"actor"}),
    )


def test_crl_row_by_row():
    agent, (batch, rows) = stirred("crl", latent=8, alpha=0.5), batch_of(Batch)
    critic, logits = [], []
    for i, row in enumerate(rows):
        for j, other in enumerate(rows):
            both = at(agent.critics, row.observations, row.actions, other.value_goals)
            critic.append(-mean(F.logsigmoid(both if i == j else -both)))

    def worth(row, action):
        logits.append(min(at(agent.critics, row.observations, action, row.actor_goals)))
        return logits[-1].clamp(min=math.log(1e-6))

    actor = climbing(rows, agent.actor, worth, alpha=0.5)
    assert min(logits) < math.log(1e-6) < max(logits)
    agrees(agent, batch, critic=(mean(critic), {"critics"}), actor=(actor, {"actor"}))


def test_hiql_row_by_row():
    agent, (batch, rows) = stirred("hiql", alpha=5.0, expectile=EXPECTILE, representation=4), batch_of(SubgoalBatch)
    acts = agent.act(batch.observations, batch.actor_goals)[0]
    low, high, doing, proposing = [], [], [], []

    def scaled(x):
        return math.sqrt(4) * x / x.norm()

    def phi(s, g):
        return scaled(at(agent.represent, s, g))

    def values(s, g):
        return at(agent.values, s, phi(s, g))

    for row, act in zip(rows, acts, strict=True):
        s, then, w, g = row.observations, row.next_observations, row.waypoints, row.actor_goals
        low.append(mean(values(then, row.subgoals)) - mean(values(s, row.subgoals)))
        doing.append(log_normal(at(agent.low_actor, s, phi(s, row.subgoals)), row.actions))
        high.append(mean(values(w, g)) - mean(values(s, g)))
        proposal = at(agent.high_actor, s, g)
        proposing.append(log_normal(proposal, phi(s, row.waypoint_goals)))
        torch.testing.assert_close(act, at(agent.low_actor, s, scaled(proposal)))
    value = expectiles(rows, values, lambda s, g: at(agent.targets, s, phi(s, g)).detach())
    agrees(
        agent,
        batch,
        value=(value, {"values", "represent"}),
        low_actor=(cloning(low, doing, alpha=5.0), {"low_actor"}),
        high_actor=(cloning(high, proposing, alpha=5.0), {"high_actor"}),
    )
