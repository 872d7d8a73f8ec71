"""The scripts that measure baselines: what is measured is kept, whatever fails or is cut off beside it."""

import json
import subprocess
from types import SimpleNamespace

import pytest
import torch

from compdiffuser.files import read_json, write_json

MEDIUM, LARGE = "pointmaze-medium-stitch-v0", "pointmaze-large-stitch-v0"


@pytest.fixture
def cells(benchmark_script):
    return benchmark_script("train_baselines")


def test_a_failed_cell_takes_no_other_with_it(cells, tmp_path, monkeypatch, capsys):
    options = cells.Benchmark(
        methods=("gcbc", "qrl"), datasets=(MEDIUM, LARGE), runs=tmp_path / "runs", results=tmp_path / "results"
    )

    def start(cell):
        if cell == ("gcbc", MEDIUM):
            return 3
        write_json(cells.folder(*cell, options) / "cell.json", {"steps": 7})
        return 0

    monkeypatch.setattr(cells, "start_cell", start)
    assert not cells.run_all(options)
    figures = read_json(tmp_path / "results" / "training_baselines.json")["baselines"]
    assert set(figures) == {f"{MEDIUM}/qrl", f"{LARGE}/gcbc", f"{LARGE}/qrl"}
    assert f"{MEDIUM}/gcbc failed with exit code 3" in capsys.readouterr().out


def test_a_cell_is_done_for_what_was_asked_even_when_the_clock_ended_it(cells, tmp_path):
    options = cells.Benchmark(seconds=5.0, hidden=(16, 16))
    assert not cells.done(tmp_path, options)
    write_json(tmp_path / "cell.json", {"steps": 1234, "asked": cells.asked(options)})
    assert cells.done(tmp_path, options)
    for other in ({"seeds": 8}, {"updates": 7}, {"seconds": None}, {"episodes": 1}):
        assert not cells.done(tmp_path, cells.Benchmark(**{"seconds": 5.0, "hidden": (16, 16), **other}))


def test_agents_trained_elsewhere_are_only_evaluated(cells, tmp_path, monkeypatch):
    calls, kept = [], {}

    def train(method, episodes, preset, out, *, config, training, seeds, **options):
        calls.append("train")
        record = {"training": training.to_dict(), "outcome": {}}
        kept[out] = SimpleNamespace(config=config, seeds=range(seeds), record=record)
        write_json(out / "config.json", {})

    monkeypatch.setattr(cells, "train_baseline", train)
    monkeypatch.setattr(cells, "load", lambda out, method: kept[out])
    monkeypatch.setattr(cells, "storage", SimpleNamespace(load=str, manifest_of=str, file_of=str))
    monkeypatch.setattr(cells, "measure", lambda *given: calls.append("measure"))
    first = {"updates": 100, "evaluate": False}
    for asked, expected in [
        (first, ["train"]),
        (first, []),
        ({"updates": 100}, ["measure"]),
        ({"updates": 200}, ["train", "measure"]),
        ({"updates": 200, "seeds": 5}, ["train", "measure"]),
        ({"updates": 200, "seeds": 5, "hidden": (16, 16)}, ["train", "measure"]),
        ({"updates": 200, "seeds": 5, "hidden": (16, 16)}, ["measure"]),
    ]:
        calls.clear()
        cells.run_cell("gcbc", MEDIUM, cells.Benchmark(runs=tmp_path, **asked))
        assert calls == expected


@pytest.mark.parametrize(
    ("updates", "expected"), [(200, [50, 100, 150]), (60_000, [12_000, 24_000, 36_000, 48_000]), (10, [])]
)
def test_the_curve_has_points_of_whole_replays(cells, updates, expected):
    assert list(cells.snapshots(cells.Benchmark(updates=updates))) == expected


def test_a_cell_tells_the_command_that_makes_it(cells):
    options = cells.Benchmark(updates=100, hidden=(16, 16), curve_episodes=2, jobs=3)
    alone = f"python benchmarks/train_baselines.py --methods qrl --datasets {MEDIUM} "
    assert cells.told("qrl", MEDIUM, options, False) == alone + "--updates 100 --curve-episodes 2 --hidden 16 16"
    assert cells.told("qrl", MEDIUM, cells.Benchmark(), True) == alone + "--compile True"


