"""Tables of HumanoidMaze and AntSoccer, from made-up result files."""

from pathlib import Path

import pytest

from compdiffuser.evaluation.causes import CAUSES
from compdiffuser.files import write_json
from compdiffuser.reporting.grid import ANY, find
from compdiffuser.reporting.report import read_results
from compdiffuser.reporting.tables import TABLES

PUBLISHED = Path(__file__).parents[2] / "results" / "published.json"
LARGE, ARENA = "humanoidmaze-large-stitch-v0", "antsoccer-arena-stitch-v0"
OURS = {"method": "compdiffuser", "sampler": "default", "controller_horizon": None}


def write(folder: Path, name: str, success: float, **told) -> None:
    """A result file as `compdiffuser eval` writes it, over 5 × 5 × 20 episodes."""
    failed = round(500 - 5 * success)
    result = {
        "success": success, "std": 1.0, "data": "regenerated", "seeds": [0, 1, 2, 3, 4], "tasks": [1, 2, 3, 4, 5],
        "episodes": 500, "episodes_per_task": 20, "failures": {**dict.fromkeys(CAUSES, 0), "fallen": failed},
        "failed_episodes": [], "replans_per_episode": 0.0, "steps_mean": 700.0,
    }  # fmt: skip
    write_json(folder / f"{name}.json", result | told)


def within(limit: int, success: float) -> dict:
    return {str(limit): {"success": success, "std": 2.0, "success_by_seed": [success] * 5}}


def line(table: str, title: str) -> str:
    """Of a rendered table, the cells of a row."""
    (found,) = [row for row in table.splitlines() if row.startswith(f"| {title} |")]
    return found.removeprefix(f"| {title} | ").removesuffix(" |")


@pytest.fixture
def humanoids(tmp_path):
    (tmp_path / "published.json").write_text(PUBLISHED.read_text())
    told = {"dataset": LARGE, "steps_limit": 5000, "dims": 2, "planner": LARGE}
    ours = {**told, **OURS, "heading": "estimated"}
    write(tmp_path, f"{LARGE}-replan", 98, **ours, replan=True, within=within(2000, 88))
    write(tmp_path, f"{LARGE}-no-replan", 97, **ours, replan=False, within=within(2000, 87))
    write(tmp_path, f"{LARGE}-noise", 96, **ours | {"sampler": "noise", "replan": False}, within=within(2000, 86))
    # With more episodes than ours, they would take our place if they were taken for ours.
    true = {**ours, "heading": "true", "replan": True, "episodes": 501}
    write(tmp_path, f"{LARGE}-true-heading", 99, **true, within=within(2000, 89))
    ceiling = {"dataset": LARGE, "method": "compdiffuser", "steps_limit": 5000, "episodes": 502}
    write(tmp_path, f"{LARGE}-perfect", 94, **ceiling, cell="perfect", heading="estimated")
    write(tmp_path, f"{LARGE}-perfect-true-heading", 95, **ceiling, cell="perfect-true-heading", heading="true")
    write(tmp_path, f"{LARGE}-hiql", 30, dataset=LARGE, method="hiql", steps_limit=5000, within=within(2000, 25))
    return read_results(tmp_path)


def test_ants_told_whole_states_stand_beside_those_told_places_and_never_in_their_place(tmp_path):
    giant = "antmaze-giant-stitch-v0"
    told = {"dataset": giant, "steps_limit": 2000, "dims": 15, "planner": f"{giant}-15d", "replan": False, **OURS}
    write(tmp_path, "places", 97, **told, controller_dims=2, settings={"follow": "progress"})
    write(tmp_path, "noise", 50, **told | {"sampler": "noise"}, controller_dims=2, settings={"follow": "progress"})
    for way, success in (("progress", 90), ("phase", 91)):
        # With more episodes, they would take the place of what is told places if they were taken for it.
        whole = {"controller_dims": 15, "settings": {"follow": way}, "episodes": 501}
        write(tmp_path, way, success, **told, **whole)
    found = read_results(tmp_path)
    row = "antmaze-giant-stitch, 15D"
    assert line(TABLES["whole-states-parts"](found), row) == "50 ± 1 | 97 ± 1 | 90 ± 1 | 91 ± 1"
    for rise, success in ((False, 96), (True, 99)):
        write(tmp_path, f"{rise}", success, **told, controller_dims=2, settings={"follow": "progress", "rise": rise})
    assert line(TABLES["whole-states"](read_results(tmp_path)), row) == "– | – | 96 ± 1 | 99 ± 1 | –"


