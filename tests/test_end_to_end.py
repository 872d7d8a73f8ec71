"""Real commands in processes of their own: shipped planners, the real simulator, files on disk."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compdiffuser import Plan, Planner
from compdiffuser.planning.inverse_control import load_controller
from compdiffuser.presets import PRESETS, preset

PRETRAINED = Path(__file__).parents[1] / "pretrained"
GIANT = "pointmaze-giant-stitch-v0"


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([sys.executable, "-m", "compdiffuser", *arguments], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_the_shipped_giant_planner_reaches_goals_in_the_real_environment():
    done = run("eval", GIANT, "--tasks", "1,5", "--episodes", "1", "--seeds", "1", "--json")
    result = json.loads(done.stdout)
    assert result["success"] == 100
    assert result["episodes"] == 2
    assert sum(result["failures"].values()) == 0


@pytest.mark.parametrize("size", ["umaze", "medium"])
def test_shipped_planners_of_the_other_family_do_too(size):
    done = run("eval", f"robotics-pointmaze-{size}-v0", "--tasks", "1,2", "--episodes", "1", "--seeds", "1", "--json")
    assert json.loads(done.stdout)["success"] == 100


def test_a_shipped_ant_walks_to_its_goals():
    """A walking body is chaotic, and one in a few hundred falls: of two goals, one is reached on every machine."""
    done = run("eval", "antmaze-large-explore-v0", "--tasks", "2,4", "--episodes", "1", "--seeds", "1", "--json")
    result = json.loads(done.stdout)
    assert result["success"] >= 50
    assert sum(result["failures"].values()) == 2 - round(2 * result["success"] / 100)


def test_every_ant_has_a_small_controller():
    names = {name for name, record in PRESETS.items() if record.controller == "inverse-dynamics"}
    folders = sorted((PRETRAINED / "controllers").iterdir())
    assert {folder.name for folder in folders} == names
    for folder in folders:
        assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000
        assert load_controller(folder).network.config.observation == 29


def test_every_shipped_planner_is_small_and_complete():
    folders = sorted(PRETRAINED.glob("*-v0"))
    assert {folder.name for folder in folders} == set(PRESETS)
    for folder in folders:
        assert sum(path.stat().st_size for path in folder.iterdir()) < 10_000_000
        assert {path.name for path in folder.iterdir()} == {
            "model.safetensors",
            "support.safetensors",
            "config.json",
            "log.csv",
        }
        assert Planner.from_pretrained(folder.name, device="cpu").preset == preset(folder.name)


def test_a_plan_is_drawn_saved_and_printed(tmp_path):
    files = ["--png", str(tmp_path / "p.png"), "--gif", str(tmp_path / "p.gif"), "--save", str(tmp_path / "p.npz")]
    done = run("plan", "pointmaze-medium-stitch-v0", "--start", "0,0", "--goal", "20,20", "--json", *files)
    printed = json.loads(done.stdout)
    saved = Plan.load(tmp_path / "p.npz")
    np.testing.assert_allclose(printed["states"], saved.states, rtol=1e-6)
    assert saved.ok
    assert saved.fault() is None
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "p.gif").read_bytes().startswith(b"GIF8")


def test_a_plan_with_too_few_chunks_is_not_certified():
    ends = ["--start", "0,0", "--goal", "52,36"]
    done = run("plan", GIANT, *ends, "--chunks", "2", "--candidates", "4", code=3)
    assert "NOT certified" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--start", "0", "--goal", "4,0"], "a start has 2 dimensions here"),
        (["--start", "x,0", "--goal", "4,0"], "the start must be numbers separated by commas, not 'x,0'"),
        (["--start", "0,0", "--goal", "400,4"], "lies outside the data"),
        (["--start", "0,0", "--goal", "8,0"], "the goal [8.0, 0.0] lies in a wall"),
        (["--start", "0,0", "--goal", "4,0", "--chunks", "0"], "must be at least 1, not 0"),
        (["--start", "0,0", "--goal", "4,0", "--chunks", "some"], "chunks must be 'auto' or a number, not 'some'"),
        (["--start", "0,0", "--goal", "4,0", "--candidates", "0"], "candidates must be at least 1, not 0"),
    ],
)
def test_mistakes_get_one_sentence_and_code_2(arguments, sentence):
    done = run("plan", "pointmaze-medium-stitch-v0", *arguments, code=2)
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_own_data_is_trained_on_resumed_and_planned_with(tmp_path):
    rng = np.random.default_rng(0)
    start, end = rng.uniform(-5, 5, (2, 30, 1, 2))
    states = (start + (end - start) * np.linspace(0, 1, 60)[None, :, None]).reshape(-1, 2).astype(np.float32)
    ends = np.tile(np.arange(60) == 59, 30)
    np.savez(tmp_path / "mine.npz", observations=states, actions=np.zeros_like(states), terminals=ends)
    out = str(tmp_path / "run")
    small = ["--width", "32", "--depth", "1", "--batch", "16", "--horizon", "32", "--overlap", "12", "--log-every", "5"]
    run("train", str(tmp_path / "mine.npz"), "--steps", "10", "--out", out, "--device", "cpu", *small)
    done = run("train", str(tmp_path / "mine.npz"), "--steps", "20", "--out", out, "--device", "cpu", "--json", *small)
    assert json.loads(done.stdout)["steps"] == 20
    steps = [line.split(",")[0] for line in (tmp_path / "run" / "log.csv").read_text().splitlines()]
    assert steps == ["step", "5", "10", "15", "20"]
    planner = Planner.from_pretrained(out, device="cpu")
    assert planner.preset.horizon == 32
    assert planner.plan([0, 0], [1, 1], n_chunks=2, n_candidates=2).states.shape == (52, 2)
    np.savez(tmp_path / "mine.npz", observations=2 * states, actions=np.zeros_like(states), terminals=ends)
    done = run("train", str(tmp_path / "mine.npz"), "--steps", "30", "--out", out, "--device", "cpu", *small, code=2)
    assert "holds a run on other data of that name" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing-v0"], "unknown dataset 'nothing-v0'"),
        (["missing.npz"], "missing.npz"),
        (["pointmaze-medium-stitch-v0", "--dims", "a,b"], "dims are whole numbers separated by commas, not 'a,b'"),
        (["pointmaze-medium-stitch-v0", "--horizon", "100", "--overlap", "60"], "at most half the horizon 100"),
        (["pointmaze-medium-stitch-v0", "--steps", "-1"], "steps must be at least 1, not -1"),
    ],
)
def test_mistakes_in_training_get_one_sentence(arguments, sentence):
    done = run("train", *arguments, "--device", "cpu", code=2)
    assert sentence in done.stderr
