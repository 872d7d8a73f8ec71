import json

import pytest
import torch

from compdiffuser import Planner
from compdiffuser.artifact import CONFIG
from compdiffuser.planning.checkpoint import load, locate
from compdiffuser.runs import choose_device
from compdiffuser.types import UserError

WEIGHTS, SUPPORT = "model.safetensors", "support.safetensors"


def test_what_is_saved_comes_back_in_half_precision(tiny, folder):
    back = load(folder)
    assert back.preset == tiny.preset
    assert back.normalizer == tiny.normalizer
    assert back.calibration == tiny.calibration
    assert back.support.strays == tiny.support.strays
    torch.testing.assert_close(back.support.segments, tiny.support.segments)
    for name, weight in tiny.denoiser.state_dict().items():
        torch.testing.assert_close(back.denoiser.state_dict()[name], weight.half().float())


@pytest.mark.parametrize("name", [WEIGHTS, SUPPORT])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(UserError, match=f"has no {name}"):
        load(folder)


def test_a_corrupt_file_is_named(folder):
    whole = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"model\.safetensors' is corrupt"):
        load(folder)
    (folder / CONFIG).write_text("{")
    with pytest.raises(UserError, match=r"config\.json' is not readable JSON"):
        load(folder)


def test_another_architecture_is_told(folder):
    config = json.loads((folder / CONFIG).read_text())
    config["denoiser"]["network"]["width"] = 64
    (folder / CONFIG).write_text(json.dumps(config))
    with pytest.raises(UserError, match="weights of another network than its config says"):
        load(folder)


def test_a_config_of_something_else_is_told(folder):
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({name: config[name] for name in ("kind", "format", "parts")}))
    with pytest.raises(UserError, match="does not describe a planner: 'denoiser'"):
        load(folder)
    (folder / CONFIG).write_text(json.dumps({**config, "format": 99}))
    with pytest.raises(UserError, match="planner format 99, this version reads 2"):
        load(folder)
    (folder / CONFIG).write_text(json.dumps({**config, "kind": "expert"}))
    with pytest.raises(UserError, match="holds an expert, not a planner"):
        load(folder)


def test_a_planner_without_its_recorded_segments_is_told(folder):
    config = json.loads((folder / CONFIG).read_text())
    del config["parts"]["support"]
    (folder / CONFIG).write_text(json.dumps(config))
    with pytest.raises(UserError, match="lacks the recorded segments that its config names"):
        load(folder)


def test_names_are_looked_up_and_near_ones_suggested(tmp_path):
    assert locate("pointmaze-giant-stitch-v0").is_dir()
    with pytest.raises(UserError, match="did you mean 'pointmaze-giant-stitch-v0'"):
        Planner.from_pretrained("pointmaze-gigant-stitch-v0")
    with pytest.raises(UserError, match="there is no checkpoint at"):
        Planner.from_pretrained(tmp_path / "nothing")


def test_devices(monkeypatch):
    with pytest.raises(UserError, match="unknown device 'quantum'"):
        choose_device("quantum")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto").type == "cpu"
    with pytest.raises(UserError, match="no GPU is visible"):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for there, told in ((1, "1 GPU is visible"), (2, "2 GPUs are visible")):
        monkeypatch.setattr(torch.cuda, "device_count", lambda there=there: there)
        assert choose_device(f"cuda:{there - 1}").index == there - 1
        with pytest.raises(UserError, match=f"device 'cuda:{there}' was asked for, but {told}"):
            choose_device(f"cuda:{there}")
