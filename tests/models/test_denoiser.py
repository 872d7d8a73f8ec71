import json
from dataclasses import fields, replace
from typing import get_args

import pytest
import torch
from renew_golden import CONFIGS, FOLDER, answer, filled, inputs
from safetensors.torch import load_file
from torch import Tensor

from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.diffusion.formulation import FORMULATIONS
from compdiffuser.models import ARCHITECTURES, Denoiser, DenoiserConfig, DiT1dConfig, UNet1dConfig
from compdiffuser.models.denoiser import Neighbours
from compdiffuser.types import UserError

SMALL = {name: CONFIGS[name] for name in ARCHITECTURES}
EVERY = [
    pytest.param(
        replace(config, neighbours=neighbours, formulation=formulation), id=f"{name}-{neighbours}-{formulation}"
    )
    for name, config in SMALL.items()
    for neighbours in get_args(Neighbours)
    for formulation in FORMULATIONS
]


@pytest.mark.parametrize("name", CONFIGS)
def test_golden(name):
    """To renew after a wanted change: python tests/models/renew_golden.py"""
    stored = load_file(FOLDER / f"{name}.safetensors")["x0"]
    assert torch.allclose(answer(CONFIGS[name]), stored, rtol=1e-9, atol=1e-9)


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
    ("change", "message"),
    [
        ({"overlap": 9}, "overlap must be at most half the horizon 16, not 9"),
        ({"overlap": 0}, "overlap must be at least 1, not 0"),
        ({"overlap": 2.0}, "overlap must be a whole number, not 2.0"),
        ({"network": DiT1dConfig(patch=5)}, "horizon 16 is not a multiple of 5, which dit1d needs here"),
        ({"network": UNet1dConfig(depth=6)}, "horizon 16 is not a multiple of 32, which unet1d needs here"),
        ({"network": "dit1d"}, "network must be a config such as DiT1dConfig or UNet1dConfig, not 'dit1d'"),
        ({"neighbours": "vector"}, "unknown neighbours 'vector'; choose one of channels, encoder"),
        ({"formulation": "fast"}, "unknown formulation 'fast'; choose one of default, paper"),
        ({"dim": 0}, "dim must be at least 1, not 0"),
    ],
)
def test_a_config_that_cannot_be_built_names_the_value(change, message):
    with pytest.raises(UserError, match=message) as error:
        replace(SMALL["dit1d"], **change)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [field.name for field in fields(DenoiserConfig)])
def test_every_field_refuses_nan(name):
    with pytest.raises(UserError, match="nan"):
        DenoiserConfig(**{name: float("nan")})


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_makes_the_round_trip_through_json(name):
    config = CONFIGS[name]
    plain = json.loads(json.dumps(config.to_dict()))
    assert DenoiserConfig.from_dict(plain) == config
    assert plain == config.to_dict()


def test_a_description_names_its_architecture_beside_the_sizes():
    assert DenoiserConfig().to_dict() == {
        "horizon": 160,
        "overlap": 56,
        "dim": 2,
        "formulation": "default",
        "neighbours": "channels",
        "network": {"architecture": "dit1d", "width": 256, "depth": 6, "heads": 4, "patch": 8, "expansion": 3.25},
        "ends": "channels",
        "frame": "world",
    }


def test_a_description_with_other_fields_is_refused():
    plain = DenoiserConfig().to_dict()
    with pytest.raises(UserError, match="a denoiser cannot have preset; its fields are horizon, overlap, dim"):
        DenoiserConfig.from_dict({**plain, "preset": "default"})
    with pytest.raises(UserError, match="a denoiser lacks formulation, network; its fields are"):
        DenoiserConfig.from_dict({name: plain[name] for name in ("horizon", "overlap", "dim", "neighbours")})
    with pytest.raises(UserError, match="a unet1d cannot have expansion, heads, patch; its fields are width, depth"):
        DenoiserConfig.from_dict({**plain, "network": {**plain["network"], "architecture": "unet1d"}})
    with pytest.raises(UserError, match="unknown architecture 'mlp'; choose one of dit1d, unet1d"):
        DenoiserConfig.from_dict({**plain, "network": {"architecture": "mlp"}})


def test_a_chunk_seen_from_its_own_middle_is_the_same_wherever_that_is(monkeypatch):
    """Without the place that it is told, the network cannot know where a chunk is; with it, it can."""
    torch.manual_seed(0)
    denoiser = Denoiser(DenoiserConfig(horizon=16, overlap=4, network=DiT1dConfig(width=16, depth=1), frame="chunk"))
    with torch.no_grad():
        for weight in denoiser.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    x, sigma, shift = torch.randn(5, 16, 2), torch.full((5,), 0.01), torch.tensor([3.0, -2.0])
    nothing = Conditions.nothing(x, 4)
    ends = replace(nothing, start=x[:, 0], goal=x[:, -1], has_start=torch.ones(5), has_goal=torch.ones(5))
    moved = replace(ends, start=ends.start + shift, goal=ends.goal + shift)
    here, there = denoiser(x, sigma, ends), denoiser(x + shift, sigma, moved)
    assert (there - shift - here).abs().max() > 1e-4
    monkeypatch.setattr(Denoiser, "_place", lambda self, middle: middle.new_zeros(len(middle), 42))
    here, there = denoiser(x, sigma, ends), denoiser(x + shift, sigma, moved)
    torch.testing.assert_close(there - shift, here, atol=1e-5, rtol=1e-5)