def test_ants_that_get_up_and_ants_that_stay_down_never_take_each_others_place(tmp_path):
    giant = "antmaze-giant-stitch-v0"
    told = {"dataset": giant, "steps_limit": 2000, "dims": 2, "planner": giant, **OURS}
    for replan in (False, True):
        for rise, success, episodes in ((True, 99, 500), (False, 97, 501), (None, 90, 502)):
            settings = {"follow": "progress"} | ({} if rise is None else {"rise": rise})
            more = {"replan": replan, "settings": settings, "episodes": episodes}
            write(tmp_path, f"{rise}-{replan}", success - replan, **told | more)
    found, row = read_results(tmp_path), "antmaze-giant-stitch"
    assert line(TABLES["antmaze"](found), row).endswith("| 97 ± 1 | 99 ± 1 | 98 ± 1")
    assert line(TABLES["whole-states"](found), f"{row}, 2D").endswith("| 97 ± 1 | 99 ± 1 | 98 ± 1")
    (tmp_path / "None-False.json").unlink()
    assert line(TABLES["success"](read_results(tmp_path)), row).endswith("| 97 ± 1")


def test_executing_is_a_line_for_each_way_with_metres_and_radians_by_moment(tmp_path):
    row = "antmaze-giant-stitch-v0-15d, by phase, controller of 15D"
    entries = [
        {"group": "executing", "row": row, "column": f"{what} after {moment}", "value": value}
        for moment in (200, 10)
        for what, value in (("place, m", 0.25), ("joints, rad", 0.5), ("torso, rad", moment / 100))
    ]
    write_json(tmp_path / "executing.json", {"benchmarks": entries})
    table = TABLES["executing"](read_results(tmp_path))
    assert table.splitlines()[0] == "| plan, way of following, controller | after 10 steps | after 200 steps |"
    assert line(table, row) == "0.25 · 0.50 · 0.10 | 0.25 · 0.50 · 2.00"


def test_humanoids_stand_at_both_limits_beside_what_was_published(humanoids):
    table = TABLES["humanoidmaze"](humanoids)
    assert line(table, "humanoidmaze-large-stitch, 5,000 steps") == "70 ± 3 | 72 ± 3 | 83 | 97 ± 1 | 98 ± 1"
    assert line(table, "humanoidmaze-large-stitch, 2,000 steps") == "– | – | – | 87 ± 2 | 88 ± 2"
    assert line(table, "humanoidmaze-medium-stitch, 5,000 steps") == "92 ± 1 | 91 ± 1 | 96 | – | –"
    assert line(table, "humanoidmaze-giant-stitch, 8,000 steps") == "5 ± 1 | 67 ± 4 | 89 | – | –"
    told = "Measured here: regenerated data, 5 seeds × 5 tasks × 20 episodes, 2,000 or 5,000 steps."
    assert told in table
    assert "Published: GAS (Baek et al., " in table


def test_parts_and_ceilings_of_humanoids_are_not_taken_for_results(humanoids):
    table = TABLES["humanoidmaze-parts"](humanoids)
    assert line(table, "humanoidmaze-large-stitch, 5,000 steps") == "96 ± 1 | 99 ± 1 | 94 ± 1 | 95 ± 1"
    assert line(table, "humanoidmaze-large-stitch, 2,000 steps") == "86 ± 2 | 89 ± 2 | – | –"
    assert "| humanoidmaze-large-stitch | 31 ± 3 | 70 ± 3 | 72 ± 3 | 97 ± 1 |" in TABLES["success"](humanoids)


