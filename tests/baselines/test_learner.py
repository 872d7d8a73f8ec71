"""Batches drawn for several updates at once are handed out one by one, to losses that can be compiled."""

import pytest
import torch
from test_agents import agent_of, generator, walks

from compdiffuser.baselines import METHODS
from compdiffuser.baselines.learner import GoalLearner


def test_each_update_gets_rows_of_its_own_and_drawing_happens_once():
    agent, seen = agent_of("gcivl", [0, 1]), []
    learner = GoalLearner(agent, walks(), updates=3)
    draws = []
    draw = learner.drawer.draw
    learner.drawer.draw = lambda *arguments: draws.append(1) or draw(*arguments)
    learner.loss_of = lambda batch: seen.append(batch) or torch.zeros(2, 2)
    numbers = generator()
    for _ in range(6):
        learner.loss(agent, numbers)
    assert len(draws) == 2
    assert all(batch.observations.shape == (2, 12, 3) for batch in seen)
    assert len({tuple(batch.observations.flatten().tolist()) for batch in seen}) == 6
    assert agent.config.batch == 12  # drawing for three updates does not change the agent


def test_the_learner_brings_the_parts_and_what_follows_an_update():
    agent = agent_of("gcivl", [0])
    learner = GoalLearner(agent, walks())
    assert learner.parts == ("value", "actor")
    before = [weight.clone() for weight in agent.targets.parameters()]
    with torch.no_grad():
        for weight in agent.values.parameters():
            weight += 1
    learner.after_update()
    assert all(not torch.equal(a, b) for a, b in zip(before, agent.targets.parameters(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name in ("gcbc", "hiql") else pytest.param(name, marks=pytest.mark.long) for name in METHODS]
)
def test_a_loss_compiles_in_one_piece_with_its_gradient_in_mixed_precision_too(name):
    torch.compiler.reset()  # what the last method compiled does not count towards this one's limit
    agent = agent_of(name, [0, 1])
    batch = agent.draw(walks(), generator())
    weights = [p for p in agent.parameters() if p.requires_grad]
    # Tracing gradients too takes most of the time; once is enough.
    for mixed, backend, bound in ((False, "eager", 1e-4), (True, "aot_eager", 3e-2)):
        compiled = torch.compile(agent.loss, dynamic=False, fullgraph=True, backend=backend)
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            losses, expected = compiled(batch), agent.loss(batch)
        torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-4)
        slopes = (torch.autograd.grad(loss.sum(), weights) for loss in (losses, expected))
        for found, wanted in zip(*slopes, strict=True):
            assert (found - wanted).norm() <= bound * wanted.norm()
