"""The paper's first table: published figures beside measured ones, and the script that measures them."""

import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from compdiffuser.files import write_json
from compdiffuser.reporting.report import read_results
from compdiffuser.reporting.tables import TABLES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(benchmark_script):
    return benchmark_script("ghugare")


def measured(success: float, **fields) -> dict:
    told = {"success": success, "std": 2.0, "data": "regenerated", "steps_limit": 1000, "episodes_per_task": 10}
    return {
        **told,
        "dataset": "robotics-pointmaze-umaze-v0",
        "seeds": [0, 1],
        "tasks": [1, 2],
        "episodes": 40,
        **fields,
    }


def test_every_column_finds_its_own_result(tmp_path):
    (tmp_path / "published.json").write_text((ROOT / "results" / "published.json").read_text())
    planned = {"method": "compdiffuser", "replan": True}
    for number, fields in enumerate(
        [
            {"method": "rvs", "augment": "none"},
            {"method": "rvs", "augment": "sa"},
            {"method": "rvs", "augment": "ga"},
            {"method": "dt", "augment": "none"},
            {"method": "dt", "augment": "sa"},
            {"method": "dt", "augment": "ga"},
            {"method": "dd", "sampler": "dd", "replan": False},
            {**planned, "sampler": "gsc"},
            {**planned, "sampler": "default", "replan": False},
            {**planned, "sampler": "default"},
        ]
    ):
        write_json(tmp_path / f"{number}.json", measured(10 * number, **fields))
    table = TABLES["ghugare"](read_results(tmp_path))
    published = "| 17 ± 7 | 97 ± 5 | 76 ± 5 | 17 ± 5 | 65 ± 4 | 54 ± 4 | 0 ± 0 | 100 ± 0 | – | 100 ± 0 |"
    assert f"| U (published) {published}" in table
    here = " | ".join(f"{10 * number} ± 2" for number in range(10))
    assert f"| U (here) | {here} |" in table
    published = "| 1 ± 2 | 55 ± 3 | 21 ± 3 | 20 ± 2 | 55 ± 3 | 62 ± 2 | 30 ± 1 | 93 ± 1 | – | 100 ± 0 |"
    assert f"| Medium (published) {published}" in table
    published = "| 3 ± 4 | 38 ± 5 | 31 ± 5 | 22 ± 2 | 35 ± 2 | 39 ± 5 | 0 ± 0 | 99 ± 2 | – | 100 ± 0 |"
    assert f"| Large (published) {published}" in table


def test_a_name_chooses_one_cell_and_a_word_several(script):
    assert len(script.choose(())) == 24
    assert [cell.name for cell in script.choose(("robotics-pointmaze-umaze-v0-rvs",))] == [
        "robotics-pointmaze-umaze-v0-rvs"
    ]
    assert len(script.choose(("umaze",))) == 8
    assert len(script.choose(("rvs-sa", "-dd"))) == 6


def test_finished_cells_are_known_and_what_was_asked_differently_is_not_finished(script, tmp_path):
    options = script.Benchmark(results=tmp_path, seeds=2)
    cell = script.choose(("umaze-v0-dt-ga",))[0]
    assert not script.finished(cell, options)
    write_json(tmp_path / f"{cell.name}.json", measured(50, training={"steps": 40_000}))
    assert script.finished(cell, options)
    assert not script.finished(cell, script.Benchmark(results=tmp_path, seeds=2, updates=9))
    assert not script.finished(cell, script.Benchmark(results=tmp_path, seeds=5))
    assert not script.finished(cell, script.Benchmark(results=tmp_path, seeds=2, episodes=3))
    assert script.updates_of(cell, script.Benchmark(updates=51)) == 100  # whole replays, as training has them
    write_json(tmp_path / f"{cell.name}.json", measured(50))
    assert not script.finished(cell, options)


@pytest.mark.slow
def test_what_goes_wrong_in_a_cell_is_told_and_nothing_is_written(script, tmp_path, capsys):
    options = script.Benchmark(results=tmp_path / "results", runs=tmp_path / "runs", device="nowhere")
    assert not script.run(script.choose(("umaze-v0-gsc",))[0], None, options)
    assert "unknown device 'nowhere'" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()


def test_a_result_tells_the_command_that_makes_it(script):
    cell = script.choose(("umaze-v0-dt-ga",))[0]
    asked = "python benchmarks/ghugare.py --only robotics-pointmaze-umaze-v0-dt-ga"
    assert script.told(cell, script.Benchmark()) == asked
    changed = script.Benchmark(updates=8000, device="cpu", jobs=1)
    assert script.told(cell, changed) == f"{asked} --updates 8000 --device cpu"


def test_training_is_compiled_and_small_networks_act_on_the_processor(script):
    for cell in script.CELLS:
        *training, evaluation = script.commands(cell, script.Benchmark(device="cuda"))
        assert "--no-compile" in evaluation
        assert evaluation[evaluation.index("--device") + 1] == ("cuda" if cell.method in ("dd", "gsc") else "cpu")
        assert all("--no-compile" not in asked and "cuda" in asked for asked in training)
        *training, _ = script.commands(cell, script.Benchmark(compile=False))
        assert all("--no-compile" in asked for asked in training)


def test_few_cells_train_at_a_time_and_evaluations_run_beside_them(script, tmp_path, monkeypatch):
    at_work, most, order = set(), {"train": 0, "eval": 0}, []

    def pretend(*arguments, **environment):
        if arguments[0] == "data":
            return ""
        at_work.add(arguments)
        for kind in most:
            most[kind] = max(most[kind], sum(asked[0] == kind for asked in tuple(at_work)))
        time.sleep(0.02)
        at_work.discard(arguments)
        order.append(arguments)
        out = Path(arguments[arguments.index("--out") + 1])
        outcome = (
            {"steps": int(arguments[arguments.index("--steps") + 1]), "seconds": 1.0} if "--steps" in arguments else 0
        )
        record = {"outcome": outcome, "training": {"batch": 8}, "parameters": 3, "device": "none"}
        if arguments[0] == "train":
            write_json(out / "config.json", {"record": record, "seeds": [0]})
        else:
            write_json(out, measured(50))
        return ""

    monkeypatch.setattr(script, "compdiffuser", pretend)
    folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    monkeypatch.setattr("sys.argv", ["ghugare.py", "--seeds", "2", *folders])
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 0
    assert most["train"] == 2
    assert len(list((tmp_path / "results").glob("*.json"))) == 24
    trained = [asked[asked.index("--method") + 1] for asked in order if asked[0] == "train"]
    assert {"dd", "dt", "rvs"} == set(trained[:4])  # methods take turns
    order.clear()
    with pytest.raises(SystemExit):
        script.main()
    assert not order


def test_a_cell_whose_training_failed_is_not_evaluated(script, tmp_path, monkeypatch, capsys):
    failed: Future = Future()
    failed.set_exception(script.Failed(["train"], "compdiffuser: no data\n"))
    monkeypatch.setattr(script, "compdiffuser", lambda *given, **environment: pytest.fail("something is run"))
    options = script.Benchmark(results=tmp_path / "results", runs=tmp_path / "runs")
    assert not script.run(script.choose(("umaze-v0-dt-ga",))[0], failed, options)
    assert "compdiffuser: no data" in capsys.readouterr().out
