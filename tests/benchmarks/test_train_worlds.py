"""The script that makes what a world with a learned controller needs: what it runs, and what it does not repeat."""

import multiprocessing
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from compdiffuser import artifact
from compdiffuser.files import read_json, write_json
from compdiffuser.presets import preset

ARENA, HUMANOID = "antsoccer-arena-stitch-v0", "humanoidmaze-medium-stitch-v0"
RECORD = {"parameters": 3, "training": {"batch": 8}, "device": "cpu", "outcome": {"steps": 7, "seconds": 1.0}}


@pytest.fixture
def script(benchmark_script):
    return benchmark_script("train_worlds")


@pytest.fixture
def options(script, tmp_path):
    def make(**given):
        return script.Benchmark(runs=tmp_path / "runs", out=tmp_path / "out", results=tmp_path / "results", **given)

    return make


@pytest.fixture
def commands(script, monkeypatch):
    """The commands that are run; each leaves a trained artifact where it was told to."""
    asked = []

    def pretend(*arguments):
        asked.append(arguments)
        out = Path(arguments[arguments.index("--out") + 1])
        folders = [out / "heading", out] if "--heading-time-limit" in arguments else [out]
        for folder in folders:
            artifact.save(
                folder, artifact.Artifact("pretended", 1, {"record": RECORD}, {"model": {"w": np.zeros(1, np.float32)}})
            )
            (folder / "log.csv").write_text("log")

    monkeypatch.setattr(script, "compdiffuser", pretend)
    return asked


def test_planners_of_other_dimensions_lie_beside_the_own_one(script, options, commands, tmp_path):
    given = options(dims=("own", "17"), planner_options="--width 32 --depth 2")
    for _ in range(2):  # the second call finds all of it done
        script.planners(given, preset(ARENA))
    own, other = commands
    assert "--dims" not in own
    assert other[other.index("--dims") + 1] == "17"
    assert all(asked[-4:] == ("--width", "32", "--depth", "2") for asked in commands)
    assert {folder.name for folder in (tmp_path / "out").iterdir()} == {ARENA, f"{ARENA}-17d"}
    noted = read_json(tmp_path / "results" / "training_antsoccer.json")["planners"]
    assert {name: took["steps"] for name, took in noted.items()} == {
        f"{ARENA}/compdiffuser": 7,
        f"{ARENA}-17d/compdiffuser": 7,
    }


@pytest.mark.parametrize(("name", "estimated"), [(HUMANOID, True), (ARENA, False)])
def test_only_a_body_that_does_not_observe_its_heading_gets_an_estimator(
    script, options, commands, tmp_path, name, estimated
):
    for _ in range(2):
        script.controllers(options(heading_seconds=3), preset(name))
    (asked,) = commands
    assert ("--heading-time-limit" in asked) == estimated
    assert (tmp_path / "out" / "controllers" / name / "heading" / "config.json").exists() == estimated
    assert (tmp_path / "out" / "controllers" / name / "config.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stages", "walk"], "unknown stage 'walk'"),
        (["--cells", "magic"], "unknown cell 'magic'"),
        (["--dims", "x"], "not 'x'"),
        (["--datasets", "antsoccer-arena-stich-v0"], "antsoccer-arena-stitch-v0"),
    ],
)
def test_what_there_is_not_is_told_before_anything_is_done(script, monkeypatch, commands, arguments, said):
    monkeypatch.setattr(sys, "argv", ["train_worlds.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert said in str(ended.value.code)
    assert not commands


def add(path: Path, number: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from reproduce import updating

    for turn in range(10):
        with updating(path) as content:
            content.setdefault("all", []).append([number, turn])


def test_processes_that_add_to_one_file_take_turns(tmp_path):
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    path = tmp_path / "deep" / "training.json"
    together = [context.Process(target=add, args=(path, number)) for number in range(3)]
    for process in together:
        process.start()
    for process in together:
        process.join()
    assert sorted(read_json(path)["all"]) == [[number, turn] for number in range(3) for turn in range(10)]


def test_what_fails_while_a_file_is_updated_changes_nothing(benchmark_script, tmp_path):
    reproduce, path = benchmark_script("reproduce"), tmp_path / "x.json"
    write_json(path, {"a": 1})
    with suppress(KeyError), reproduce.updating(path) as content:
        content["a"] = content["b"]
    assert read_json(path) == {"a": 1}
    with reproduce.updating(path) as content:
        content["a"] += 1
    assert read_json(path) == {"a": 2}


def test_a_recording_that_was_made_before_keeps_its_time(benchmark_script, monkeypatch, tmp_path):
    data, path = benchmark_script("data_generation"), tmp_path / "data" / "pointmaze-medium-stitch-v0.npz"
    first = data.made("pointmaze-medium-stitch-v0", path, 2, 1)["speed"]
    assert (first["workers"], first["episodes"], first["states"]) == (1, 3, 603)
    assert first["steps_per_second"] > 0
    assert data.made("pointmaze-medium-stitch-v0", path, 2, 1) == {}
    (path.parent / f".{path.stem}-0123.work").mkdir()
    assert data.made("pointmaze-medium-stitch-v0", path, 3, 1) == {}  # part of it may have been there
