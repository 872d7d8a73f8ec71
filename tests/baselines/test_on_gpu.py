"""Updates as one CUDA graph are the updates that run one by one, for every method."""

import pytest
import torch
from test_agents import agent_of, walks

from compdiffuser.baselines import METHODS
from compdiffuser.baselines.goals import Experience, Trajectories
from compdiffuser.baselines.learner import GoalLearner
from compdiffuser.baselines.training import train_config
from compdiffuser.training.loop import WARM_REPLAYS, Updater

CPU, GPU = torch.device("cpu"), torch.device("cuda")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def on_gpu() -> Experience:
    data = walks().data
    moved = (
        getattr(data, name).to(GPU) for name in ("observations", "actions", "first", "last", "transitions", "begins")
    )
    return Experience(Trajectories(*moved, goal_dims=data.goal_dims))


def updater_of(name: str, device: torch.device, compiled: bool = False) -> Updater:
    """Two seeds, four updates a replay."""
    agent = agent_of(name, [0, 1]).to(device)
    config = train_config(agent.config, 24, updates_per_replay=4, precision="float32")
    experience = on_gpu() if device == GPU else walks()
    return Updater(GoalLearner(agent, experience, 4, compiled), config, device)


def learned(name: str, captured: bool, compiled: bool = False) -> tuple[dict[str, torch.Tensor], list[float]]:
    """Weights and losses after six replays; the last three as a graph, or eager as the first."""
    updater = updater_of(name, GPU, compiled)
    for replay in range(6):
        if captured and replay == WARM_REPLAYS:
            updater.capture()
        updater.update(4 * replay, 0.0)
    torch.cuda.synchronize()
    return updater.learner.module.state_dict(), updater.mean_loss(24)


@pytest.mark.parametrize("name", METHODS)
def test_a_graph_of_several_updates_learns_what_single_ones_do(name):
    (eager, losses), (graph, captured) = learned(name, captured=False), learned(name, captured=True)
    assert captured == pytest.approx(losses, rel=1e-3, abs=1e-4)
    for key, weight in eager.items():
        torch.testing.assert_close(graph[key], weight, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_compiled_losses_are_the_same_and_teach_the_same(name):
    torch.compiler.reset()  # what the last method compiled does not count towards this one's limit
    (weights, losses), (others, compiled) = (learned(name, captured=True, compiled=c) for c in (False, True))
    assert compiled == pytest.approx(losses, rel=1e-2, abs=1e-3)
    begun = agent_of(name, [0, 1]).to(GPU).state_dict()
    way, other = (torch.cat([(w[key] - begun[key]).flatten() for key in begun]) for w in (weights, others))
    # Adam turns noise into whole steps where a gradient is nearly 0, so single weights may differ.
    assert (other - way).norm() < 0.05 * way.norm()


@pytest.mark.parametrize(("begun", "continued"), [(CPU, GPU), (GPU, CPU)])
def test_a_run_begun_on_one_device_continues_on_the_other(begun, continued, tmp_path):
    first, second = updater_of("dt", begun), updater_of("dt", continued)
    first.update(0, 0.0)
    torch.save(first.state(), tmp_path / "state.pt")
    second.restore(torch.load(tmp_path / "state.pt", map_location="cpu", weights_only=True))
    for updater in (first, second):
        group = updater.optimizer.param_groups[0]
        assert group["fused"]
        assert group["capturable"] == (updater.device == GPU)
    second.update(4, 0.0)
    if continued == GPU:
        second.capture()
        second.update(8, 0.0)
    assert all(weight.isfinite().all() for weight in second.learner.module.state_dict().values())
    steps = {int(state["step"]) for state in second.optimizer.state.values()}
    assert steps == ({12} if continued == GPU else {8})
