"""Real commands in processes of their own: shipped planners, the real simulator, files on disk."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compdiffuser import Plan, Planner
from compdiffuser.cli import main
from compdiffuser.following.inverse_dynamics import load_controller
from compdiffuser.planning.judge import TESTS
from compdiffuser.presets import PRESETS, preset

PRETRAINED = Path(__file__).parents[1] / "pretrained"
GIANT = "pointmaze-giant-stitch-v0"

pytestmark = pytest.mark.slow


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([sys.executable, "-m", "compdiffuser", *arguments], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_the_shipped_giant_planner_reaches_goals_in_the_real_environment():
    done = run("eval", GIANT, "--tasks", "1", "--episodes", "1", "--seeds", "1", "--json")
    result = json.loads(done.stdout)
    assert result["success"] == 100
    assert result["episodes"] == 1
    assert sum(result["failures"].values()) == 0


@pytest.mark.long
def test_a_shipped_planner_of_the_other_family_does_too():
    done = run("eval", "robotics-pointmaze-umaze-v0", "--tasks", "1,2", "--episodes", "1", "--seeds", "1", "--json")
    assert json.loads(done.stdout)["success"] == 100


def test_a_shipped_ant_walks_to_its_goals():
    """A walking body is chaotic, and one in a few hundred falls: of two goals, one is reached on every machine."""
    done = run("eval", "antmaze-large-explore-v0", "--tasks", "2,4", "--episodes", "1", "--seeds", "1", "--json")
    result = json.loads(done.stdout)
    assert result["success"] >= 50
    assert sum(result["failures"].values()) == 2 - round(2 * result["success"] / 100)


def test_every_world_without_a_controller_has_a_small_learned_one():
    names = {name for name, record in PRESETS.items() if record.domain.controller is None}
    folders = sorted((PRETRAINED / "controllers").iterdir())
    assert {folder.name for folder in folders} == names & {folder.name for folder in PRETRAINED.glob("*-v0")}
    for folder in folders:
        assert sum(path.stat().st_size for path in folder.iterdir()) < 6_000_000
        assert load_controller(folder).space == preset(folder.name).space


def test_every_shipped_planner_is_small_and_complete():
    folders = sorted(PRETRAINED.glob("*-v0"))
    assert {folder.name for folder in folders} <= set(PRESETS)
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


def test_a_plan_with_too_few_chunks_is_not_certified(capsys):
    ends = ["--start", "0,0", "--goal", "52,36"]
    assert main(["plan", GIANT, *ends, "--chunks", "2", "--candidates", "4"]) == 3
    told = capsys.readouterr().out
    assert "NOT certified: " in told
    assert any(reason in told for reason in TESTS.values())


@pytest.mark.long
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
    assert planner.preset.chunks.horizon == 32
    assert planner.plan([0, 0], [1, 1], n_chunks=2, n_candidates=2).states.shape == (52, 2)
    np.savez(tmp_path / "mine.npz", observations=2 * states, actions=np.zeros_like(states), terminals=ends)
    done = run("train", str(tmp_path / "mine.npz"), "--steps", "30", "--out", out, "--device", "cpu", *small, code=2)
    assert "holds a run on other data of that name" in done.stderr