def test_a_point_of_the_curve_is_measured_once(cells, tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(cells, "load", lambda folder, method: folder)
    monkeypatch.setattr(cells, "measured", lambda *given: measured.append(given) or {"success": 40.0})
    for episodes in (4, 4, 2):
        assert cells.point(tmp_path, "gcbc", None, episodes) == {"success": 40.0}
    assert len(measured) == 2


def test_half_an_evaluation_is_no_result_and_its_reason_is_told(cells, tmp_path, monkeypatch):
    def cut_off(command, **options):
        assert "--no-compile" in command
        write_json(command[command.index("--out") + 1], {"success": 1.0})
        return subprocess.CompletedProcess(command, 1, stderr="a simulator died\n")

    monkeypatch.setattr(cells.subprocess, "run", cut_off)
    options = cells.Benchmark(results=tmp_path / "results")
    with pytest.raises(RuntimeError, match="a simulator died"):
        cells.final(tmp_path / "run", "gcbc", MEDIUM, 1, options)
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_speed_is_added_to_a_file(benchmark_script, tmp_path, monkeypatch):
    script, out = benchmark_script("baseline_speed"), tmp_path / "speed.json"
    common = ["--out", str(out), "--device", "cpu", "--threads", "1", "--seconds", "0.01", "--batch", "8"]
    common += ["--hidden", "8", "--episodes", "2", "--seeds", "1"]
    for methods in (["gcbc"], ["dt"], ["gcbc", "dd"]):
        monkeypatch.setattr("sys.argv", ["baseline_speed.py", "--methods", *methods, *common])
        script.main()
    names = [entry["name"] for entry in json.loads(out.read_text())["benchmarks"]]
    timed = ["1 seed at once", "1 seed at once, peak memory"] if script.RESET_PEAK.exists() else ["1 seed at once"]
    kinds = {name: [*timed, "acting in 2 episodes at once"] for name in ("gcbc", "dt")} | {"dd": timed}
    assert names == [f"{method}, {kind}" for method in kinds for kind in kinds[method]]


def test_peaks_of_memory_are_counted_anew(benchmark_script):
    script, cpu = benchmark_script("baseline_speed"), torch.device("cpu")
    if not script.RESET_PEAK.exists():
        assert script.peak_memory(cpu) is None
        return
    script.memory_at_rest(cpu)
    before = script.peak_memory(cpu)
    taken = torch.ones(2**26)  # a quarter of a GiB
    assert script.peak_memory(cpu) > before + 2**27
    del taken
    script.memory_at_rest(cpu)
    assert script.peak_memory(cpu) < before + 2**27


def test_a_curve_keeps_its_points(benchmark_script, tmp_path, monkeypatch, capsys):
    script = benchmark_script("training_curve")
    evaluated = []

    def point(folder, options):
        evaluated.append(folder.name)
        if folder.name == "after-10":
            raise RuntimeError("no such planner")
        return script.curve_point(folder, summary)

    summary = dict.fromkeys(("success", "std", "per_task", "failures", "episodes", "seeds"), 1)
    for folder, seconds in (("run/after-10", 20), ("run/after-15", 20), ("run", 20), ("shipped", 30)):
        record = {"device": "cpu", "outcome": {"seconds": seconds}}
        write_json(tmp_path / folder / "config.json", {"record": record})
    write_json(tmp_path / "measured.json", summary)
    write_json(tmp_path / "curve.json", {"curve": [{"seconds": 15.0, "success": 2}]})
    paths = {"run": "run", "shipped": "shipped", "measured": "measured.json", "out": "curve.json"}
    options = [part for name, file in paths.items() for part in (f"--{name}", str(tmp_path / file))]
    monkeypatch.setattr(script, "point", point)
    monkeypatch.setattr("sys.argv", ["curve.py", *options])
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 1
    assert evaluated == ["run", "after-10"]
    points = read_json(tmp_path / "curve.json")["curve"]
    assert [(entry["seconds"], entry["success"]) for entry in points] == [(15, 2), (20, 1), (30, 1)]
    assert "after-10 failed: no such planner" in capsys.readouterr().err


def test_a_figure_takes_the_place_of_an_earlier_one_of_its_name(benchmark_script, tmp_path):
    figures, out = benchmark_script("figures"), tmp_path / "speed.json"
    first = figures.Figures(out, "python a.py", "a machine", "ants", about={"load": 0.5})
    first.note("one plan", 0.123456, "s", target=1)
    first.note("ten plans", 3.0, "s")
    one = {"name": "one plan", "value": 0.1235, "unit": "s", "hardware": "a machine", "group": "ants", "target": 1}
    ten = {"name": "ten plans", "value": 3.0, "unit": "s", "hardware": "a machine", "group": "ants"}
    assert read_json(out) == {"command": "python a.py", "load": 0.5, "benchmarks": [one, ten]}
    figures.Figures(out, "python a.py", "a machine", "ants", add=True).note("one plan", 0.5, "s", target=1)
    assert read_json(out)["benchmarks"] == [one | {"value": 0.5}, ten]
    figures.Figures(out, "python a.py", "a machine", "ants").note("one plan", 0.5, "s", target=1)
    assert read_json(out)["benchmarks"] == [one | {"value": 0.5}]
