"""`compdiffuser eval` of planners with other dimensions, with the true heading, and with parts that do not fit."""

import json
from pathlib import Path

import numpy as np
import pytest
from small_parts import small, small_controller, small_planner

from compdiffuser.cli import main
from compdiffuser.cli.summary import show
from compdiffuser.following.controllers import controller_for, seen_columns
from compdiffuser.planning.planner import Planner
from compdiffuser.presets import PRESETS
from compdiffuser.types import UserError
from compdiffuser.web.library import Library

ARENA, HUMANOID, ANT = "antsoccer-arena-stitch-v0", "humanoidmaze-medium-stitch-v0", "antmaze-medium-stitch-v0"
QUICK = ("--seeds", "1", "--tasks", "1", "--workers", "0", "--device", "cpu", "--candidates", "2", "--steps", "2")


@pytest.fixture
def shipped(tmp_path, monkeypatch) -> Path:
    """A folder that takes the place of the shipped planners and controllers."""
    folder = tmp_path / "pretrained"
    folder.mkdir()
    for user in ("files", "planning.checkpoint", "web.library", "following.controllers"):
        monkeypatch.setattr(f"compdiffuser.{user}.pretrained_folder", lambda: folder)
    return folder


def evaluated(capsys, *command: str) -> dict:
    capsys.readouterr()
    assert main(["eval", *command, *QUICK, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *command: str) -> str:
    capsys.readouterr()
    assert main(["eval", *command, *QUICK]) == 2
    return capsys.readouterr().err


@pytest.mark.slow
def test_planners_of_one_dataset_that_plan_other_dimensions_have_names_of_their_own(shipped, capsys, tmp_path):
    for folder, dims in ((ARENA, None), (f"{ARENA}-17d", 17)):
        small_planner(small(ARENA, dims), shipped / folder)
    small_controller(small(ARENA), shipped / "controllers" / ARENA)
    results = [evaluated(capsys, name, "--png", f"{name}.png") for name in (ARENA, f"{ARENA}-17d")]
    assert [result["dataset"] for result in results] == [ARENA, ARENA]
    assert [(result["planner"], result["dims"]) for result in results] == [(ARENA, 4), (f"{ARENA}-17d", 17)]
    assert [result["controller"] for result in results] == [f"pretrained/controllers/{ARENA}"] * 2
    assert all("ball never reached" in result["failures"] for result in results)
    assert evaluated(capsys, str(shipped / f"{ARENA}-17d"))["planner"] == f"{ARENA}-17d"
    show(results[1])
    assert f"{ARENA}, planner '{ARENA}-17d' of 17 dimensions: " in capsys.readouterr().out


def test_the_datasets_controller_reads_its_own_columns_of_a_wider_plan(shipped):
    small_controller(small(ARENA), shipped / "controllers" / ARENA)
    wide = small(ARENA, 17)
    controller = controller_for(wide)
    assert seen_columns(controller, wide) == [0, 1, 15, 16]
    assert seen_columns(controller, small(ARENA)) == [0, 1, 2, 3]
    small_controller(small(ANT), shipped / "controllers" / ANT)
    for dims in (15, 29):
        assert seen_columns(controller_for(small(ANT, dims)), small(ANT, dims)) == [0, 1]


@pytest.mark.parametrize(("dataset", "dims"), [(ARENA, 17), (ANT, 15)])
def test_a_planner_of_other_dimensions_plans_and_is_listed_by_its_folders_name(shipped, capsys, dataset, dims):
    name = f"{dataset}-{dims}d"
    assert name not in PRESETS
    small_planner(small(dataset, dims), shipped / name)
    library = Library(device="cpu")
    assert (library.names, library.source(name)) == ([name], name)
    assert (library.describe(name).dim, library.describe(name).drivable) == (dims, False)
    maze = library.get(name).preset.maze
    start, goal = (np.zeros(dims) for _ in range(2))
    for state, cell in ((start, maze.free_cells[0]), (goal, maze.free_cells[-1])):
        for columns in (group.columns for group in library.get(name).space.positions):
            state[list(columns)] = maze.center(cell)
    ends = ["--start", ",".join(map(str, start)), "--goal", ",".join(map(str, goal))]
    few = ["--candidates", "2", "--steps", "2", "--repeats", "1", "--device", "cpu"]
    assert main(["plan", name, *ends, *few, "--json", "--png", "plan.png"]) in (0, 3)
    assert np.shape(json.loads(capsys.readouterr().out)["states"])[1] == dims
    assert main(["plan", name, "--start", "0,0,0", "--goal", ends[3], *few]) == 2
    assert f"a start has {dims} dimensions here" in capsys.readouterr().err


@pytest.mark.parametrize(("dataset", "dims"), [(ARENA, 17), (ANT, 15)])
def test_a_simulator_adds_the_posture_in_which_a_body_starts(shipped, capsys, dataset, dims):
    name = f"{dataset}-{dims}d"
    small_planner(small(dataset, dims), shipped / name)
    few = ["--candidates", "1", "--steps", "1", "--repeats", "1", "--device", "cpu", "--json"]
    places = "0,0" if dataset == ANT else "0,0,4,0"
    starts = []
    for ends in (["--start", places, "--goal", "4,0"], ["--start-from-task", "1"]):
        assert main(["plan", name, *ends, *few]) in (0, 3)
        starts.append(json.loads(capsys.readouterr().out)["start"])
    for start in starts:
        assert len(start) == dims
        assert 0.4 < start[2] < 1, "an ant's height"
        assert sum(number**2 for number in start[3:7]) > 0.5, "its orientation"
    assert starts[0] != starts[1]


def test_a_planner_of_other_dimensions_that_is_not_there_is_told(shipped, capsys):
    small_planner(small(ARENA), shipped / ARENA)
    told = refused(capsys, f"{ARENA}-17d")
    assert f"unknown dataset '{ARENA}-17d'; did you mean '{ARENA}'?" in told


@pytest.mark.slow
def test_a_result_says_where_the_heading_came_from(shipped, capsys):
    small_planner(small(HUMANOID), shipped / HUMANOID)
    small_controller(small(HUMANOID), shipped / "controllers" / HUMANOID)
    estimated = evaluated(capsys, HUMANOID)
    assert (estimated["heading"], estimated["planner"], estimated["dims"]) == ("estimated", HUMANOID, 2)
    true = evaluated(capsys, HUMANOID, "--heading", "true", "--png", "tasks.png")
    assert (true["heading"], true["dataset"]) == ("true", HUMANOID)
    assert Path("tasks.png").exists()
    ended = [result["failed_episodes"][0]["ended_at"] for result in (estimated, true)]
    assert np.shape(ended) == (2, 2)
    assert "comparison" not in _shown(estimated, capsys)
    assert "the simulator told the heading: for comparison" in _shown(true, capsys)


def _shown(result, capsys) -> str:
    show(result)
    return capsys.readouterr().out


def test_a_true_heading_is_for_those_that_estimate_it(shipped, capsys):
    small_planner(small(ANT), shipped / ANT)
    small_controller(small(ANT), shipped / "controllers" / ANT)
    told = refused(capsys, ANT, "--heading", "true")
    assert f"a true heading replaces an estimate, and the controller of '{ANT}' needs none" in told
    assert "the body 'ant' observes its heading" in told
    assert "--heading belongs to planners, not to gcbc" in refused(capsys, ANT, "--method", "gcbc", "--heading", "true")


def test_a_heading_from_elsewhere_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["eval", ANT, "--heading", "compass"])
    assert "--heading" in capsys.readouterr().err


