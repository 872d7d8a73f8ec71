"""Loops as CUDA graphs have the bits of loops that run round by round on the same GPU."""

import pytest
import torch
from renew_golden import CONFIGS, filled, inputs

from compdiffuser.compose import ORDERS, Chains, SamplerConfig, Schedule, sample
from compdiffuser.models.runner import Runner

GPU = torch.device("cuda")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def chains_on_gpu(lengths: tuple[int, ...], dim: int, seed: int) -> Chains:
    starts, goals = torch.randn(2, len(lengths), dim, generator=torch.Generator().manual_seed(seed)).to(GPU)
    return Chains.build(starts, goals, torch.tensor(lengths), torch.arange(len(lengths)) + 100 * seed)


@pytest.mark.parametrize("lengths", [(3,) * 7, (1, 4, 2)], ids=["alike", "mixed"])
@pytest.mark.parametrize("config", [SamplerConfig.paper(), SamplerConfig(repeats=2)], ids=["paper", "usual"])
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("network", ["dit1d", "unet1d"])
def test_a_recorded_loop_has_the_same_bits(network, name, config, lengths):
    runner = Runner(filled(CONFIGS[network]), GPU)
    model, formulation = runner.denoiser.config, runner.denoiser.formulation
    schedule = Schedule.build(formulation.sampling_levels, config, GPU)
    made = []
    for seed in range(4):
        chains = chains_on_gpu(lengths, model.dim, seed)
        replayed, computed = (
            sample(
                runner, chains, schedule, ORDERS[name](chains), horizon=model.horizon, overlap=model.overlap,
                guidance=config.guidance, hold=config.hold, clamp=config.clamp, whole=whole,
            )
            for whole in (runner.whole, None)
        )  # fmt: skip
        assert torch.equal(replayed, computed)
        made.append(replayed)
    rounds = ORDERS[name](chains).most_rounds(len(schedule))
    assert len(runner.whole.kept) == (rounds <= 256)
    assert len({tuple(each.flatten().tolist()) for each in made}) == 4


@pytest.mark.parametrize("network", ["dit1d", "unet1d"])
def test_a_compiled_network_answers_as_one_on_a_cpu(network):
    config = CONFIGS[network]
    x, sigma, conditions = inputs(config, rows=20)
    exact = Runner(filled(config), torch.device("cpu"))(x, sigma, conditions)
    there = x.to(GPU), sigma.to(GPU), conditions.map(lambda each: each.to(GPU))
    for compiled, sizes in ((False, [20]), (True, [20] if network == "dit1d" else [16])):
        runner = Runner(filled(config), GPU, compiled=compiled)
        runner.most_rows = 16 if runner.one_size else 32
        torch.testing.assert_close(runner(*there).cpu(), exact, rtol=0.02, atol=0.02 * float(exact.abs().max()))
        assert list(runner.graphs) == sizes
