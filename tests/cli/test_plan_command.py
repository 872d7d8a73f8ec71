"""`compdiffuser plan`: what it prints, and what it refuses before the work."""

import json

import numpy as np
import pytest
from small_parts import small, small_planner

from compdiffuser.cli import main
from compdiffuser.planning.judge import TESTS
from compdiffuser.planning.planner import Planner

UMAZE = "robotics-pointmaze-umaze-v0"
ENDS = ["--start=-1,1", "--goal=-1,-1", "--device", "cpu"]
POOR = ["--chunks", "2", "--candidates", "1", "--steps", "1", "--scaffold", "none"]
"""Settings with which nothing is certified."""


@pytest.fixture
def nothing_is_loaded(monkeypatch):
    monkeypatch.setattr(Planner, "from_pretrained", lambda *given, **options: pytest.fail("a planner is loaded"))


def test_a_plan_that_is_not_certified_says_which_tests_it_failed(capsys):
    assert main(["plan", UMAZE, *ENDS, *POOR, "--json"]) == 3
    plan = json.loads(capsys.readouterr().out)
    assert not plan["ok"]
    failed = plan["verdict"]["failed"]
    assert failed
    assert main(["plan", UMAZE, *ENDS, *POOR]) == 3
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["verdict"].startswith("verdict   NOT certified: ")
    assert [test for test, reason in TESTS.items() if reason in lines["verdict"]] == failed
    assert lines["began"].startswith("began     from ")


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        (["--start", "0,0"], "--goal is missing: a plan needs --start and --goal, or --start-from-task"),
        (["--goal", "0,0"], "--start is missing"),
        (["--start-from-task", "1", "--goal", "0,0"], "leave out --start and --goal"),
        (["--start_from_task", "1", "--start-from-task", "2"], "--start-from-task is given twice"),
    ],
)
def test_ends_that_are_missing_or_given_twice_are_told(ends, sentence, nothing_is_loaded, capsys):
    assert main(["plan", UMAZE, *ends]) == 2
    assert sentence in capsys.readouterr().err


def test_a_plan_starts_from_a_task(capsys):
    assert main(["plan", UMAZE, "--start-from-task", "1", *POOR, "--device", "cpu", "--json"]) == 3
    plan = json.loads(capsys.readouterr().out)
    assert len(plan["start"]) == len(plan["goal"]) == 2
    assert main(["plan", UMAZE, "--start-from-task", "99", *POOR, "--device", "cpu"]) == 2
    assert "unknown task 99" in capsys.readouterr().err


