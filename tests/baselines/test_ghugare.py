"""The paper's first table: published figures beside measured ones, and the script that measures them."""

import importlib.util
from pathlib import Path

import pytest

from compdiffuser.evaluation.report import read_results
from compdiffuser.evaluation.tables import TABLES
from compdiffuser.files import write_json

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch):
    spec = importlib.util.spec_from_file_location("ghugare", ROOT / "benchmarks" / "ghugare.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "ghugare", module)
    spec.loader.exec_module(module)
    return module


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
            {**planned, "sampler": "default"},
        ]
    ):
        write_json(tmp_path / f"{number}.json", measured(10 * number, **fields))
    table = TABLES["ghugare"](read_results(tmp_path))
    assert (
        "| U (published) | 17 ± 7 | 97 ± 5 | 76 ± 5 | 17 ± 5 | 65 ± 4 | 54 ± 4 | 0 ± 0 | 100 ± 0 | 100 ± 0 |" in table
    )
    assert "| U (here) | 0 ± 2 | 10 ± 2 | 20 ± 2 | 30 ± 2 | 40 ± 2 | 50 ± 2 | 60 ± 2 | 70 ± 2 | 80 ± 2 |" in table
    published = "| 1 ± 2 | 55 ± 3 | 21 ± 3 | 20 ± 2 | 55 ± 3 | 62 ± 2 | 30 ± 1 | 93 ± 1 | 100 ± 0 |"
    assert f"| Medium (published) {published}" in table
    published = "| 3 ± 4 | 38 ± 5 | 31 ± 5 | 22 ± 2 | 35 ± 2 | 39 ± 5 | 0 ± 0 | 99 ± 2 | 100 ± 0 |"
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
    write_json(tmp_path / f"{cell.name}.json", measured(50, training={"steps": 20_000}))
    assert script.finished(cell, options)
    assert not script.finished(cell, script.Benchmark(results=tmp_path, seeds=2, updates=9))
    assert not script.finished(cell, script.Benchmark(results=tmp_path, seeds=5))
    assert not script.finished(cell, script.Benchmark(results=tmp_path, seeds=2, episodes=3))


def test_what_goes_wrong_in_a_cell_is_told_and_nothing_is_written(script, tmp_path, capsys):
    options = script.Benchmark(results=tmp_path / "results", runs=tmp_path / "runs", device="nowhere")
    assert not script.run(script.choose(("umaze-v0-gsc",))[0], None, options)
    assert "unknown device 'nowhere'" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()
