"""Updates as one CUDA graph are the updates that run one by one."""

import pytest
import torch
from test_agents import SIX, agent_of, walks

from compdiffuser.baselines.goals import Experience, Trajectories
from compdiffuser.baselines.learner import GoalLearner
from compdiffuser.baselines.training import train_config
from compdiffuser.training.loop import WARM_REPLAYS, Updater

GPU = torch.device("cuda")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def on_gpu() -> Experience:
    data = walks().data
    moved = (getattr(data, name).to(GPU) for name in ("observations", "actions", "first", "last", "transitions"))
    return Experience(Trajectories(*moved, goal_dims=data.goal_dims))


def learned(name: str, captured: bool, compiled: bool = False) -> tuple[dict[str, torch.Tensor], list[float]]:
    """Weights and losses after six replays of four updates; the last three as a graph, or eager as the first."""
    agent = agent_of(name, [0, 1]).to(GPU)
    config = train_config(agent.config, 24, updates_per_replay=4, precision="float32")
    updater = Updater(GoalLearner(agent, on_gpu(), 4, compiled), config, GPU)
    for replay in range(6):
        if captured and replay == WARM_REPLAYS:
            updater.capture()
        updater.update(4 * replay, 0.0)
    torch.cuda.synchronize()
    return agent.state_dict(), updater.mean_loss(24)


@pytest.mark.parametrize("name", SIX)
def test_a_graph_of_several_updates_learns_what_single_ones_do(name):
    (eager, losses), (graph, captured) = learned(name, captured=False), learned(name, captured=True)
    assert captured == pytest.approx(losses, rel=1e-3, abs=1e-4)
    for key, weight in eager.items():
        torch.testing.assert_close(graph[key], weight, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("name", ["gcivl", "qrl"])
def test_compiled_losses_are_the_same(name):
    (_, losses), (_, compiled) = learned(name, captured=True), learned(name, captured=True, compiled=True)
    assert compiled == pytest.approx(losses, rel=1e-2, abs=1e-3)
