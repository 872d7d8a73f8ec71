"""Pushing a planner and fetching it again, over HTTP, with a hub of our own in this process."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from huggingface_hub import constants
from small_hub import TOKEN, Hub

from compdiffuser import Planner
from compdiffuser.cli import main
from compdiffuser.planning.checkpoint import load
from compdiffuser.planning.sharing.publishing import card, pushed
from compdiffuser.types import UserError

ENDS = (-3.0, -3.0), (3.0, 2.0)
FEW = {"n_candidates": 2, "n_chunks": 2}


def point_to(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The library reads its variables when it is imported, so that here they are set in its module."""
    with Hub() as running:
        point_to(running.address, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield running


def planned(name: str) -> np.ndarray:
    return Planner.from_pretrained(name, device="cpu").plan(*ENDS, **FEW).states


def test_a_pushed_planner_comes_back_and_stays_in_the_cache(folder, hub, monkeypatch, capsys):
    assert main(["push", str(folder), "me/lines", "--licence", "mit", "--pairs", "2", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.strip() == f"{hub.address}/me/lines"
    assert set(hub.repositories["me/lines"]) == {"README.md", "config.json", "model.safetensors", "support.safetensors"}
    assert len(hub.large) == 2
    own = planned(str(folder))
    np.testing.assert_array_equal(planned("me/lines"), own)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    before = len(hub.asked)
    np.testing.assert_array_equal(planned("me/lines"), own)
    assert len(hub.asked) == before


def test_a_planner_that_is_pushed_again_replaces_the_first(tiny, folder, hub):
    planner = Planner.from_pretrained(folder, device="cpu")
    assert planner.push_to_hub("me/lines", pairs=0) == f"{hub.address}/me/lines"
    first = hub.commit("me/lines")
    hub.repositories["me/lines"]["postures.safetensors"] = b"of an older one"
    planner.push_to_hub("me/lines", pairs=0, licence="apache-2.0")
    assert hub.commit("me/lines") != first
    assert "postures.safetensors" not in hub.repositories["me/lines"]
    assert load("me/lines").support is not None


@pytest.mark.slow
def test_the_variables_of_the_hub_are_heeded(folder, hub, tmp_path):
    """As a user has it: another process, HF_ENDPOINT and HF_HOME, and then no network at all."""
    pushed(load(folder), "me/lines", pairs=0)
    seen = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1"}
    code = (
        "import sys; from compdiffuser import Planner; p = Planner.from_pretrained('me/lines', device='cpu')\n"
        f"print(p.plan(*{ENDS}, **{FEW}).states.sum())"
    )
    run = [sys.executable, "-c", code]
    first = subprocess.run(run, env=seen, capture_output=True, text=True, check=True)
    hub.__exit__()
    again = subprocess.run(run, env={**seen, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, check=True)
    assert float(again.stdout) == float(first.stdout)


def test_what_is_not_there_is_told(hub, monkeypatch, folder):
    with pytest.raises(UserError, match=r"'me/nothing' is no folder here.*there is no such repository, or it is priv"):
        load("me/nothing")
    hub.repositories["me/notes"] = {"notes.txt": b"hello"}
    with pytest.raises(UserError, match=r"'me/notes' on the hub holds no planner: it has no config\.json"):
        load("me/notes")
    hub.repositories["me/words"] = {"config.json": b'{"model_type": "bert"}', "model.safetensors": b"large"}
    with pytest.raises(UserError, match=r"'me/words' on the hub holds no planner: its config\.json is another's"):
        load("me/words")
    hub.repositories["me/legs"] = {"config.json": json.dumps({"kind": "controller"}).encode()}
    with pytest.raises(UserError, match=r"holds no planner: its config\.json says 'controller'"):
        load("me/legs")
    assert not [asked for asked in hub.asked if "safetensors" in asked]
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set, and it is not in the cache"):
        load("me/elsewhere")


def test_a_hub_that_is_not_there_is_told(hub, folder, monkeypatch):
    pushed(load(folder), "me/lines", pairs=0)
    whole = load("me/lines")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    point_to(f"http://127.0.0.1:{port}", monkeypatch)
    assert load("me/lines").preset == whole.preset
    with pytest.raises(UserError, match="the hub cannot be reached, and it is not in the cache"):
        load("me/other")
    with pytest.raises(UserError, match="'me/lines' cannot be pushed to the hub: the hub cannot be reached"):
        pushed(whole, "me/lines", pairs=0)


def test_a_push_that_cannot_be_is_told(hub, folder, monkeypatch, capsys):
    planner = load(folder)
    for wrong in ("lines", "me/", "a/b/c"):
        with pytest.raises(UserError, match=f"is named owner/name, not '{wrong}'"):
            pushed(planner, wrong, pairs=0)
    with pytest.raises(UserError, match="me lines"):
        pushed(planner, "me/me lines", pairs=0)
    with pytest.raises(UserError, match=r"a licence is named as the hub does.*not 'do what\?'"):
        pushed(planner, "me/lines", licence="do what?")
    with pytest.raises(UserError, match="rates are measured on 0 to 10,000 pairs, not on -1"):
        pushed(planner, "me/lines", pairs=-1)
    with pytest.raises(UserError, match=r"'forbidden/lines' cannot be pushed to the hub:.*403"):
        pushed(planner, "forbidden/lines", pairs=0)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(UserError, match=r"'me/lines' cannot be pushed to the hub"):
        pushed(planner, "me/lines", pairs=0)
    monkeypatch.delenv("HF_TOKEN")
    assert main(["push", str(folder), "me/lines"]) == 2
    assert "log in with `hf auth login`, or set HF_TOKEN" in capsys.readouterr().err
    assert hub.repositories == {}


def test_the_card_says_what_the_files_hold():
    planner = load("pointmaze-giant-stitch-v0")
    text = card(planner, "me/giant", "mit")
    front = text.split("---")[1]
    assert "license: mit" in front
    assert "- dataset-pointmaze-giant-stitch-v0" in front
    record = planner.record
    for figure in (record["data"]["sha256"], f"{record['parameters']:,}", f"{record['data']['states']:,} states"):
        assert figure in text
    assert f"{planner.calibration.threshold(0.995):.3g} times the usual error" in text
    assert 'Planner.from_pretrained("me/giant")' in text
