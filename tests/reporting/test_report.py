from pathlib import Path

import numpy as np
import pytest

from compdiffuser.cli.report import Report
from compdiffuser.evaluation.causes import CAUSES
from compdiffuser.evaluation.results import summarize
from compdiffuser.evaluation.rollout import EpisodeResult
from compdiffuser.files import write_json
from compdiffuser.following.decision import Decision
from compdiffuser.presets import PRESETS
from compdiffuser.reporting.listings import digits
from compdiffuser.reporting.report import outdated, read_results, render
from compdiffuser.reporting.tables import TABLES
from compdiffuser.types import UserError

ROOT = Path(__file__).parents[2]
GIANT = "pointmaze-giant-stitch-v0"


def episode(seed, task, number, cause=None) -> EpisodeResult:
    decisions = (Decision(0, "start", True, 9, True, None), Decision(40, "lost", True, 7, False, None))
    return EpisodeResult(task, number, seed, cause is None, 100, cause, np.zeros((3, 2)), decisions)


def summary(**identity):
    numbers = [(task, number) for task in (1, 2) for number in range(4)]
    runs = [[episode(seed, t, n, CAUSES[n] if n < seed else None) for t, n in numbers] for seed in range(3)]
    return summarize(runs, 1000, **{"dataset": GIANT, "method": "compdiffuser", "data": "regenerated", **identity})


def project(folder: Path, text: str) -> Path:
    (folder / "docs" / "deep").mkdir(parents=True)
    (folder / "README.md").write_text(text)
    (folder / "docs" / "deep" / "page.md").write_text("no tables here\n")
    (folder / "results").mkdir()
    published = [{"dataset": GIANT, "method": "gsc", "success": 29, "std": 3, "sampler": "gsc", "source": "a paper"}]
    write_json(folder / "results" / "published.json", {"published": published})
    return folder


BLOCK = "# Title\n\n<!-- table: pointmaze -->\nold\n<!-- /table -->\n\nAfter.\n"


def test_report_writes_tables_once_and_check_sees_changes(tmp_path):
    root = project(tmp_path, BLOCK)
    write_json(root / "results" / "giant.json", summary(sampler="default", replan=True))
    assert Report(check=True, root=root).run() == 1
    assert (root / "README.md").read_text() == BLOCK
    assert Report(root=root).run() == 0
    text = (root / "README.md").read_text()
    assert "| pointmaze-giant-stitch | – | 29 ± 3 | – | – | – | 75 ± 20.4 |" in text
    assert "regenerated data, 3 seeds × 2 tasks × 4 episodes, 1,000 steps" in text
    assert "Published: a paper." in text
    assert text.startswith("# Title\n")
    assert text.endswith("\nAfter.\n")
    assert Report(check=True, root=root).run() == 0
    assert outdated(root, write=True) == []
    write_json(root / "results" / "giant.json", {**summary(sampler="default", replan=True), "success": 80.0})
    assert Report(check=True, root=root).run() == 1


def test_of_two_results_the_one_over_more_episodes_counts(tmp_path):
    write_json(tmp_path / "a.json", summary(sampler="default", replan=True))
    write_json(tmp_path / "b.json", {**summary(sampler="default", replan=True), "success": 1.0, "episodes": 2})
    assert "75 ± 20" in TABLES["pointmaze"](read_results(tmp_path))


@pytest.mark.parametrize("cut_off", [{"complete": False}, {"complete": "no"}, {"complete": None}])
def test_an_evaluation_that_was_cut_off_is_no_result(tmp_path, capsys, cut_off):
    whole = summary(sampler="default", replan=True)
    write_json(tmp_path / "a.json", whole)
    # It has more episodes than the other, or only began.
    write_json(tmp_path / "b.json", {**whole, "success": 1.0, "episodes": 10**6, **cut_off})
    write_json(tmp_path / "c.json", {"dataset": GIANT, "method": "compdiffuser", **cut_off})
    assert whole["complete"]
    assert [result["success"] for result in read_results(tmp_path)] == [75.0]
    assert "b.json is left out: its evaluation is not complete" in capsys.readouterr().err
    # Files from before the field counted as complete.
    del whole["complete"]
    write_json(tmp_path / "a.json", whole)
    assert len(read_results(tmp_path)) == 1


def test_one_seed_has_no_spread(tmp_path):
    write_json(tmp_path / "a.json", {**summary(sampler="default", replan=True), "seeds": [0]})
    assert "| 75 |" in TABLES["pointmaze"](read_results(tmp_path))