@pytest.mark.parametrize(("theirs", "body"), [(HUMANOID, "humanoid"), (ARENA, "ant-ball")])
def test_the_controller_of_another_body_is_refused_before_a_simulator_starts(
    theirs, body, shipped, capsys, tmp_path, monkeypatch
):
    small_planner(small(ANT), shipped / ANT)
    strange = small_controller(small(theirs), tmp_path / "strange")
    nothing = "compdiffuser.evaluation.environments.EnvironmentPool.__init__"
    monkeypatch.setattr(nothing, lambda *given: pytest.fail("no simulator is started"))
    told = refused(capsys, ANT, "--controller", str(strange))
    assert f"'{strange}' drives the body '{body}'; '{ANT}' moves 'ant'" in told


def test_a_controller_that_reads_what_is_not_planned_is_refused(shipped, capsys):
    small_planner(small(ARENA, 15), shipped / f"{ARENA}-15d")
    small_controller(small(ARENA), shipped / "controllers" / ARENA)
    told = refused(capsys, f"{ARENA}-15d")
    assert "the controller follows dimension 15 of an observation, which is not planned" in told


def test_a_planner_without_a_controller_says_which_command_makes_one(shipped, capsys):
    small_planner(small(ARENA, 17), shipped / f"{ARENA}-17d")
    told = refused(capsys, f"{ARENA}-17d")
    assert f"no controller is shipped for '{ARENA}'; train one with: compdiffuser train-controller {ARENA}" in told


def test_a_folder_that_is_no_controller_is_refused(shipped, capsys, tmp_path):
    planner = small_planner(small(ANT), shipped / ANT)
    assert f"'{planner}' holds a planner, not a controller" in refused(capsys, ANT, "--controller", str(planner))
    missing = tmp_path / "nothing"
    assert f"there is no controller at '{missing}'" in refused(capsys, ANT, "--controller", str(missing))


def test_an_observation_of_the_wrong_size_is_refused(shipped):
    small_controller(small(ANT), shipped / "controllers" / ANT)
    controller = controller_for(small(ANT))
    with pytest.raises(UserError, match="takes observations of 29, not 28"):
        controller(np.zeros((1, 28)), np.zeros((1, 2)))
    with pytest.raises(UserError, match=r"planned states of 2 numbers .* not of 4"):
        controller(np.zeros((1, 29)), np.zeros((1, 4)))
    planner = Planner.from_pretrained(small_planner(small(ARENA), shipped / ARENA), "cpu")
    with pytest.raises(UserError, match="there is no dimension 16"):
        planner.space.planned(np.zeros((1, 16)))
