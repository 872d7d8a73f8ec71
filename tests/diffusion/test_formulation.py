import pytest
import torch

from compdiffuser.diffusion.formulation import FORMULATIONS, SIGMA_DATA, clean_scaling, edm_scaling, formulation
from compdiffuser.types import UserError


@pytest.mark.parametrize("level", [0.004, 0.1, 0.5, 3.0, 80.0])
def test_edm_input_and_target_have_unit_variance(level):
    generator = torch.Generator().manual_seed(0)
    clean = SIGMA_DATA * torch.randn(200_000, generator=generator, dtype=torch.float64)
    noisy = clean + level * torch.randn(200_000, generator=generator, dtype=torch.float64)
    scale = edm_scaling(torch.tensor(level, dtype=torch.float64))
    assert (scale.in_ * noisy).var() == pytest.approx(1, rel=0.02)
    # What the network must give for x₀ = c_skip·x + c_out·F to be right.
    assert ((clean - scale.skip * noisy) / scale.out).var() == pytest.approx(1, rel=0.02)


def test_edm_weight_undoes_the_output_scale():
    sigma = torch.logspace(-2, 2, 20)
    weighted = FORMULATIONS["default"].weight(sigma) * edm_scaling(sigma).out ** 2
    assert torch.allclose(weighted, torch.ones(20))


@pytest.mark.parametrize("level", [0.03, 1.0, 40.0])
def test_clean_scaling_feeds_the_variance_preserving_sample_and_takes_the_output_as_it_is(level):
    sigma = torch.tensor(level, dtype=torch.float64)
    signal_power = 1 / (1 + sigma**2)
    scale = clean_scaling(sigma)
    assert scale.in_ == pytest.approx(signal_power.sqrt())
    assert (scale.skip, scale.out) == (0, 1)
    assert FORMULATIONS["paper"].weight(sigma) == 1


def test_formulations_sample_their_own_levels():
    assert formulation("default").sampling_levels(10)[0] == pytest.approx(80)
    assert formulation("paper").sampling_levels(50)[0] == pytest.approx(formulation("paper").sampling_levels(50).max())
    assert formulation("paper").sampling_levels(50)[-2] < 0.05


def test_an_unknown_formulation_is_named():
    with pytest.raises(UserError, match="unknown formulation 'fast'; choose one of default, paper"):
        formulation("fast")