def test_speed_lists_every_benchmark(tmp_path):
    entry = {"name": "one plan", "value": 0.4321, "unit": "s", "hardware": "two cores"}
    write_json(tmp_path / "speed.json", {"benchmarks": [entry, {**entry, "target": 1}]})
    table = TABLES["speed"](read_results(tmp_path))
    assert "| one plan | 0.432 s | – | two cores |" in table
    assert "| one plan | 0.432 s | at most 1 s | two cores |" in table


@pytest.mark.parametrize("name", TABLES)
def test_every_table_renders_without_results(name):
    assert "–" in TABLES[name]([])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<!-- table: nonsense -->\n<!-- /table -->", "asks for table 'nonsense'; known tables: success"),
        ("<!-- table: speed -->\nnever closed", "without its '<!-- /table -->'"),
        ("<!-- table: speed -->\n<!-- table: speed -->\n<!-- /table -->", "without its"),
    ],
)
def test_bad_markers_are_named(text, sentence):
    with pytest.raises(UserError, match=sentence):
        render(text, [], "README.md")


@pytest.mark.parametrize("wrong", [{"success": "x"}, {"seeds": None}, {"tasks": 3}])
def test_a_result_with_an_impossible_value_is_a_sentence(tmp_path, wrong):
    write_json(tmp_path / "a.json", {**summary(sampler="default", replan=True), **wrong})
    with pytest.raises(
        UserError, match=r"README.md: table 'pointmaze' cannot be made, a result has no such value"
    ) as said:
        render(BLOCK, read_results(tmp_path), "README.md")
    assert "\n" not in str(said.value)


@pytest.mark.parametrize("wrong", [{"within": 3}, {"within": {"soon": {}}}, {"published": [1]}])
def test_a_file_that_holds_no_results_is_a_sentence(tmp_path, wrong):
    write_json(tmp_path / "a.json", {**summary(sampler="default", replan=True), **wrong})
    with pytest.raises(UserError, match=r"a.json' holds no results: "):
        read_results(tmp_path)


