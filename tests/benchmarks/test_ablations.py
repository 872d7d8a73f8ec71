"""The ablations: every cell that a table shows is measured, one file each, and none twice."""

import pytest

from compdiffuser.cli.contestants import trained
from compdiffuser.files import pretrained_folder, read_json, write_json
from compdiffuser.presets import PRESETS
from compdiffuser.reporting.ablations import DIRECTIONS, GIANT, NUMBERS, ORDERS, ORDERS_REPLANNING, ORIGIN, entry
from compdiffuser.reporting.report import read_results
from compdiffuser.reporting.tables import TABLES

CELL = f"{GIANT}-autoregressive-k9"


@pytest.fixture
def script(benchmark_script):
    return benchmark_script("ablations")


@pytest.fixture
def evaluated(script, monkeypatch):
    """Evaluations that were asked for; each writes a result at once."""
    asked = []

    def run(name, evaluation, options):
        asked.append(evaluation)
        about = {"dataset": GIANT, "data": "regenerated", "tasks": [1], "steps_limit": 9}
        about["episodes_per_task"] = options.episodes or PRESETS[GIANT].evaluation.episodes
        made = {"complete": True, "success": 40.0, "std": 2.0, "seeds": list(range(options.seeds)), **about}
        write_json(options.results / f"{name}.json", made)
        return True

    monkeypatch.setattr(script, "run", run)
    return asked


@pytest.mark.parametrize("table", [ORDERS, ORDERS_REPLANNING, NUMBERS, DIRECTIONS])
def test_every_cell_of_a_table_is_measured(script, table):
    known = script.cells("paper")
    cells = [entry({"cell": name, "dataset": dataset, "weights": "paper"}) for name, (dataset, _) in known.items()]
    for _, row in table.rows:
        for _, column in table.columns:
            wanted = {**row, **column}
            if wanted["origin"] == ORIGIN and wanted["weights"] == "paper":
                assert [c for c in cells if all(c.get(name) == value for name, value in wanted.items())], wanted


def test_cells_take_away_and_add_one_thing_at_a_time(script):
    known = script.cells("authors")
    dataset, options = known[f"{GIANT}-added-refinement"]
    assert dataset == GIANT
    assert options == ["--sampler", "authors", "--refine", "1", "--follow", "time", "--no-replan"]
    assert known["antmaze-giant-stitch-v0-removed-automatic-k"][1] == ["--chunks", "9", "--no-replan", "--no-rise"]
    assert known[f"{GIANT}-removed-scaffold"][1] == ["--scaffold", "none", "--no-replan"]


def test_a_cell_is_measured_once(script, evaluated, tmp_path, capsys):
    options = script.Benchmark(results=tmp_path / "ablations", seeds=2)
    dataset, evaluation = script.cells("paper")[CELL]
    for _ in range(2):
        assert script.evaluate_cell(CELL, dataset, evaluation, options)
    assert evaluated == [[GIANT, *evaluation]]
    assert "measured before, 40.0%" in capsys.readouterr().out
    assert script.evaluate_cell(CELL, dataset, evaluation, script.Benchmark(results=options.results, seeds=3))
    assert len(evaluated) == 2
    result = read_json(options.results / f"default-{CELL}.json")
    assert (result["weights"], result["cell"]) == ("default", CELL)
    assert result["made_of"] == script.fingerprint(pretrained_folder() / GIANT)
    assert "| 9 | – | – | 40 ± 2 | – | – | – |" in TABLES["paper-numbers"](read_results(tmp_path))


def test_a_trial_of_few_episodes_is_no_measurement(script, evaluated, tmp_path):
    trial, whole = (script.Benchmark(results=tmp_path, episodes=episodes) for episodes in (1, None))
    for options in (trial, trial, whole, whole, trial):
        assert script.evaluate_cell(CELL, *script.cells("paper")[CELL], options)
    assert len(evaluated) == 2


def test_planners_of_other_training_seeds_are_told_together(script, evaluated, tmp_path):
    cell = f"{GIANT}-ours"
    for preset in ("default", "seed-1"):
        (tmp_path / f"{preset}-{GIANT}").mkdir()
        write_json(tmp_path / f"{preset}-{GIANT}" / "config.json", {})
        options = script.Benchmark(preset=preset, runs=tmp_path, results=tmp_path / "ablations", seeds=2)
        assert script.evaluate_cell(cell, *script.cells("paper")[cell], options)
    assert evaluated[1][0] == str(tmp_path / f"seed-1-{GIANT}")
    assert "| pointmaze-giant-stitch | 2 | 40.0 ± 0.0 | 40, 40 |" in TABLES["trainings"](read_results(tmp_path))


def test_a_planner_that_is_not_there_is_told_of(script, evaluated, tmp_path, capsys):
    options = script.Benchmark(preset="paper", runs=tmp_path, results=tmp_path / "results")
    assert script.evaluate_cell(CELL, *script.cells("paper")[CELL], options)
    assert not evaluated
    assert f"left out, there is no planner at '{tmp_path / f'paper-{GIANT}'}'" in capsys.readouterr().out


def test_sampling_is_timed(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(script, "sampling_time", lambda *asked: (0.5, script.Denoiser(script.DenoiserConfig()), 3))
    cell = "pointmaze-medium-stitch-v0-time-parallel"
    options = script.Benchmark(results=tmp_path / "ablations", hardware="a clock")
    assert script.time_cell(cell, options)
    text = TABLES["paper-times"](read_results(tmp_path))
    assert "preset `default`, a clock" in text
    assert "| pointmaze-medium-stitch, K = 3, parallel | – | 0.50 s |" in text


def test_a_curve_lists_evaluations_that_are_no_cell(tmp_path):
    folder = tmp_path / "ablations"
    for replan, success in ((False, 20.0), (True, 30.0)):
        trained = {"seconds": 300.0, "updates": 12_000}
        about = {"dataset": GIANT, "recipe": "paper", "sampler": "paper", "replan": replan, "trained": trained}
        write_json(
            folder / f"{replan}.json", {"complete": True, "success": success, "std": 1.0, "seeds": [0, 1], **about}
        )
    assert "| `paper` | `paper` | 5 | 12,000 | 20 ± 1 | 30 ± 1 |" in TABLES["paper-curve"](read_results(tmp_path))


def test_a_curve_goes_on_over_several_trainings(tmp_path):
    begun = {"planner": "paper", "updates": 144_000, "seconds": 3600.02}
    outcome = {"steps": 72_000, "seconds": 1800.01}
    kept = {"after_updates": 12_000, "after_seconds": 300.0}
    for name, record in {"end": {"outcome": outcome}, "on-the-way": {"outcome": outcome, **kept}}.items():
        about = {"dataset": GIANT, "recipe": "paper", "sampler": "paper", "replan": False, "complete": True}
        told = {"success": 20.0, "std": 1.0, "seeds": [0], "trained": trained({**record, "begun_with": begun})}
        write_json(tmp_path / "ablations" / f"{name}.json", {**about, **told})
    table = TABLES["paper-curve"](read_results(tmp_path))
    assert "| `paper` | `paper` | 65 | 156,000 | 20 |" in table
    assert "| `paper` | `paper` | 90 | 216,000 | 20 |" in table
