"""RvS and DT: losses by hand, causality, memory, and what they learn from a corridor that was recorded in halves."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_agents import NoSynchronization, walks
from walkway import LENGTH, halves, success

from compdiffuser.baselines import METHODS, Sizes
from compdiffuser.baselines.augmented import Augmentation
from compdiffuser.baselines.checkpoint import load
from compdiffuser.baselines.decision_transformer import DecisionTransformer, DTConfig
from compdiffuser.baselines.goals import Imitation
from compdiffuser.baselines.presets import parse_changes
from compdiffuser.baselines.rvs import RvS, RvSConfig
from compdiffuser.baselines.training import train_baseline, train_config
from compdiffuser.presets import own_preset
from compdiffuser.types import UserError

SIZES = Sizes(observation=3, action=2, goal=3)
SMALL = {
    "rvs": RvSConfig(hidden=(64, 64)),
    "dt": DTConfig(width=32, blocks=1, batch=32, warmup=50, dropout=0.05),
}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def agent_of(name: str, seeds=(0,), **changes):
    return METHODS[name].agent(replace(SMALL[name], **changes), SIZES, seeds)


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(seed))


@pytest.mark.parametrize("name", SMALL)
def test_the_contract(name):
    agent = agent_of(name, [4, 5, 6])
    with NoSynchronization():
        batch = agent.draw(walks(), generator())
        losses = agent.loss(batch)
        losses.sum().backward()
    assert all(field.shape[:2] == (3, agent.config.batch) for field in batch)
    assert losses.shape == (3, 1)
    assert all(weight.shape[0] == 3 for weight in agent.state_dict().values())
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in agent.parameters())
    alone = agent_of(name, [5])
    for key, weight in alone.state_dict().items():
        assert torch.equal(agent.state_dict()[key][1:2], weight)
    torch.testing.assert_close(alone.loss(type(batch)(*(field[1:2] for field in batch)))[0], losses[1])


def test_rvs_by_hand():
    agent = RvS(RvSConfig(hidden=(4,)), SIZES, [0])
    with torch.no_grad():
        agent.network.layers[-1].weight.zero_()
        agent.network.layers[-1].bias.copy_(torch.tensor([0.0, 20.0]))  # tanh: 0 and 1
    states, actions = torch.zeros(1, 2, 3), torch.tensor([[[1.0, 1.0], [0.0, -1.0]]])
    assert agent.loss(Imitation(states, actions, states)).item() == pytest.approx((1 + 0 + 0 + 4) / 4)
    assert agent.act(states, states).abs().max() <= 1


def test_contexts_are_pieces_of_episodes_with_goals_beyond_them():
    experience = walks()
    data = experience.data
    batch = agent_of("dt", [0], batch=4000).draw(experience, generator())
    places = {tuple(state): row for row, state in enumerate(data.observations.tolist())}
    rows = torch.tensor([[places[tuple(state)] for state in context] for context in batch.observations[0].tolist()])
    goals = torch.tensor([places[tuple(goal)] for goal in batch.goals[0].tolist()])
    first, last = rows[:, 0], data.last[rows[:, 0]]
    expected = torch.minimum(first[:, None] + torch.arange(5), last[:, None])
    assert torch.equal(rows, expected)
    assert torch.equal(batch.actions[0], data.actions[expected])
    assert torch.equal(batch.recorded[0].bool(), first[:, None] + torch.arange(5) < last[:, None])
    acted = torch.minimum(first + 4, last - 1)
    assert ((goals > acted) & (goals <= last)).all()
    assert 0.03 < 1 - batch.kept.float().mean() < 0.07


def test_states_beyond_the_end_of_an_episode_do_not_count():
    agent = agent_of("dt")
    batch = agent.draw(walks(), generator())
    beyond = (batch.recorded == 0)[..., None]
    assert beyond.any()
    other = batch._replace(actions=torch.where(beyond, batch.actions + 9, batch.actions))
    torch.testing.assert_close(agent.loss(other), agent.loss(batch))


@pytest.mark.parametrize("heads", [1, 4])
def test_dt_ignores_the_future(heads):
    agent = agent_of("dt", [0, 1], heads=heads)
    for layer in (agent.head, *(block.narrow for block in agent.blocks)):
        layer.weight.data = noise(*layer.weight.shape)
    states, actions, goal = noise(2, 6, 5, 3), noise(2, 6, 4, 2, seed=1), agent.goal_token(noise(2, 6, 3, seed=2))
    before = agent.answers(states, actions, goal)
    for place in range(5):
        later_states, later_actions = states.clone(), actions.clone()
        later_states[:, :, place + 1 :] += 3
        later_actions[:, :, place:] -= 2  # the action of this very state is what is asked for
        after = agent.answers(later_states, later_actions, goal)
        assert torch.equal(after[:, :, : place + 1], before[:, :, : place + 1])
        if place < 4:
            assert not torch.allclose(after[:, :, place + 1], before[:, :, place + 1])
        changed = states.clone()
        changed[:, :, place] += 1
        assert not torch.allclose(agent.answers(changed, actions, goal)[:, :, place], before[:, :, place])
    elsewhere = agent.answers(states, actions, agent.goal_token(noise(2, 6, 3, seed=3)))
    assert not torch.allclose(elsewhere[:, :, 0], before[:, :, 0])


@pytest.mark.parametrize("context", [1, 4])
def test_dt_remembers_as_many_states_as_its_context_and_forgets_when_episodes_begin(context):
    agent = agent_of("dt", context=context).eval()
    agent.head.weight.data = noise(*agent.head.weight.shape)
    goals, seen = noise(1, 3, 3), noise(9, 1, 3, 3, seed=1)
    with torch.inference_mode():
        for _ in range(2):
            agent.begin(goals)
            done = [agent.act(observation, goals) for observation in seen]
            for step in range(9):
                first = max(0, step - context + 1)
                states = torch.stack(list(seen[first : step + 1]), 2)
                before = torch.stack([*done[first:step], done[step]], 2)[:, :, :-1]
                short = context - states.shape[2]
                states = torch.nn.functional.pad(states, (0, 0, 0, short))
                before = torch.nn.functional.pad(before, (0, 0, 0, short))
                expected = agent.answers(states, before, agent.goal_token(goals))[:, :, step - first]
                torch.testing.assert_close(done[step], expected)


def trained(name: str, out, augment: str | None = None, updates: int = 400):
    config = SMALL[name]
    return train_baseline(
        name, halves(), own_preset("corridor"), out, config=config, training=train_config(config, updates),
        augment=Augmentation(augment, clusters=24) if augment else None, progress=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_corridor_is_learned_in_seconds(name, tmp_path):
    start, goal = np.random.default_rng(1).uniform(0.2, 3.8, (2, 40))
    agents = trained(name, tmp_path)
    assert agents.record["augment"] is None
    assert success(agents.policy(), start, goal) >= 0.8


def test_a_schedule_is_the_methods_own():
    assert train_config(RvSConfig(), 100).schedule == "cosine"
    assert train_config(RvSConfig(schedule="constant"), 100).schedule == "constant"
    assert parse_changes("dt", ["schedule=constant"]) == {"schedule": "constant"}
    assert train_config(METHODS["gcbc"].config(), 100).schedule == "constant"
    with pytest.raises(UserError, match="unknown schedule 'step'; choose cosine or constant"):
        RvSConfig(schedule="step")


@pytest.mark.slow
def test_augmentation_joins_the_halves_of_a_corridor(tmp_path):
    """From the first arm to the third no episode leads."""
    rng = np.random.default_rng(1)
    apart = rng.uniform(0.2, 1.2, 20), rng.uniform(LENGTH - 0.4, LENGTH, 20)
    assert success(trained("rvs", tmp_path / "plain").policy(), *apart) <= 0.3
    trained("rvs", tmp_path / "joined", "sa")
    joined = load(tmp_path / "joined", "rvs")
    assert joined.record["augment"] == "sa"
    assert success(joined.policy(), *apart) >= 0.7


def test_a_run_with_another_augmentation_is_not_continued(tmp_path):
    trained("rvs", tmp_path, "sa", updates=2)
    for other in (None, "ga"):
        with pytest.raises(UserError, match="holds a run with augment sa, not"):
            trained("rvs", tmp_path, other, updates=4)


def test_settings_and_data_that_cannot_be_are_named(tmp_path):
    with pytest.raises(UserError, match="width of 30 cannot be divided among 4 heads"):
        DTConfig(width=30, heads=4)
    with pytest.raises(UserError, match=r"not 1\.0"):
        DTConfig(dropout=1.0)
    config = replace(SMALL["dt"], context=100)
    with pytest.raises(UserError, match="a context of 100 states is longer than any episode; the longest has 56"):
        train_baseline("dt", halves(), own_preset("corridor"), tmp_path, config=config, progress=False)
    assert not list(tmp_path.iterdir())
    DecisionTransformer(replace(config, context=30), SIZES, [0]).check(walks().data)