def test_bad_result_files_are_named(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(UserError, match=r"broken\.json"):
        read_results(tmp_path)
    (tmp_path / "broken.json").write_text("[1]")
    with pytest.raises(UserError, match="holds a list"):
        read_results(tmp_path)
    with pytest.raises(UserError, match=r"no README\.md"):
        outdated(tmp_path / "nowhere", write=False)


def test_tables_of_this_project_agree_with_its_results():
    assert outdated(ROOT, write=False) == []


def test_a_curve_and_how_planners_were_trained(tmp_path):
    points = [
        {"seconds": 450.07, "training": "finished", "success": 100.0, "std": 0.0, "seeds": [0, 1], "episodes": 200},
        {"seconds": 50.0, "training": "on the way to 100 s", "success": 99.5, "std": 0.5, "seeds": [0, 1]},
    ]
    points[1]["episodes"] = 200
    write_json(tmp_path / "curve.json", {"curve": points})
    lines = TABLES["training-curve"](read_results(tmp_path)).splitlines()
    assert lines[2:] == ["| 50 | on the way to 100 s | 99.5 ± 0.5 | 200 |", "| 450 | finished | 100 ± 0 | 200 |"]
    planner = {"waited_for_data": 10.3, "seconds": 450.07, "steps": 70_600, "peak_memory": 2**30, "device": "a GPU"}
    write_json(tmp_path / "training.json", {"planners": {f"{GIANT}/compdiffuser": planner}})
    line = f"| {GIANT} | 10 s | – | 450 s | 70,600 | 1.0 GiB | a GPU |"
    assert line in TABLES["planner-training"](read_results(tmp_path))


def test_ants_have_two_step_limits_and_controllers_of_one_horizon(tmp_path):
    ant = {"dataset": "antmaze-giant-stitch-v0", "sampler": "default", "replan": True, "settings": {"rise": True}}
    for name, changes in {
        "paper": {"steps_limit": 2000},
        "ogbench": {"steps_limit": 1000, "success": 50},
        "h8": {"steps_limit": 2000, "controller_horizon": 8, "success": 25},
    }.items():
        write_json(tmp_path / f"{name}.json", {**summary(**ant), **changes})
    results = read_results(tmp_path)
    assert "| antmaze-giant-stitch | – | – | – | – | – | 75 ± 20.4 |" in TABLES["antmaze"](results)
    assert "| giant (here) | 25 ± 20.4 | – | – | – | – | – |" in TABLES["controller-horizons"](results)


def test_the_readme_has_one_table_of_success_with_five_columns_and_one_note():
    table = TABLES["success"](read_results(ROOT / "results"))
    head, _, *body = table.split("\n\n")[0].splitlines()
    assert head == "| dataset | best RL (published) | GSC (published) | CompDiffuser (published) | ours, one plan |"
    assert len(body) >= 12
    assert not any(line.endswith("| – |") for line in body)  # every row has a figure of ours
    assert "| pointmaze-giant-stitch | 50 ± 8 | 29 ± 3 | 68 ± 3 | 100 ± 0 |" in body
    staying_down = "| antmaze-large-explore | 10 ± 3 | 21 ± 3 | 27 ± 1 | 97.8 ± 0.8 |"
    assert staying_down in body
    told = "5 seeds × 2 to 7 tasks × 10 or 20 episodes, 1,000 to 8,000"
    assert f"Measured here: regenerated data, {told}" in table
    assert max(map(len, table.split("\n\n")[1].splitlines())) <= 120


def test_parts_of_the_method_are_compared_with_one_plan(tmp_path):
    ant = {"dataset": "antmaze-large-explore-v0", "replan": False}
    for sampler in ("gsc", "noise", "default"):
        write_json(tmp_path / f"{sampler}.json", summary(**ant, sampler=sampler))
    line = "| antmaze-large-explore | 75 ± 20.4 | 75 ± 20.4 | 75 ± 20.4 |"
    assert line in TABLES["antmaze-parts"](read_results(tmp_path))


def test_failures_are_listed_by_cause_and_falls_apart_from_other_losses(tmp_path):
    lost = {"cause": "controller lost", "decisions": [{"reason": "start"}, {"reason": "stuck"}]}
    fell = {"cause": "controller lost", "decisions": [{"reason": "start"}, {"reason": "fallen"}]}
    failures = {"infeasible plan": 1, "controller lost": 3, "time out": 2, "unstable simulation": 0}
    told = {"failures": failures, "failed_episodes": [fell, lost, fell], "episodes": 20, "replans_per_episode": 0.25}
    ant = {"dataset": "antmaze-large-explore-v0", "sampler": "default", "replan": True, "settings": {"rise": True}}
    write_json(tmp_path / "ant.json", {**summary(**ant), **told, "steps_limit": 1000, "steps_mean": None})
    line = "| antmaze-large-explore, replanning | 20 | 14 | 1 | 2 | 1 | 2 | 0 | 0.25 | – |"
    assert line in TABLES["antmaze-failures"](read_results(tmp_path))


def test_a_shorter_limit_is_a_result_of_its_own(tmp_path):
    shorter = {"200": {"success": 50.0, "std": 0.0, "success_by_seed": [50.0] * 3}}
    write_json(tmp_path / "one.json", {**summary(replan=True), "within": shorter})
    found = [(result["success"], result["steps_limit"]) for result in read_results(tmp_path)]
    assert found == [(75, 1000), (50, 200)]


@pytest.mark.parametrize(
    ("value", "written"),
    [(1577.4, "1,577"), (0.43211, "0.432"), (99.95, "100"), (999.4, "999"), (999.6, "1,000"), (1000, "1,000"),
     (2_234_567.8, "2,234,568"), (0, "0"), (-1577.4, "-1,577")],
)  # fmt: skip
def test_large_numbers_are_written_in_full(value, written):
    assert digits(value) == written


def test_speed_tables_have_no_powers_of_ten(tmp_path):
    entry = {"name": "peak memory", "value": 1577.4, "unit": "MiB", "hardware": "a GPU", "target": 2000}
    cell = {**entry, "group": "baselines", "row": "gcivl", "column": "updates/s"}
    write_json(tmp_path / "speed.json", {"benchmarks": [entry, cell]})
    results = read_results(tmp_path)
    assert "| peak memory | 1,577 MiB | at most 2,000 MiB | a GPU |" in TABLES["speed"](results)
    assert "| gcivl | a GPU | 1,577 (at most 2,000) |" in TABLES["baseline-speed"](results)


def test_datasets_of_walkers_are_listed_and_others_left_out(tmp_path):
    figures = {
        "episodes": 5000, "mean_cells_net": 1, "mean_cells_farthest": 2, "upright_episodes": 1, "upright_states": 1,
        "mean_step": 0.1, "states_in_walls": 0, "free_cells_visited": 1,
    }  # fmt: skip
    names = ["antmaze-medium-stitch-v0", GIANT, "antmaze-that-nobody-knows-v0"]
    write_json(tmp_path / "data.json", {"datasets": {name: {"statistics": figures} for name in names}})
    lines = TABLES["ant-data"](read_results(tmp_path)).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| `{names[0]}`"]
    assert PRESETS[names[0]].domain.body.has_legs
