"""Weights in eight bits: near the ones they were made of, half their bytes, and none that do not belong together."""

import numpy as np
import pytest
import torch
from torch import nn

from compdiffuser import artifact
from compdiffuser.artifact import Artifact
from compdiffuser.packing import LEAST, SCALE, packed, smaller, unpacked
from compdiffuser.restoring import restored
from compdiffuser.types import UserError


@pytest.fixture
def network() -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Conv1d(1, 4, 3), nn.Linear(126, 64))
    with torch.no_grad():
        made[0].weight[3] = 0  # a row without a scale of its own
        made[0].weight[4] *= 1000
    return made


def test_each_row_is_as_near_as_its_own_scale_allows(network):
    part = artifact.arrays(network.state_dict(), half=True)
    again = unpacked(packed(part), "x")
    assert {*again} == {*part}
    for name, array in part.items():
        rows, others = (each.reshape(len(array), -1).astype(np.float64) for each in (array, again[name]))
        step = np.abs(rows).max(axis=1) / 127
        small = array.ndim < 2 or array.size < LEAST
        assert (np.abs(rows - others).max(axis=1) <= (0 if small else 0.501) * step).all(), name


def test_layers_that_face_the_data_stay_as_they_are():
    inner, outer = (np.random.default_rng(0).standard_normal((64, 64)) for _ in range(2))
    part = packed({"network.blocks.0.output.weight": inner, "network.out.weight": outer, "network.embed.weight": outer})
    assert part["network.out.weight"] is part["network.embed.weight"] is outer
    assert part["network.blocks.0.output.weight"].dtype == np.int8


def test_a_file_has_half_the_bytes_and_restores_the_network(network, tmp_path):
    part = artifact.arrays(network.state_dict(), half=True)
    whole = Artifact("planner", 1, {"record": {}}, {"model": part, "support": {"segments": np.zeros((999, 9))}})
    artifact.save(tmp_path / "whole", whole)
    artifact.save(tmp_path / "small", smaller(artifact.read(tmp_path / "whole")))
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "small")]
    assert sizes[1] < 0.6 * sizes[0]
    found = artifact.load(tmp_path / "small", "planner", 1)
    assert np.array_equal(found.parts["support"]["segments"], whole.parts["support"]["segments"])
    other = restored(lambda: nn.Sequential(*(type_of(layer) for layer in network)), found.parts["model"], tmp_path)
    x = torch.randn(5, 64)
    assert torch.allclose(other[0](x), network[0](x), atol=0.02 * float(network[0](x).detach().abs().max()))


def type_of(layer: nn.Module) -> nn.Module:
    if isinstance(layer, nn.Linear):
        return nn.Linear(layer.in_features, layer.out_features)
    return nn.Conv1d(1, 4, 3) if isinstance(layer, nn.Conv1d) else nn.SiLU()


@pytest.mark.parametrize(
    "strange",
    [
        {"w" + SCALE: np.ones(3, np.float32)},
        {"w": np.ones((3, 4), np.float32), "w" + SCALE: np.ones(3, np.float32)},
        {"w": np.ones((3, 4), np.int8), "w" + SCALE: np.ones(4, np.float32)},
        {"w": np.ones((3, 4), np.int8), "w" + SCALE: np.ones((3, 4), np.float32)},
        {"w": np.ones((3, 4), np.int8), "w" + SCALE: np.ones(3, np.int64)},
    ],
)
def test_scales_that_belong_to_nothing_are_refused(strange):
    with pytest.raises(UserError, match="do not belong to weights in eight bits"):
        unpacked(strange, "somewhere")
