"""Baselines in the report: measured beside published, speed in a table of its own."""

from pathlib import Path

from compdiffuser.files import write_json
from compdiffuser.reporting.report import read_results
from compdiffuser.reporting.tables import TABLES

PUBLISHED = Path(__file__).parents[2] / "results" / "published.json"


def test_published_figures_are_the_papers(tmp_path):
    (tmp_path / "published.json").write_text(PUBLISHED.read_text())
    table = TABLES["baselines"](read_results(tmp_path))
    assert "| GCBC | 23 ± 18 | – | 7 ± 5 | – | 0 ± 0 | – | 45 ± 11 | – |" in table
    assert "| GCIVL | 70 ± 14 | – | 12 ± 6 | – | 0 ± 0 | – | 44 ± 6 | – |" in table
    assert "| GCIQL | 21 ± 9 | – | 31 ± 2 | – | 0 ± 0 | – | 29 ± 6 | – |" in table
    assert "| QRL | 80 ± 12 | – | 84 ± 15 | – | 50 ± 8 | – | 59 ± 7 | – |" in table
    assert "| CRL | 0 ± 1 | – | 0 ± 0 | – | 0 ± 0 | – | 53 ± 6 | – |" in table
    assert "| HIQL | 74 ± 6 | – | 13 ± 6 | – | 0 ± 0 | – | 94 ± 1 | – |" in table


def test_measured_figures_stand_beside_them(tmp_path):
    result = {
        "dataset": "pointmaze-large-stitch-v0", "method": "qrl", "success": 81.5, "std": 4.2, "data": "regenerated",
        "seeds": [0, 1, 2], "tasks": [1, 2, 3, 4, 5], "episodes_per_task": 20, "steps_limit": 1000, "episodes": 300,
    }  # fmt: skip
    write_json(tmp_path / "qrl.json", result)
    table = TABLES["baselines"](read_results(tmp_path))
    assert "| QRL | – | – | – | 81.5 ± 4.2 | – | – | – | – |" in table
    assert "Measured here: regenerated data, 3 seeds × 5 tasks × 20 episodes, 1,000 steps." in table


def test_speed_of_baselines_is_a_table_of_its_own(tmp_path):
    entry = {"name": "gcivl, 1 seed at once", "value": 2345.678, "unit": "updates/s", "hardware": "one GPU"}
    entry |= {"group": "baselines", "target": 2000, "bound": "at least", "row": "gcivl", "column": "updates/s, 1 seed"}
    taken = {"name": "memory", "value": 0.4567, "unit": "GiB", "hardware": "one GPU", "group": "baselines"}
    others = [{**taken, "row": "gcivl", "column": "GiB, 1 seed"}, {**taken, "row": "qrl", "column": "GiB, 1 seed"}]
    write_json(tmp_path / "speed.json", {"benchmarks": [entry, *others]})
    table = TABLES["baseline-speed"](read_results(tmp_path))
    assert "| what | hardware | updates/s, 1 seed | GiB, 1 seed |" in table
    assert "| gcivl | one GPU | 2,346 (at least 2,000) | 0.457 |" in table
    assert "| qrl | one GPU | – | 0.457 |" in table
    assert "gcivl" not in TABLES["speed"](read_results(tmp_path))


def test_curves_are_listed(tmp_path):
    run = {"steps": 200_000, "seeds": 4, "precision": "bf16", "updates_per_second": 1234.5, "peak_memory": 2**29}
    run["curve"] = [{"updates": 100_000, "success": 12.4}, {"updates": 200_000, "success": 70.0}]
    write_json(tmp_path / "training.json", {"baselines": {"pointmaze-medium-stitch-v0/qrl": run}})
    line = "| pointmaze-medium-stitch-v0, qrl | 200,000 | 4 | bf16 | 1234 | 0.50 GiB | 12 → 70 |"
    assert line in TABLES["baseline-training"](read_results(tmp_path))
    write_json(tmp_path / "training.json", {"baselines": {"on a CPU/qrl": {**run, "peak_memory": 0}}})
    assert "| 1234 | – | 12 → 70 |" in TABLES["baseline-training"](read_results(tmp_path))
