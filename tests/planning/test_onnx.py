"""Planners whose network runs in onnxruntime."""

import json

import numpy as np
import pytest
import torch

from compdiffuser import Planner
from compdiffuser.cli import main
from compdiffuser.models.onnx import OnnxDenoiser
from compdiffuser.models.runner import Runner
from compdiffuser.planning.checkpoint import load
from compdiffuser.planning.sharing.exporting import export_onnx, load_onnx
from compdiffuser.types import UserError

CPU = torch.device("cpu")
ENDS = (-3.0, -3.0), (3.0, 2.0)
FEW = {"n_candidates": 2, "n_chunks": 2}


@pytest.fixture(scope="module")
def exported(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("planners")
    tiny.save(folder / "tiny")
    assert main(["export", str(folder / "tiny"), "--onnx", str(folder / "onnx")]) == 0
    return folder


@pytest.mark.slow
def test_its_plans_are_those_of_torch(exported):
    own = Planner.from_pretrained(exported / "tiny", device="cpu")
    other = Planner.from_onnx(exported / "onnx")
    assert other.support is not None
    for seed in range(3):
        wanted, made = (planner.plan(*ENDS, seed=seed, **FEW) for planner in (own, other))
        np.testing.assert_allclose(made.states, wanted.states, atol=1e-4)
        assert made.ok == wanted.ok
        assert made.score == pytest.approx(wanted.score, rel=1e-3)
    assert other.with_sampler(steps=4).plan(*ENDS, **FEW).states.shape == made.states.shape


@pytest.mark.slow
def test_what_cannot_be_is_told(exported, tmp_path, capsys):
    with pytest.raises(UserError, match="holds a planner, not a planner in ONNX"):
        Planner.from_onnx(exported / "tiny")
    with pytest.raises(UserError, match="holds a planner in ONNX, not a planner"):
        load(exported / "onnx")
    with pytest.raises(UserError, match="there is no planner in ONNX at"):
        load_onnx(tmp_path / "nothing")
    found = load_onnx(exported / "onnx")
    with pytest.raises(UserError, match="an ONNX network runs on the CPU"):
        Runner(found.denoiser, CPU, compiled=True)
    with pytest.raises(UserError, match="cannot be saved"):
        found.save(tmp_path / "weights")
    with pytest.raises(UserError, match="tiny' holds a planner, whose files a planner in ONNX would replace"):
        export_onnx(load(exported / "tiny"), exported / "tiny")
    assert load(exported / "tiny").record is not None
    with pytest.raises(UserError, match="is an ONNX file already"):
        export_onnx(found, tmp_path / "again")
    network, config = exported / "onnx" / "model.onnx", exported / "onnx" / "config.json"
    data = network.read_bytes()
    network.write_bytes(data[:-1])
    with pytest.raises(UserError, match=r"model\.onnx' is corrupt"):
        load_onnx(exported / "onnx")
    network.write_bytes(data)
    with pytest.raises(UserError, match="onnxruntime cannot run this network"):
        OnnxDenoiser(b"nothing of the kind", found.denoiser.config)
    described = json.loads(config.read_text())
    described["denoiser"]["horizon"] = 40
    config.write_text(json.dumps(described))
    with pytest.raises(UserError, match=r"not the denoiser of chunks \[40, 2\]"):
        load_onnx(exported / "onnx")
