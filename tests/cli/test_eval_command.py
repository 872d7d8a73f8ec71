"""`compdiffuser eval` with a planner that knows the maze, and with shipped ones."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import tyro
from oracle import OraclePlanner

from compdiffuser.cli import main
from compdiffuser.cli.contestants import chosen_controller, plan_config
from compdiffuser.cli.evaluate import Eval
from compdiffuser.compose import ORDERS, SamplerConfig
from compdiffuser.evaluation import rollout
from compdiffuser.files import pretrained_folder
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.planner import Planner
from compdiffuser.presets import preset
from compdiffuser.types import UserError

MEDIUM = preset("pointmaze-medium-stitch-v0")
ANT = "antmaze-medium-stitch-v0"


class Oracle(OraclePlanner):
    """Stands in for a trained planner."""

    preset, device, record = MEDIUM, torch.device("cpu"), {"data": {"source": "official"}}
    space = MEDIUM.space
    config = PlanConfig()

    @property
    def scaffold(self):
        return self.preset.chunks.scaffold if self.config.scaffold == "auto" else self.config.scaffold


@pytest.fixture
def planner(monkeypatch) -> Oracle:
    oracle = Oracle("medium")

    def from_pretrained(name, device, config, compiled):
        oracle.config = config
        return oracle

    monkeypatch.setattr(Planner, "from_pretrained", from_pretrained)
    return oracle


@pytest.mark.slow
def test_json_goes_to_stdout_and_progress_to_stderr(planner, capsys, tmp_path):
    command = Eval(
        "any", tasks="1,3", episodes=1, seeds=2, workers=1, json=True, out=tmp_path / "r.json", plots=tmp_path
    )
    assert command.run() == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert result == json.loads((tmp_path / "r.json").read_text())
    assert (result["success"], result["std"], result["episodes"], result["seeds"]) == (100, 0, 4, [0, 1])
    assert (result["dataset"], result["sampler"], result["replan"]) == (MEDIUM.name, "default", True)
    assert (result["data"], result["steps_limit"], result["settings"]["candidates"]) == ("official", 1000, 256)
    assert "episodes at their goal" in printed.err
    assert {path.name for path in tmp_path.iterdir()} == {"r.json", "task1.png", "task3.png"}
    assert [call["seed"][0] for call in planner.calls] == [0, 1_000_000]


def test_an_evaluation_that_is_cut_off_says_so(planner, tmp_path, monkeypatch):
    """Before its first seed, between two, and not at its end; an old result does not pass for the new one."""
    out, held, evaluate = tmp_path / "r.json", [], rollout.evaluate
    out.write_text('{"complete": true, "success": 99.0}')

    def looking(*given, **named):
        held.append(json.loads(out.read_text()))
        return evaluate(*given, **named)

    monkeypatch.setattr(rollout, "evaluate", looking)
    assert Eval("any", tasks="1", episodes=1, seeds=2, workers=0, json=True, out=out).run() == 0
    held.append(json.loads(out.read_text()))
    assert [found["complete"] for found in held] == [False, False, True]
    assert [found.get("seeds") for found in held] == [None, [0], [0, 1]]
    assert "success" not in held[0]
    assert {found["dataset"] for found in held} == {MEDIUM.name}


@pytest.mark.slow
def test_pictures_of_the_first_seed_come_after_the_result(planner, capsys, tmp_path, monkeypatch):
    filmed = []
    monkeypatch.setattr("compdiffuser.plotting.video.check_video", filmed.append)
    monkeypatch.setattr("compdiffuser.plotting.scene_video.check_opengl", lambda: None)
    monkeypatch.setattr("compdiffuser.evaluation.pictures.film", lambda *given: filmed.append(given) or given[0])
    png, video = tmp_path / "all.png", tmp_path / "film.mp4"
    command = Eval("any", tasks="1,3", episodes=2, seeds=2, workers=1, png=png, video=video, video_task=3)
    assert command.run() == 0
    assert capsys.readouterr().out.endswith(f"pictures: {png} {video}\n")
    assert png.stat().st_size > 10_000
    checked, (path, task, recorder, results, row) = filmed
    assert (checked, path, task) == (video, video, MEDIUM)
    assert (results[row].seed, results[row].task, results[row].episode) == (0, 3, 0)
    assert recorder.plans(row)[0][1].maze is MEDIUM.maze


def test_tables_for_people_and_the_papers_sampler(planner, capsys):
    command = Eval("any", tasks="2", episodes=1, seeds=1, workers=1, sampler="gsc", guidance=1.5, replan=False)
    assert command.run() == 0
    assert "100.0 ± 0.0 % of goals reached" in capsys.readouterr().out
    assert planner.config.sampler == replace(SamplerConfig.paper("gsc"), guidance=1.5)
    assert planner.config.score == "overlap"
    assert (planner.calls[0]["n_chunks"], planner.calls[0]["n_candidates"]) == (MEDIUM.chunks.count, 40)


@pytest.mark.parametrize(("given", "meant"), [("0.3", 0.3), ("1", 1.0), ("none", "none"), ("auto", "auto")])
def test_a_scaffold_is_a_noise_level_or_a_word(given, meant):
    assert tyro.cli(Eval, args=["any", "--scaffold", given]).scaffold == meant


def test_another_word_is_no_scaffold(capsys):
    with pytest.raises(SystemExit):
        tyro.cli(Eval, args=["any", "--scaffold", "high"])
    assert "--scaffold" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "scaffold"),
    [
        ({}, "auto"),
        ({"scaffold": "none"}, None),
        ({"scaffold": 0.5}, 0.5),
        ({"sampler": "parallel"}, None),
        ({"sampler": "parallel", "scaffold": 0.5}, 0.5),
    ],
)
def test_the_scaffold_is_the_presets_unless_told_otherwise(options, scaffold):
    config = plan_config(Eval("any", steps=4, **options))
    assert (config.scaffold, config.sampler.steps) == (scaffold, 4)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_comes_with_the_papers_sampler(order):
    assert plan_config(Eval("any", sampler=order)) == PlanConfig.paper(order)


@pytest.mark.parametrize("name", ["paper", "authors"])
def test_the_papers_sampler_and_its_authors_have_names(name):
    config = plan_config(Eval("any", sampler=name))
    assert config == getattr(PlanConfig, name)()
    assert (config.sampler.order, config.sampler.steps, config.sampler.guidance) == ("autoregressive", 50, 2.0)
    assert config.sampler.unguided == {"paper": "nothing", "authors": "ends"}[name]


def test_another_sampler_is_refused_before_anything_is_loaded(capsys):
    assert main(["eval", "nothing-v0", "--sampler", "zigzag"]) == 2
    assert "unknown sampler 'zigzag'; choose one of default, paper, authors, parallel, " in capsys.readouterr().err


def test_a_result_says_from_what_its_plans_began(planner, capsys):
    assert Eval("any", tasks="1", episodes=1, seeds=1, workers=1, json=True, scaffold=0.5).run() == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["settings"]["scaffold"], result["sampler"]) == (0.5, "scaffold 0.5")


def test_a_planner_without_environment_is_told(planner, monkeypatch):
    monkeypatch.setattr(planner, "preset", replace(MEDIUM, domain=replace(MEDIUM.domain, make=None)), raising=False)
    monkeypatch.setattr(
        "compdiffuser.cli.contestants.chosen_controller", lambda *given: pytest.fail("one is asked for")
    )
    with pytest.raises(UserError, match=r"cannot be evaluated; .* --domain FILE\.py"):
        Eval("mine").run()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"seeds": 0}, "at least 1 seed, not 0"),
        ({"episodes": 0}, "at least 1 episode per task, not 0"),
        ({"candidates": 0}, "at least 1 candidate, not 0"),
        ({"chunks": "0"}, "'auto' or at least 1, not '0'"),
        ({"tasks": "1,x"}, "not '1,x'"),
        ({"tasks": "²"}, "not '²'"),
        ({"tasks": "2,1,2"}, "some are named twice in '2,1,2'"),
    ],
)
def test_bad_options_of_the_command_are_named(wrong, sentence):
    with pytest.raises(UserError, match=sentence):
        Eval("pointmaze-giant-stitch-v0", **wrong).run()


@pytest.mark.slow
def test_cached_plans_are_followed_again(tmp_path, capsys):
    command = Eval(
        "robotics-pointmaze-umaze-v0", tasks="1", episodes=1, seeds=1, workers=1, candidates=8, device="cpu",
        json=True, plans=tmp_path / "plans",
    )  # fmt: skip
    results, files = [], []
    for _ in range(2):
        assert command.run() == 0
        results.append(json.loads(capsys.readouterr().out))
        files.append({path: path.stat().st_mtime_ns for path in (tmp_path / "plans").rglob("*.npz")})
    first, again = results
    assert len(files[0]) == 1 + round(first["replans_per_episode"])
    assert files[0] == files[1]
    assert (first["success_by_seed"], first["steps_mean"]) == (again["success_by_seed"], again["steps_mean"])
    assert first["within"].keys() == {"300"}


@pytest.fixture
def here(tmp_path) -> Path:
    """A controller that was trained here: a copy of the shipped one."""
    folder = Path("runs") / f"{ANT}-controller"
    shutil.copytree(pretrained_folder() / "controllers" / ANT, folder)
    return folder


def test_a_controller_found_in_runs_is_named(here, capsys):
    assert chosen_controller(Eval(ANT), preset(ANT)).source == str(here)
    assert f"controller: {here}, trained here" in capsys.readouterr().err
    shutil.rmtree(here)
    shipped = pretrained_folder() / "controllers" / ANT
    assert chosen_controller(Eval(ANT), preset(ANT)).source == str(shipped)
    assert chosen_controller(Eval(ANT, controller=shipped), preset(ANT)).source == str(shipped)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_result_says_which_controller_drove(here, capsys):
    options = ["--tasks", "1", "--episodes", "1", "--seeds", "1", "--workers", "1", "--device", "cpu", "--no-replan"]
    assert main(["eval", ANT, *options, "--step-limit", "ogbench", "--candidates", "8", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["controller"] == str(here)
    assert f"controller: {here}" in printed.err


@pytest.mark.parametrize("option", ["--out", "--png", "--video", "--plots"])
def test_a_path_that_cannot_be_written_is_refused_before_the_work(option, no_folder, monkeypatch, capsys):
    monkeypatch.setattr(Planner, "from_pretrained", lambda *given, **options: pytest.fail("nothing is loaded"))
    ending = {"--out": "r.json", "--png": "r.png", "--video": "r.gif", "--plots": ""}[option]
    assert main(["eval", MEDIUM.name, option, str(no_folder / ending)]) == 2
    assert f"compdiffuser: cannot write '{no_folder}" in capsys.readouterr().err


def test_shares_of_gpus_are_for_ray(capsys):
    assert main(["eval", MEDIUM.name, "--gpus", "2"]) == 2
    assert "a share of 2 GPUs is for --engine ray" in capsys.readouterr().err
