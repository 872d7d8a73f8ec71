"""Scaffolds of whole states lead in their places, while postures are found anew."""

import pytest
import torch

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.schedule import SamplerConfig
from compdiffuser.compose.score import consistent
from compdiffuser.models.denoiser import Denoiser, DenoiserConfig
from compdiffuser.models.dit1d import DiT1dConfig
from compdiffuser.models.runner import Runner
from compdiffuser.planning.sampler import LED_STEPS, RELEASE, Sampler

PLACES, POSTURES = [0, 1], [2, 3, 4]


@pytest.fixture(scope="module")
def sampler() -> Sampler:
    torch.manual_seed(0)
    network = DiT1dConfig(width=32, depth=1, heads=2, patch=4)
    denoiser = Denoiser(DenoiserConfig(16, 4, dim=5, network=network))
    return Sampler(Runner(denoiser, torch.device("cpu")), SamplerConfig(repeats=2))


@pytest.fixture(scope="module")
def chains() -> Chains:
    return Chains.build(torch.zeros(1, 5), torch.ones(1, 5), torch.tensor([3]), torch.tensor([7]))


@pytest.fixture(scope="module")
def parents(chains) -> torch.Tensor:
    made = torch.rand(3, 16, 5, generator=torch.Generator().manual_seed(1))
    return consistent(made, chains, 4)


def test_places_stay_with_the_scaffold_and_postures_do_not(sampler, chains, parents):
    made = sampler.leading(tuple(PLACES))(chains, 1.0, parents)
    off = (made - parents).abs()
    free = (sampler(chains, 1.0, parents) - parents).abs()
    assert off[..., PLACES].max() < 10 * RELEASE < free[..., PLACES].max()
    assert off[..., POSTURES].mean() > 10 * RELEASE


def test_what_steers_moves_places_that_are_led(sampler, chains, parents):
    def aside(clean, rows, sigma):
        return clean + (sigma > RELEASE)[:, None, None] * torch.tensor([0.5, 0, 0, 0, 0])

    made = sampler.leading(tuple(PLACES))(chains, 1.0, parents, steer=aside)
    assert torch.allclose(made[..., 0], parents[..., 0] + 0.5, atol=10 * RELEASE)


def test_what_begins_from_noise_is_not_led(sampler, chains):
    assert torch.equal(
        sampler.leading(tuple(PLACES))(chains), Sampler(sampler.denoise, SamplerConfig(LED_STEPS, repeats=1))(chains)
    )


def test_places_alone_are_denoised_as_ever(sampler):
    assert sampler.leading(()) is sampler
