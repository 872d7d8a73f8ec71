"""A small world of one's own goes the whole way: recorded, learned, planned in, evaluated, drawn and served."""

import sys
from pathlib import Path

import corridor_world
import numpy as np
import pytest
from PIL import Image

import compdiffuser
from compdiffuser import Planner
from compdiffuser.cli import main
from compdiffuser.data import generate, storage
from compdiffuser.domains import DOMAINS
from compdiffuser.evaluation.pictures import film
from compdiffuser.evaluation.replay import Recorder
from compdiffuser.evaluation.rollout import evaluate
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.settings import Following
from compdiffuser.models import DenoiserConfig, DiT1dConfig
from compdiffuser.planning.training import train_planner
from compdiffuser.presets import PRESETS, preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.web.library import Library
from compdiffuser.web.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
from live import client, serving

ENDS = [1.0, 1.0], [4.0, 3.0]


@pytest.fixture(scope="module")
def registered():
    compdiffuser.register(corridor_world.WORLD, corridor_world.DATA)
    yield preset("corridor-v0")
    del DOMAINS["corridor"], PRESETS["corridor-v0"]


@pytest.fixture(scope="module")
def recorded(registered, tmp_path_factory) -> Path:
    return generate.make("corridor-v0", workers=1, out=tmp_path_factory.mktemp("data") / "walks.npz")


@pytest.fixture(scope="module")
def trained(registered, recorded, few_windows, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "corridor"
    model = DenoiserConfig(24, 8, network=DiT1dConfig(width=32, depth=1, heads=2))
    config = TrainConfig(steps=60, batch=32, learning_rate=2e-3, warmup=10)
    train_planner(storage.load(recorded), registered, folder, model=model, config=config, progress=False)
    return folder


def test_a_world_is_written_in_sixty_lines():
    assert len(Path(corridor_world.__file__).read_text().splitlines()) <= 60


def test_it_is_recorded(registered, recorded):
    episodes = storage.load(recorded)
    assert (len(episodes), len(storage.load(recorded, "val")), episodes.qpos) == (200, 20, None)
    assert not registered.maze.in_wall(episodes.observations).any()
    assert storage.manifest_of(recorded)["environment"] == "corridor"
    assert storage.preset_for(str(recorded)) is registered, "the file remembers its dataset"


@pytest.mark.slow
def test_it_is_planned_and_drawn(trained, tmp_path):
    planner = Planner.from_pretrained(trained, device="cpu")
    plan = planner.plan(*ENDS, n_candidates=8)
    assert plan.maze is corridor_world.MAZE
    assert np.isfinite(plan.states).all()
    assert plan.verdict.measures.keys() == {"steps", "ends", "reconstruction", "support", "passage"}
    plan.plot(tmp_path / "plan.png")
    assert Image.open(tmp_path / "plan.png").size[0] > 100


@pytest.mark.slow
def test_it_is_evaluated_and_filmed(registered, trained, tmp_path):
    planner = Planner.from_pretrained(trained, device="cpu")
    recorder = Recorder(PlanFollower(planner, registered, Following(options={"n_candidates": 4})))
    results = evaluate(recorder, registered, workers=0, step_limit=60)
    assert [result.task for result in results] == [1, 2]
    assert all(result.steps > 0 and len(result.path) > 1 and result.decisions for result in results)
    film(tmp_path / "film.gif", registered, recorder, results, 0)
    assert Image.open(tmp_path / "film.gif").n_frames > 1


@pytest.mark.slow
def test_it_is_served(trained):
    with serving(Settings(), Library([str(trained)], "cpu")) as (address, _):
        visitor = client.Client(address)
        (model,) = visitor.models()["models"]
        assert (model["name"], model["drivable"], model["maze"]["rows"][1]) == ("corridor", True, "#....#")
        plan = visitor.plan("corridor", *ENDS, candidates=4)
        assert len(plan["states"][0]) == 2
        assert {"failed", "measures", "told", "where"} == set(plan["verdict"])
        middle = corridor_world.along(np.linspace(0, 5, 60)).tolist()
        kind, end = list(visitor.drive({**plan, "states": middle}))[-1]
        assert (kind, end["success"]) == ("end", True), end


@pytest.mark.long
@pytest.mark.slow
def test_commands_know_it(registered, recorded, trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["data", "info", str(recorded)]) == 0
    assert "0 states in walls" in capsys.readouterr().out
    options = ["--episodes", "1", "--tasks", "1", "--seeds", "1", "--workers", "0"]
    assert main(["eval", str(trained), *options, "--video", str(tmp_path / "film.gif")]) == 0
    assert (tmp_path / "film.gif").exists()
