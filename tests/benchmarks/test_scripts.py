"""Every script starts, and what they share does what it says."""

import runpy
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from compdiffuser import artifact
from compdiffuser.files import pretrained_folder, read_json, write_json
from compdiffuser.presets import PRESETS

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks"
FILES = [*sorted(SCRIPTS.glob("*.py")), ROOT / "docs" / "make_pictures.py"]
WITH_OPTIONS = [path for path in FILES if "tyro.cli" in path.read_text()]
DRY = ["evaluate_pointmaze", "evaluate_worlds", "ghugare"]


@pytest.fixture
def script(monkeypatch, capsys):
    """Run a script with arguments; what it prints."""

    def run(path, *arguments: str) -> str:
        monkeypatch.syspath_prepend(path.parent)
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        with suppress(SystemExit):
            runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("path", WITH_OPTIONS, ids=lambda path: path.stem)
def test_every_script_says_what_it_takes(script, path):
    assert "usage:" in script(path, "--help")


@pytest.mark.parametrize("name", DRY)
def test_a_dry_run_prints_one_line_per_cell(script, name):
    lines = script(SCRIPTS / f"{name}.py", "--dry").splitlines()
    assert len(lines) == len(set(lines)) > 10
    assert all(line.startswith("compdiffuser ") and "eval " in line for line in lines)


def test_cells_are_those_of_the_bodies_in_the_registry(benchmark_script):
    point, learned = (benchmark_script(f"evaluate_{kind}").CELLS for kind in ("pointmaze", "worlds"))
    for name, record in PRESETS.items():
        shipped = (pretrained_folder() / name).is_dir()
        assert (f"{name}-replan" in point) == (record.domain.family == "point")
        assert (f"{name}-replan" in learned) == (record.domain.controller is None and shipped)


def test_a_planner_has_the_cells_of_its_world(benchmark_script, tmp_path, monkeypatch):
    script = benchmark_script("evaluate_worlds")
    soccer, humanoid = "antsoccer-arena-stitch-v0", "humanoidmaze-giant-stitch-v0"
    assert {"replan", "no-replan", "gsc"} <= set(script.cells_of(soccer)) == set(script.cells_of(f"{soccer}-17d"))
    assert script.cells_of(f"{soccer}-17d")["gsc"] == [f"{soccer}-17d", "--sampler", "gsc", "--no-replan"]
    assert set(script.cells_of(humanoid)) == {"replan", "no-replan", "noise", "true-heading"}
    assert "horizon-8" in script.cells_of("antmaze-giant-stitch-v0")
    for name in (f"{soccer}-17d", humanoid, "pointmaze-giant-stitch-v0", "controllers", f"{humanoid}-old"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(script, "pretrained_folder", lambda: tmp_path)
    assert script.shipped() == [f"{soccer}-17d", humanoid]


def test_a_cell_tells_how_long_it_took(benchmark_script, tmp_path, monkeypatch, capsys):
    script = benchmark_script("evaluate_pointmaze")

    def measured(*arguments):
        write_json(arguments[arguments.index("--out") + 1], {"success": 50.0})
        return "50% of 10\nmore\n", {"seconds": 3.0, "peak_memory": 7}

    monkeypatch.setattr(script, "measured", measured)
    assert script.run("one", ["a-planner"], script.Benchmark(results=tmp_path, jobs=2))
    taken = {"seconds": 3.0, "peak_memory": 7, "side_by_side": 2}
    assert read_json(tmp_path / "one.json") == {"success": 50.0, "evaluation": taken}
    assert capsys.readouterr().out == "one: 50% of 10 (3 s)\n"


def test_a_command_is_measured(benchmark_script):
    reproduce = benchmark_script("reproduce")
    said, took = reproduce.measured("--version")
    assert said.startswith("compdiffuser ")
    assert took["peak_memory"] > 2**20
    assert took["seconds"] >= 0
    with pytest.raises(reproduce.Failed, match="unknown dataset 'nothing'"):
        reproduce.measured("data", "info", "nothing")


def test_a_command_runs_in_a_process_of_its_own_and_says_why_it_failed(benchmark_script):
    reproduce = benchmark_script("reproduce")
    assert reproduce.compdiffuser("--version").startswith("compdiffuser ")
    with pytest.raises(
        reproduce.Failed, match=r"^compdiffuser data info nothing: .*unknown dataset 'nothing'"
    ) as error:
        reproduce.compdiffuser("data", "info", "nothing")
    assert error.value.said.startswith("compdiffuser: unknown dataset")


def test_options_that_are_not_given_are_left_out(benchmark_script):
    reproduce = benchmark_script("reproduce")
    assert reproduce.options_of(seeds_at_once=3, batch=None, out="x") == ["--seeds-at-once", "3", "--out", "x"]


def test_a_clock_runs(benchmark_script):
    clock = benchmark_script("reproduce").Clock(torch.device("cpu"))
    first = clock.seconds
    assert 0 <= first <= clock.seconds


def test_what_ships_is_the_artifact_and_its_log(benchmark_script, tmp_path):
    reproduce = benchmark_script("reproduce")
    run = made(tmp_path / "run", 1.0)
    for name in ("old.safetensors", "resume.pt"):
        (run / name).write_text(name)
    reproduce.ship(run, tmp_path / "shipped")
    assert {path.name for path in (tmp_path / "shipped").iterdir()} == {"model.safetensors", "log.csv", "config.json"}
    taken = {"steps": 7, "seconds": 1.0, "parameters": 3, "batch": 8, "device": "cpu"}
    assert reproduce.training_of(tmp_path / "shipped") == taken


def test_what_is_shipped_over_another_takes_its_place_at_once(benchmark_script, tmp_path, monkeypatch):
    reproduce = benchmark_script("reproduce")
    old, new = made(tmp_path / "old", 1.0), made(tmp_path / "new", 2.0)
    reproduce.ship(old, tmp_path / "shipped")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(artifact, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            reproduce.ship(new, tmp_path / "shipped")
    assert artifact.load(tmp_path / "shipped", "planner", 1).parts["model"]["weight"][0] == 1.0
    reproduce.ship(new, tmp_path / "shipped")
    assert artifact.load(tmp_path / "shipped", "planner", 1).parts["model"]["weight"][0] == 2.0


def made(folder, number):
    """An artifact with its log."""
    record = {"parameters": 3, "training": {"batch": 8}, "device": "cpu", "outcome": {"steps": 7, "seconds": 1.0}}
    weights = {"model": {"weight": np.full(3, number, np.float32)}}
    artifact.save(folder, artifact.Artifact("planner", 1, {"record": record}, weights))
    (folder / "log.csv").write_text("step,loss\n")
    return folder
