"""The `paper` formulation against an independent DDIM: the scheduler of `diffusers`, on the same network."""

import pytest
import torch
from hand_made import SMALL, chains_of

from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.orders import ORDERS
from compdiffuser.compose.sample import INITIAL, guided, sample
from compdiffuser.compose.schedule import SamplerConfig, Schedule
from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.diffusion.formulation import formulation
from compdiffuser.models import Denoiser, DenoiserConfig

HORIZON, OVERLAP, DIM, STEPS = 16, 6, 2, 50


def network(architecture: str) -> Denoiser:
    torch.manual_seed(0)
    config = DenoiserConfig(
        horizon=HORIZON, overlap=OVERLAP, dim=DIM, formulation="paper", network=SMALL[architecture]
    )  # fmt: skip
    denoiser = Denoiser(config).eval().requires_grad_(False)
    if architecture == "unet1d":
        denoiser.network.out.weight.mul_(0.5)  # a random network amplifies rounding errors; this keeps it tame
    else:
        for layer in (denoiser.network.modulation, denoiser.network.last_modulation, denoiser.network.out):
            layer.weight.add_(0.1 * torch.randn(layer.weight.shape))  # a new transformer answers zero
    return denoiser


@pytest.mark.parametrize("guidance", [1.0, 2.0])
@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("architecture", SMALL)
def test_the_paper_formulation_is_ddim(architecture, eta, guidance):
    from diffusers import DDIMScheduler  # takes seconds, in each process that collects the tests

    denoiser = network(architecture)
    chains = chains_of(1, 1, 1, dim=DIM)
    config = SamplerConfig(steps=STEPS, eta=eta, repeats=1)
    schedule = Schedule.build(formulation("paper").sampling_levels, config, "cpu")
    order = ORDERS["parallel"](chains)
    ours = sample(denoiser, chains, schedule, order, horizon=HORIZON, overlap=OVERLAP, guidance=guidance)

    ddim = DDIMScheduler(
        num_train_timesteps=512, beta_schedule="squaredcos_cap_v2", prediction_type="sample",
        set_alpha_to_one=True, clip_sample=False, timestep_spacing="leading",
    )  # fmt: skip
    ddim.set_timesteps(STEPS)
    ddim.alphas_cumprod = torch.cumprod(1 - ddim.betas.double(), dim=0)  # theirs is rounded at each of 512 products
    rows, some = len(chains), torch.ones(3)
    unseen = torch.zeros(rows, OVERLAP, DIM)
    conditions = Conditions(
        unseen, some, unseen, some, chains.start, chains.goal,
        has_left=0 * some, has_right=0 * some, has_start=some, has_goal=some,
    )  # fmt: skip
    x = gaussian(chains.key, torch.full((rows,), INITIAL), HORIZON, DIM)  # x_T ~ N(0, 1)
    for index, t in enumerate(ddim.timesteps):
        signal_power = ddim.alphas_cumprod[t]
        sigma = ((1 - signal_power) / signal_power).sqrt().float().expand(rows)
        x0 = guided(denoiser, x / signal_power.sqrt(), sigma, conditions, guidance)
        fresh = gaussian(chains.key, torch.full((rows,), index), HORIZON, DIM)
        x = ddim.step(x0, t, x, eta=eta, variance_noise=fresh if eta else None).prev_sample
    assert torch.allclose(ours, x, rtol=0, atol=1e-5)
    assert ours.std() > 0.05
