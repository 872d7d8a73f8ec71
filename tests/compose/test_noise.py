import pytest
import torch

from compdiffuser.compose.noise import gaussian


def keys(seeds: int, chunks: int) -> torch.Tensor:
    """As `Chains.build` makes them: near numbers, with low bits that count up."""
    return ((torch.arange(seeds)[:, None] << 12) + torch.arange(chunks)).flatten()


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])


def test_numbers_are_standard_normal():
    key = keys(200, 5)
    noise = gaussian(key, torch.zeros_like(key), 100, 3).double().flatten()  # 300,000 numbers
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert noise.var() == pytest.approx(1, abs=0.02)
    assert (noise**3).mean() == pytest.approx(0, abs=0.03)
    assert (noise**4).mean() == pytest.approx(3, abs=0.1)
    quantiles = torch.tensor([0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999], dtype=torch.float64)
    expected = torch.special.ndtri(quantiles)
    assert torch.allclose(noise.quantile(quantiles), expected, atol=0.05)
    assert torch.isfinite(noise).all()


def test_neighbouring_keys_steps_and_times_are_independent():
    key = keys(200, 5)
    step = torch.zeros_like(key)
    noise = gaussian(key, step, 50, 2)
    for other in (
        gaussian(key + 1, step, 50, 2),
        gaussian(key + (1 << 12), step, 50, 2),
        gaussian(key + (1 << 40), step, 50, 2),
        gaussian(key, step + 1, 50, 2),
        gaussian(key, step + 2**20, 50, 2),
        noise.roll(1, dims=1),
        noise.flip(2),
        noise.flatten(1).roll(50, dims=1).view_as(noise),  # the other half of each Box-Muller pair
    ):
        assert abs(correlation(noise, other)) < 0.015
        assert abs(correlation(noise**2, other**2)) < 0.015


def test_a_row_has_its_noise_whatever_is_beside_it():
    key = keys(20, 5)
    step = torch.arange(len(key)) % 7
    whole = gaussian(key, step, 9, 3)
    order = torch.randperm(len(key), generator=torch.Generator().manual_seed(0))[:31]
    assert torch.equal(gaussian(key[order], step[order], 9, 3), whole[order])
    assert torch.equal(gaussian(key[4:5], step[4:5], 9, 3), whole[4:5])


def test_every_row_and_step_has_noise_of_its_own():
    key = keys(50, 8).repeat(10)
    step = torch.arange(10).repeat_interleave(400)
    first = gaussian(key, step, 4, 1).flatten(1)
    assert len(first.unique(dim=0)) == len(first)


@pytest.mark.parametrize(("horizon", "dim"), [(1, 1), (3, 3), (8, 2)])
def test_odd_and_even_sizes(horizon, dim):
    assert gaussian(torch.tensor([7]), torch.tensor([0]), horizon, dim).shape == (1, horizon, dim)