def test_any_order_rule_score_and_blending_plans(capsys):
    options = ["--order", "sequential", "--rule", "heun", "--score", "overlap", "--blending", "linear"]
    main(["plan", UMAZE, *ENDS, *POOR, *options, "--json"])
    assert json.loads(capsys.readouterr().out)["n_chunks"] == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--order", "zigzag"], "unknown order 'zigzag'; choose one of parallel, autoregressive"),
        (["--rule", "leap"], "unknown step rule 'leap'; choose one of euler, heun"),
        (["--score", "overlp"], "unknown score 'overlp'; choose one of reconstruction, overlap"),
        (["--blending", "nope"], "unknown blending 'nope'; choose one of exponential, cosine, linear"),
        (["--wave", "0"], "a wave is a whole number of at least 1 candidate, not 0"),
        (["--steps", "0"], "steps must be at least 1, not 0"),
        (["--gif", "film.txt"], "a film of the denoising is a GIF; its name ends in .gif, not as 'film.txt' does"),
        (["--png", "plan.txt"], "cannot write a picture as '.txt', as 'plan.txt' asks"),
    ],
)
def test_wrong_options_are_one_sentence_before_the_work(options, sentence, nothing_is_loaded, capsys):
    assert main(["plan", UMAZE, *ENDS, *options]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(("option", "name"), [("--save", "p.npz"), ("--png", "p.png"), ("--gif", "p.gif")])
def test_a_path_that_cannot_be_written_is_refused_before_the_work(option, name, no_folder, nothing_is_loaded, capsys):
    assert main(["plan", UMAZE, *ENDS, option, str(no_folder / name)]) == 2
    assert f"compdiffuser: cannot write '{no_folder / name}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--start", "0", "--goal", "4,0"], "a start has 2 dimensions here"),
        (["--start", "x,0", "--goal", "4,0"], "the start must be numbers separated by commas, not 'x,0'"),
        (["--start", "0,0", "--goal", "400,4"], "lies outside the data"),
        (["--start", "0,0", "--goal", "8,0"], "the goal [8.0, 0.0] lies in a wall"),
        (["--start", "0,0", "--goal", "4,0", "--chunks", "0"], "must be at least 1, not 0"),
        (["--start", "0,0", "--goal", "4,0", "--chunks", "some"], "chunks must be 'auto' or a number, not 'some'"),
        (["--start", "0,0", "--goal", "4,0", "--candidates", "0"], "candidates must be at least 1, not 0"),
    ],
)
def test_problems_that_cannot_be_planned_are_one_sentence(arguments, sentence, capsys):
    assert main(["plan", "pointmaze-medium-stitch-v0", "--device", "cpu", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert sentence in error
    assert error.count("\n") == 0


@pytest.fixture(scope="module")
def soccer(tmp_path_factory) -> str:
    return str(small_planner(small("antsoccer-medium-stitch-v0"), tmp_path_factory.mktemp("soccer") / "planner"))


FOUR = "4 dimensions here (agent x, agent y, ball x, ball y)"


@pytest.mark.parametrize(
    ("start", "goal", "sentence"),
    [
        ("0,0", "4,4", f"a start has {FOUR}, but an array of (2,) was given"),
        ("0,0,4,4", "4,4,4", f"a goal has {FOUR} or 2 (ball x, ball y), but an array of (3,) was given"),
        ("0,0,8,0", "4,4", "the start's ball [8.0, 0.0] lies in a wall"),
        ("0,0,4,4", "8,0", "the goal's ball [8.0, 0.0] lies in a wall"),
        ("0,0,4,4", "4,4,8,0", "the goal's ball [8.0, 0.0] lies in a wall"),
    ],
)
def test_problems_with_a_ball_are_told_in_one_sentence(start, goal, sentence, soccer, capsys):
    assert main(["plan", soccer, "--device", "cpu", "--start", start, "--goal", goal]) == 2
    error = capsys.readouterr().err.strip()
    assert sentence in error
    assert error.count("\n") == 0


def test_a_goal_is_the_balls_place(soccer, tmp_path, capsys):
    files = ["--png", str(tmp_path / "plan.png"), "--gif", str(tmp_path / "plan.gif")]
    main(["plan", soccer, "--device", "cpu", "--start", "0,0,4,4", "--goal", "8,8", *POOR, *files, "--json"])
    plan = json.loads(capsys.readouterr().out)
    assert plan["goal"][2:] == [8, 8]
    assert {"steps", "ends", "contact"} <= set(plan["verdict"]["measures"])
    assert {path.name for path in tmp_path.iterdir()} >= {"plan.png", "plan.gif"}


def test_a_film_shows_no_chunk_before_its_turn(monkeypatch, tmp_path):
    films = []
    monkeypatch.setattr("compdiffuser.plotting.plans.animate_denoising", lambda frames, *_, **__: films.append(frames))
    main(["plan", UMAZE, *ENDS, *POOR, "--gif", str(tmp_path / "film.gif")])
    drawn = np.isfinite(films[0]).all(axis=(2, 3))  # by frame and chunk
    assert drawn[0].tolist() == [True, False]
    assert drawn[-1].all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--avoid", "blob:1"], "a region is written disc:x,y,r"),
        (["--avoid", "disc:-1,1,0.2"], "the start [-1.0, 1.0] lies in disc:-1,1,0.2"),
        (["--via", "there"], "a waypoint is written x,y"),
        (["--plans", "2", "--gif", "film.gif"], "--gif shows the denoising of one plan, not of 2"),
    ],
)
def test_what_cannot_steer_a_plan_is_told(options, said, capsys):
    assert main(["plan", UMAZE, *ENDS, *POOR, *options]) == 2
    assert said in capsys.readouterr().err


def test_a_plan_is_steered_by_several_regions_and_waypoints(capsys):
    steered = ["--avoid", "disc:9,9,1", "--avoid", "box:7,7,8,8@agent", "--via=1,0", "--margin", "0.1"]
    assert main(["plan", UMAZE, *ENDS, *POOR, *steered, "--json"]) == 3
    plan = json.loads(capsys.readouterr().out)
    assert plan["avoid"] == ["disc:9,9,1~0.1", "box:7,7,8,8@agent~0.1"]
    assert plan["via"] == ["1,0"]
    assert {"avoid", "via"} <= set(plan["verdict"]["measures"])


def test_fewer_plans_than_were_asked_for_are_told(capsys):
    assert main(["plan", UMAZE, *ENDS, *POOR, "--plans", "3"]) == 3
    assert "plans     1 of 3: no further certified one that takes another way was found" in capsys.readouterr().out
