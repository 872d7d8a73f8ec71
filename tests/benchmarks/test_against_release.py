"""The benchmark beside other people's code, without their code: what it says where there is none, and our own part."""

import sys
from pathlib import Path

import pytest
import torch

from compdiffuser.models import Denoiser, DenoiserConfig, DiT1dConfig
from compdiffuser.models.runner import Runner
from compdiffuser.types import UserError


@pytest.fixture
def script(benchmark_script):
    return benchmark_script("against_release")


@pytest.fixture
def strangers(benchmark_script):
    return benchmark_script("strangers")


def test_what_is_not_there_is_left_out_with_a_sentence(script, tmp_path, capsys):
    script.main(script.Benchmark(out=tmp_path / "r.json", device="cpu", release=tmp_path))
    told = capsys.readouterr().out
    assert f"samplers of others are left out: '{tmp_path}' is no checkout of the authors' release" in told
    assert "agents of others are left out: no checkout was given" in told
    assert not (tmp_path / "r.json").exists()


def test_folders_that_are_no_checkouts_are_named(script, strangers, tmp_path):
    with pytest.raises(UserError, match=f"'{tmp_path}' is no checkout of the authors' release"):
        strangers.Release(tmp_path, torch.device("cpu"), 2, 2.0)
    with pytest.raises(UserError, match=f"'{tmp_path}' is no checkout of OGBench"):
        strangers.OGBench(tmp_path, "gcivl", script.walks(3, 2, 2, 5), {})


def test_packages_that_agents_need_are_named(script, strangers, tmp_path):
    agents = tmp_path / "impls" / "agents"
    agents.mkdir(parents=True)
    (agents / "gcivl.py").write_text("import a_package_that_is_not_there\n")
    with pytest.raises(UserError, match="cannot be run here: No module named 'a_package_that_is_not_there'"):
        strangers.OGBench(tmp_path, "gcivl", script.walks(3, 2, 2, 5), {})


def test_modules_are_borrowed_and_given_back(strangers, tmp_path):
    arrays = tmp_path / "diffuser" / "utils" / "arrays.py"
    arrays.parent.mkdir(parents=True)
    arrays.write_text("import what_is_not_there\n\ndef batch_repeat_tensor_in_dict(x):\n    return x.repeat((2, 1))\n")
    with strangers.borrowed(tmp_path):
        from diffuser.utils import batch_repeat_tensor_in_dict

        assert batch_repeat_tensor_in_dict(torch.ones(3, 2)).shape == (6, 2)
    assert not [name for name in sys.modules if name.split(".")[0] == "diffuser"]
    with pytest.raises(UserError, match="has no function nothing"):
        strangers.function_in(arrays, "nothing")


@pytest.mark.parametrize("order", ["autoregressive", "parallel"])
def test_our_part_draws_what_is_asked_for(script, order):
    network = DiT1dConfig(width=16, depth=1, heads=2, patch=4)
    runner = Runner(Denoiser(DenoiserConfig(16, 4, dim=2, network=network)), torch.device("cpu"))
    options = script.Benchmark(out=Path("none"), candidates=2, steps=3)
    assert script.draw(runner, order, 3, options).shape == (6, 16, 2)