def test_agents_of_humanoids_are_compared_at_equal_limits(humanoids):
    table = TABLES["humanoidmaze-baselines"](humanoids)
    assert line(table, "humanoidmaze-large-stitch, 5,000 steps") == "– | – | – | – | 31 ± 3 | 30 ± 1"
    assert line(table, "humanoidmaze-large-stitch, 2,000 steps") == "6 ± 3 | – | 1 ± 1 | – | 28 | 25 ± 2"
    assert line(table, "humanoidmaze-medium-stitch, 2,000 steps") == "29 ± 5 | – | 12 ± 2 | – | 88 | –"
    assert line(table, "humanoidmaze-giant-stitch, 4,000 steps") == "0 ± 0 | – | 0 ± 0 | – | 3 | –"


def test_failures_of_humanoids_are_counted_by_cause(humanoids):
    table = TABLES["humanoidmaze-failures"](humanoids)
    assert line(table, "humanoidmaze-large-stitch, one plan") == "500 | 485 | 0 | 15 | 0 | 0 | 0 | 0.00 | 700"
    ways = ["one plan", "replanning", "from pure noise", "true heading", "controller on perfect plans"]
    rows = [row.split(" | ")[0].rpartition(", humanoid")[2] for row in table.splitlines()[2:]]
    assert [row.removeprefix("| humanoidmaze-large-stitch, ") for row in rows][:5] == ways


@pytest.fixture
def soccer(tmp_path):
    (tmp_path / "published.json").write_text(PUBLISHED.read_text())
    told = {"dataset": ARENA, "steps_limit": 5000, "heading": None}
    for dims, name, plus in ((4, ARENA, 0), (17, f"{ARENA}-17d", 10)):
        ours = {**told, **OURS, "dims": dims, "planner": name}
        missed = {**dict.fromkeys(CAUSES, 0), "ball never reached": dims, "ball lost": 75 - dims}
        for rise, ending, more in ((True, "no-replan", plus), (False, "no-rise", plus - 5)):
            one = {**ours, "replan": False, "settings": {"rise": rise}}
            write(tmp_path, f"{name}-{ending}", 80 + more, **one, within=within(1000, 70 + more))
        again = {**ours, "replan": True, "settings": {"rise": True}}
        write(tmp_path, f"{name}-replan", 85, **again, failures=missed, within=within(1000, 75))
        write(tmp_path, f"{name}-gsc", 20 + plus, **ours | {"sampler": "gsc"}, replan=False)
    write(tmp_path, f"{ARENA}-experts", 100, dataset=ARENA, method="experts", cell="experts", steps_limit=1000)
    for kind, success in (("navigate", 93), ("dribble", 91)):
        told = {"dataset": ARENA, "method": "compdiffuser", "cell": f"recorded-{kind}", "steps_limit": 402}
        write(tmp_path, f"{ARENA}-recorded-{kind}", success, **told)
    write(tmp_path, f"{ARENA}-hiql", 33, dataset=ARENA, method="hiql", steps_limit=5000, within=within(1000, 31))
    return read_results(tmp_path)


