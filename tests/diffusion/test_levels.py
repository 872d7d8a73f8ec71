import pytest
import torch

from compdiffuser.diffusion.levels import (
    COSINE_STEPS,
    CosineUniform,
    LogNormal,
    cosine_levels,
    cosine_table,
    karras_levels,
)
from compdiffuser.types import UserError


@pytest.mark.parametrize("n", [1, 2, 40, 200])
@pytest.mark.parametrize("levels", [karras_levels, cosine_levels])
def test_levels_fall_to_zero(levels, n):
    sigma = levels(n)
    assert sigma.shape == (n + 1,)
    assert sigma[-1] == 0
    assert (sigma[1:] < sigma[:-1]).all()


def test_karras_levels_have_the_asked_ends_and_are_even_in_the_root():
    sigma = karras_levels(40, low=0.01, high=20.0, rho=5.0)
    assert sigma[0] == pytest.approx(20.0, rel=1e-9)
    assert sigma[-2] == pytest.approx(0.01, rel=1e-9)
    gaps = (sigma[:-1] ** (1 / 5)).diff()
    assert torch.allclose(gaps, gaps[0].expand_as(gaps), rtol=1e-9)


def test_the_cosine_table_is_the_one_of_diffusers():
    from diffusers import DDIMScheduler  # takes seconds, in each process that collects the tests

    theirs = DDIMScheduler(num_train_timesteps=COSINE_STEPS, beta_schedule="squaredcos_cap_v2").alphas_cumprod
    ours = 1 / (1 + cosine_table() ** 2)
    # They multiply in single precision, where the last factor, 1 − 0.999, has four good digits.
    assert torch.allclose(ours.float(), theirs, rtol=1e-4, atol=0)
    assert torch.allclose(ours.float()[:-1], theirs[:-1], rtol=1e-5, atol=0)


def test_cosine_levels_are_every_tenth_of_the_table_for_fifty_steps():
    table = cosine_table()
    assert torch.equal(cosine_levels(50)[:-1], table[torch.arange(490, -1, -10)])
    assert torch.equal(cosine_levels(COSINE_STEPS)[:-1], table.flip(0))


def test_more_steps_than_the_table_has_are_refused():
    with pytest.raises(UserError, match="formulation paper has 512 noise levels, so steps cannot be 513"):
        cosine_levels(513)


def test_log_normal_has_the_asked_moments_and_stays_finite_at_the_ends():
    uniform = (torch.arange(100_000) + 0.5) / 100_000
    log = LogNormal(mean=-0.4, std=1.2)(uniform).log()
    assert log.mean() == pytest.approx(-0.4, abs=1e-3)
    assert log.std() == pytest.approx(1.2, abs=1e-2)
    ends = LogNormal()(torch.tensor([0.0, 1.0]))
    assert torch.isfinite(ends).all()
    assert (ends > 0).all()


def test_cosine_uniform_visits_every_step_equally_often():
    uniform = (torch.arange(4 * COSINE_STEPS) + 0.5) / (4 * COSINE_STEPS)
    values, counts = CosineUniform()(uniform).unique(return_counts=True)
    assert torch.equal(values, cosine_table().float())
    assert (counts == 4).all()
    assert CosineUniform()(torch.tensor([1.0])) == cosine_table()[-1].float()


@pytest.mark.parametrize("field", ["mean", "std"])
def test_log_normal_refuses_nan(field):
    with pytest.raises(UserError, match=f"{field} must be a finite number, not nan"):
        LogNormal(**{field: float("nan")})
