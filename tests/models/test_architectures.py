"""One contract for every registered architecture, and one architecture of the test's own."""

from dataclasses import dataclass, fields
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from renew_golden import CONFIGS, inputs
from torch import nn

from compdiffuser.models import (
    ARCHITECTURES,
    Denoiser,
    DenoiserConfig,
    DiT1dConfig,
    Network,
    NetworkConfig,
    UNet1dConfig,
    architecture,
)
from compdiffuser.types import UserError

SMALL = {name: CONFIGS[name].network for name in ARCHITECTURES}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_network_answers_every_state_of_a_chunk(name):
    config = SMALL[name]
    for horizon in (4 * config.grain, 6 * config.grain):
        network = config.build(channels=5, dim=3, features=7, horizon=horizon)
        assert network(torch.randn(2, horizon, 5), torch.randn(2, 7)).shape == (2, horizon, 3)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_parts_to_compile_are_the_networks_own(name):
    network = SMALL[name].build(channels=5, dim=3, features=7, horizon=16)
    parts = list(network.compiled_parts())
    assert parts
    assert set(parts) <= set(network.modules())


def test_each_architecture_has_defaults_of_its_own():
    assert list(ARCHITECTURES.items()) == [("dit1d", DiT1dConfig), ("unet1d", UNet1dConfig)]
    assert DiT1dConfig() == DiT1dConfig(width=256, depth=6, heads=4, patch=8, expansion=3.25)
    assert UNet1dConfig() == UNet1dConfig(width=64, depth=4)


@pytest.mark.parametrize(
    ("config", "field"), [(config, field.name) for config in ARCHITECTURES.values() for field in fields(config)]
)
@given(bad=st.sampled_from([float("nan"), float("inf"), -float("inf"), -1, 0, None, "8", True]))
def test_every_size_refuses_what_is_no_positive_number(config, field, bad):
    with pytest.raises(UserError, match=field):
        config(**{field: bad})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DiT1dConfig(width=36, heads=4), "width 36 does not divide into 4 heads of even size"),
        (lambda: DiT1dConfig(depth=2.0), "depth must be a whole number, not 2.0"),
        (lambda: DiT1dConfig(heads=0), "heads must be at least 1, not 0"),
        (lambda: DiT1dConfig(expansion=0.001), "expansion 0.001 leaves no hidden unit at width 256"),
        (lambda: UNet1dConfig(width=36), "width 36 is not a multiple of 8, which unet1d needs"),
        (lambda: UNet1dConfig(depth=0), "depth must be at least 1, not 0"),
        (lambda: architecture("mlp"), "unknown architecture 'mlp'; choose one of dit1d, unet1d"),
    ],
)
def test_impossible_sizes_are_named(make, message):
    with pytest.raises(UserError, match=message):
        make()


@dataclass(frozen=True)
class LinearConfig(NetworkConfig):
    architecture: ClassVar[str] = "linear"

    width: int = 4

    @property
    def grain(self) -> int:
        return 1

    def build(self, channels: int, dim: int, features: int, horizon: int) -> Network:
        return Linear(channels, dim)


class Linear(Network):
    def __init__(self, channels: int, dim: int) -> None:
        super().__init__()
        self.layer = nn.Linear(channels, dim)

    def forward(self, inputs: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs)


@pytest.mark.parametrize("neighbours", ["channels", "encoder"])
def test_a_new_architecture_is_one_config_in_the_registry(monkeypatch, neighbours):
    with pytest.raises(UserError, match="unknown architecture 'linear'"):
        DenoiserConfig(network=LinearConfig())
    monkeypatch.setitem(ARCHITECTURES, "linear", LinearConfig)
    config = DenoiserConfig(horizon=7, overlap=3, neighbours=neighbours, network=LinearConfig(width=6))
    assert DenoiserConfig.from_dict(config.to_dict()) == config
    x, sigma, conditions = inputs(config)
    assert Denoiser(config)(x, sigma, conditions).shape == x.shape