def test_plans_of_four_and_of_seventeen_dimensions_have_rows_of_their_own(soccer):
    table = TABLES["antsoccer"](soccer)
    assert line(table, "antsoccer-arena-stitch, 4D, 5,000 steps") == "34 | 41 | 55 | 75 ± 1 | 80 ± 1 | 85 ± 1"
    assert line(table, "antsoccer-arena-stitch, 4D, 1,000 steps") == "– | – | – | 65 ± 2 | 70 ± 2 | 75 ± 2"
    assert line(table, "antsoccer-arena-stitch, 17D, 5,000 steps") == "34 | 65 | 69 | 85 ± 1 | 90 ± 1 | 85 ± 1"
    assert line(table, "antsoccer-arena-stitch, 17D, 1,000 steps") == "– | – | – | 75 ± 2 | 80 ± 2 | 75 ± 2"
    assert line(table, "antsoccer-medium-stitch, 4D, 5,000 steps") == "8 | 5 | 13 | – | – | –"
    assert line(table, "antsoccer-medium-stitch, 17D, 5,000 steps") == "8 | 12 | 17 | – | – | –"
    assert "5 seeds × 5 tasks × 20 episodes, 1,000 or 5,000 steps" in table
    assert "| antsoccer-arena-stitch, 17D | 34 | 65 | 69 | 85 ± 1 |" in TABLES["success"](soccer)
    assert "antsoccer-medium" not in TABLES["success"](soccer)  # nothing was measured


def test_ceilings_of_soccer_do_not_depend_on_what_is_planned(soccer):
    table = TABLES["antsoccer-parts"](soccer)
    assert line(table, "antsoccer-arena-stitch, 4D") == "20 ± 1 | – | 93 ± 1 | 91 ± 1 | 100 ± 1"
    assert line(table, "antsoccer-arena-stitch, 17D") == "30 ± 1 | – | 93 ± 1 | 91 ± 1 | 100 ± 1"
    assert line(table, "antsoccer-medium-stitch, 17D") == "– | – | – | – | –"
    agents = TABLES["antsoccer-baselines"](soccer)
    assert line(agents, "antsoccer-arena-stitch, 1,000 steps") == "– | – | – | – | – | 31 ± 2"


def test_failures_with_a_ball_have_causes_of_their_own(soccer):
    table = TABLES["antsoccer-failures"](soccer)
    assert "| infeasible plan | fallen | ball never reached | ball lost | lost | time out | unstable |" in table
    assert (
        line(table, "antsoccer-arena-stitch, 4D, replanning") == "500 | 425 | 0 | 0 | 4 | 71 | 0 | 0 | 0 | 0.00 | 700"
    )
    assert line(table, "antsoccer-arena-stitch, 17D, replanning").startswith("500 | 425 | 0 | 0 | 17 | 58 |")


def test_a_file_without_the_newer_fields_is_still_found(tmp_path):
    """As evaluations wrote them before they told dimensions, planner and heading, and counted falls."""
    old = {"infeasible plan": 1, "controller lost": 2, "time out": 0, "unstable simulation": 0}
    fell = {"cause": "controller lost", "decisions": [{"reason": "start"}, {"reason": "fallen"}]}
    told = {"dataset": LARGE, "steps_limit": 5000, **OURS, "replan": False}
    write(tmp_path, "old", 90, **told, failures=old, failed_episodes=[fell])
    results = read_results(tmp_path)
    assert "| 90 ± 1 |" in line(TABLES["humanoidmaze"](results), "humanoidmaze-large-stitch, 5,000 steps") + " |"
    ended = line(TABLES["humanoidmaze-failures"](results), "humanoidmaze-large-stitch, one plan")
    assert ended == "500 | 497 | 1 | 1 | 1 | 0 | 0 | 0.00 | 700"


def test_any_accepts_every_value_and_none():
    results = [{"a": 1}, {"a": 1, "b": 2, "episodes": 5}]
    assert find(results, {"a": 1, "b": ANY}) is results[1]
    assert find(results[:1], {"a": 1, "b": ANY}) is results[0]
    assert find(results, {"a": 2, "b": ANY}) is None


@pytest.mark.parametrize("name", [name for name in TABLES if name.startswith(("humanoidmaze", "antsoccer"))])
def test_tables_of_walkers_have_no_errors_with_published_figures_alone(name, tmp_path):
    (tmp_path / "published.json").write_text(PUBLISHED.read_text())
    assert "–" in TABLES[name](read_results(tmp_path))
