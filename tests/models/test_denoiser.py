from dataclasses import replace

import pytest
import torch
from renew_golden import CONFIGS, FOLDER, filled, inputs
from safetensors.torch import load_file
from torch import Tensor

from compdiffuser.models import Denoiser, DenoiserConfig
from compdiffuser.types import UserError

SMALL = {
    "dit1d": DenoiserConfig(horizon=16, overlap=6, width=32, depth=2, heads=2, patch=4),
    "unet1d": DenoiserConfig(horizon=16, overlap=6, architecture="unet1d", width=16, depth=2),
}
EVERY = [
    pytest.param(replace(config, neighbours=neighbours, preset=preset), id=f"{name}-{neighbours}-{preset}")
    for name, config in SMALL.items()
    for neighbours in ("channels", "encoder")
    for preset in ("default", "paper")
]


@pytest.mark.parametrize("name", CONFIGS)
def test_golden(name):
    """To renew after a wanted change: python tests/models/renew_golden.py"""
    config = CONFIGS[name]
    stored = load_file(FOLDER / f"{name}.safetensors")["x0"]
    with torch.no_grad():
        x0 = filled(config)(*inputs(config))
    assert torch.allclose(x0, stored, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dim", [2, 5, 29])
@pytest.mark.parametrize("config", EVERY)
def test_any_dimension_in_the_same_shape_out(config, dim):
    config = replace(config, dim=dim)
    x, sigma, conditions = inputs(config, rows=3)
    x0 = Denoiser(config)(x, sigma, conditions)
    assert x0.shape == (3, 16, dim)
    assert torch.isfinite(x0).all()


@pytest.mark.parametrize("config", EVERY)
def test_gradients_reach_every_parameter(config):
    denoiser = filled(config)
    denoiser(*inputs(config)).square().sum().backward()
    without = [name for name, p in denoiser.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert without == []


def test_a_new_transformer_gives_the_preconditioned_zero():
    config = SMALL["dit1d"]
    denoiser = Denoiser(config)
    x, sigma, conditions = inputs(config)
    skip = denoiser.formulation.scaling(sigma[:, None, None]).skip
    assert torch.equal(denoiser(x, sigma, conditions), skip * x)


@pytest.mark.parametrize("config", EVERY)
def test_what_is_not_present_has_no_influence_and_what_is_has(config):
    denoiser = filled(config)
    x, sigma, conditions = inputs(config, rows=9)
    with torch.no_grad():
        before = denoiser(x, sigma, conditions)
        for side in ("left", "right", "start", "goal"):
            present = getattr(conditions, f"has_{side}").bool()
            assert present.any()
            assert not present.all()
            changed = [replace(conditions, **{side: getattr(conditions, side) + 3})]
            if side in ("left", "right"):
                changed.append(replace(conditions, **{f"{side}_sigma": getattr(conditions, f"{side}_sigma") * 2}))
            for other in changed:
                moved = (denoiser(x, sigma, other) - before).abs().amax(dim=(1, 2))
                assert (moved[~present] == 0).all()
                assert (moved[present] > 1e-6).all()


@pytest.mark.parametrize("config", EVERY)
def test_rows_do_not_see_each_other(config):
    denoiser = filled(config)
    x, sigma, conditions = inputs(config)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        straight = denoiser(x, sigma, conditions)
        shuffled = denoiser(x[order], sigma[order], conditions.map(lambda tensor: tensor[order]))
    assert torch.allclose(shuffled, straight[order], atol=1e-5)
    assert not torch.allclose(shuffled, straight, atol=1e-2)


@pytest.mark.parametrize("name", SMALL)
def test_neighbours_enter_where_they_overlap(name):
    """The channels of a left neighbour are those of the first O states, of a right one those of the last."""
    config = SMALL[name]
    denoiser = Denoiser(config)
    x, sigma, conditions = inputs(config, rows=9)

    def touched(**change: Tensor) -> list[int]:
        channels = denoiser._inputs(x, sigma, conditions)[0]
        other = denoiser._inputs(x, sigma, replace(conditions, **change))[0]
        return (channels != other).any(dim=2).any(dim=0).nonzero()[:, 0].tolist()

    assert touched(left=conditions.left + 1) == list(range(6))
    assert touched(right=conditions.right + 1) == list(range(10, 16))
    assert touched(start=conditions.start + 1) == list(range(16))


@pytest.mark.parametrize("config", EVERY)
def test_lower_precision_stays_close(config):
    x, sigma, conditions = inputs(config)
    with torch.no_grad():
        full = filled(config)(x, sigma, conditions)
        half = filled(config).compute_in(torch.bfloat16)(x, sigma, conditions)
    assert half.dtype == torch.float32
    assert 0 < (half - full).norm() / full.norm() < 0.05


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"overlap": 9}, "an overlap of 9 must be at least 1 and at most half the horizon 16"),
        ({"overlap": 0}, "an overlap of 0 must be at least 1"),
        ({"patch": 5}, "horizon 16 is not a multiple of 5, which dit1d needs here"),
        ({"width": 36, "heads": 4}, "width 36 does not divide into 4 heads of even size"),
        ({"architecture": "unet1d", "depth": 6}, "horizon 16 is not a multiple of 32, which unet1d needs here"),
        ({"architecture": "unet1d", "width": 36}, "width 36 is not a multiple of 8, which unet1d needs"),
        ({"architecture": "mlp"}, "unknown architecture 'mlp'; choose one of dit1d, unet1d"),
        ({"neighbours": "vector"}, "unknown neighbours 'vector'; choose one of channels, encoder"),
        ({"preset": "fast"}, "unknown preset 'fast'; choose one of default, paper"),
        ({"depth": 0}, "depth must be at least 1, not 0"),
        ({"heads": 0}, "heads must be at least 1, not 0"),
        ({"dim": 0}, "dim must be at least 1, not 0"),
    ],
)
def test_a_config_that_cannot_be_built_is_one_sentence(change, sentence):
    with pytest.raises(UserError, match=sentence) as error:
        replace(SMALL["dit1d"], **change)
    assert "\n" not in str(error.value)


def test_a_config_makes_the_round_trip_through_json():
    config = CONFIGS["unet1d-encoder"]
    assert DenoiserConfig(**config.to_dict()) == config
