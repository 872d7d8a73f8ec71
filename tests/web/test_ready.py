"""Planners are tried before they are offered, and the server says what of it is not ready."""

import json
import logging
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from live import client, get, serving
from safetensors.numpy import load_file, save_file

from compdiffuser.cli import main
from compdiffuser.files import sha256
from compdiffuser.web import library as library_module
from compdiffuser.web.library import Library, NotReady, tried
from compdiffuser.web.settings import Settings


@pytest.fixture
def wild(folder, tmp_path):
    """A planner whose weights are finite, but whose plans are not."""
    other = shutil.copytree(folder, tmp_path / "wild")
    path = other / "model.safetensors"
    save_file({name: np.full(array.shape, 3e38, np.float32) for name, array in load_file(path).items()}, path)
    config = json.loads((other / "config.json").read_text())
    config["parts"]["model"]["sha256"] = sha256(path)
    (other / "config.json").write_text(json.dumps(config))
    return other


@pytest.fixture
def broken(folder, tmp_path):
    """A planner that cannot be loaded."""
    other = shutil.copytree(folder, tmp_path / "broken")
    (other / "model.safetensors").write_bytes(b"nothing")
    return other


def test_what_is_not_ready_is_named_and_the_rest_is_served(folder, wild, broken, monkeypatch, caplog):
    shipped = {path.name: path for path in (folder, wild, broken)}
    monkeypatch.setattr(library_module, "_shipped", lambda: shipped)
    caplog.set_level(logging.ERROR, "compdiffuser.web")
    offered = Library(device="cpu")
    offered.load()
    assert (offered.names, offered.not_ready, offered.default) == (["tiny"], ["wild", "broken"], "tiny")
    assert "makes plans that are not finite" in caplog.text
    assert "is corrupt" in caplog.text
    with serving(Settings(), offered) as (address, _):
        status, _, body = get(address, "/healthz")
        health = json.loads(body)
        assert (status, health["status"], {*health["not_ready"]}) == (
            200, "degraded", {"model 'wild'", "model 'broken'"},
        )  # fmt: skip
        assert "model 'wild' is not ready" in health["detail"]
        assert str(folder.parent) not in body.decode(), "who asks learns nothing of this machine's folders"
        assert [model["name"] for model in client.Client(address).models()["models"]] == ["tiny"]
        with pytest.raises(client.Refused, match="the model 'wild' is not ready") as refusal:
            client.Client(address).plan("wild", (0, 0), (8, 8))
        assert refusal.value.status == 503
        assert client.Client(address).plan("tiny", (0, 0), (8, 8), steps=1, candidates=1)["model"] == "tiny"


def test_a_planner_that_was_named_must_be_ready(wild, broken, capsys):
    assert main(["serve", "--models", str(wild), "--port", "0", "--device", "cpu"]) == 2
    assert "makes plans that are not finite" in capsys.readouterr().err
    assert main(["serve", "--models", str(broken), "--port", "0", "--device", "cpu"]) == 2
    assert "is corrupt" in capsys.readouterr().err


def test_a_trial_that_fails_in_any_way_is_not_ready(folder, monkeypatch):
    monkeypatch.setattr(library_module, "tried", lambda planner: 1 / 0)
    offered = Library([str(folder)], "cpu")
    for _ in range(2):
        with pytest.raises(NotReady, match="'tiny' is not ready; the server's log says why"):
            offered.get("tiny")
    assert offered.names == []


def test_a_sound_planner_passes_its_trial(library):
    planner = library.get("tiny")
    assert tried(planner) is planner


def test_a_server_that_cannot_plan_is_down(library):
    with serving(Settings(), library) as (address, app):
        app.state.service.scheduler._thread = SimpleNamespace(is_alive=lambda: False, join=lambda timeout: None)
        status, headers, body = get(address, "/healthz")
    assert (status, headers["content-type"]) == (503, "application/json")
    assert json.loads(body)["detail"] == "planning is not ready: its thread has ended"
