from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from followers import oracle_follower
from matplotlib.image import imread
from meadow import BALL, FENCE, WALK, Herder
from PIL import Image

from compdiffuser.cli import main
from compdiffuser.evaluation.pictures import Pictures, film
from compdiffuser.evaluation.replay import Recorder
from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
from compdiffuser.planning.plan import Plan
from compdiffuser.plotting.plans import chunk_colors
from compdiffuser.plotting.video import FPS
from compdiffuser.presets import Preset, preset
from compdiffuser.types import UserError

POINT = preset("pointmaze-medium-stitch-v0")
UMAZE = preset("robotics-pointmaze-umaze-v0")


def drawn(steps: int) -> tuple[Recorder, list[EpisodeResult]]:
    recorder = Recorder(oracle_follower(POINT))
    return recorder, evaluate(recorder, POINT, tasks=[1, 2], episodes=1, step_limit=steps, workers=0)


class Planning(Herder):
    """A herder that also says what it plans: straight lines."""

    def __init__(self, task: Preset):
        self.task = task

    def reset(self, observations, goals):
        super().reset(observations, goals)
        space, maze = self.task.space, self.task.maze
        ends = zip(space.planned(observations), space.planned(goals), strict=True)
        lines = [np.linspace(*pair, 20) for pair in ends]
        self.plans = [Plan(line, line[None], line[0], line[-1], 0, space=space, maze=maze) for line in lines]


@pytest.mark.parametrize("maze", [FENCE, None], ids=["maze", "no maze"])
@pytest.mark.parametrize("task", [BALL, WALK], ids=["ball", "agent alone"])
def test_a_world_without_a_scene_is_drawn_and_filmed_on_its_map(task, maze, tmp_path, monkeypatch):
    monkeypatch.setattr("compdiffuser.plotting.scene_video.scene_frames", None)  # MuJoCo is not asked
    task = replace(task, domain=replace(task.domain, maze=maze))
    recorder = Recorder(Planning(task))
    results = evaluate(recorder, task, tasks=[2], workers=0)
    pictures = Pictures(tmp_path / "tasks", tmp_path / "all.png", tmp_path / "film.gif")
    pictures.check_task(task, [2])
    assert pictures.draw(task, recorder, results, "a title") == [
        tmp_path / "tasks" / "task2.png", tmp_path / "all.png", tmp_path / "film.gif",
    ]  # fmt: skip
    film = Image.open(tmp_path / "film.gif")
    assert film.size == (320, 240)
    assert film.n_frames > results[0].steps // 3
    first = np.asarray(film.convert("RGB"), int)
    film.seek(film.n_frames - 1)
    last = np.asarray(film.convert("RGB"), int)
    assert (np.abs(first - last).max(axis=-1) > 60).sum() > 100  # it has moved
    plan_color = 255 * chunk_colors(1)[0][:3]
    assert (np.abs(first - plan_color).max(axis=-1) < 40).sum() > 50


def test_films_of_placements_begin_where_the_agent_was_put(tmp_path):
    recorder = Recorder(Herder())
    results = evaluate(recorder, WALK, workers=0, placements=[(np.array([5.0, 1.0]), np.array([1.0, 1.0]))])
    film(tmp_path / "film.gif", WALK, recorder, results, row=0)
    with pytest.raises(UserError, match="task 1 cannot be filmed"):
        film(tmp_path / "none.gif", WALK, recorder, [replace(results[0], problem=None)], row=0)


@pytest.mark.slow
def test_a_film_is_a_small_file_with_all_its_frames(gl, tmp_path):
    av = pytest.importorskip("av")
    recorder, results = drawn(steps=12)
    film(tmp_path / "deep" / "film.mp4", POINT, recorder, results, row=1)
    with av.open(str(tmp_path / "deep" / "film.mp4")) as container:
        pictures = [picture.to_ndarray(format="rgb24") for picture in container.decode(video=0)]
        assert container.streams.video[0].average_rate == FPS
    assert len(pictures) == 12 + FPS
    assert pictures[0].shape == (480, 640, 3)
    assert pictures[0].std() > 20
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["film.mp4"]
    assert (tmp_path / "deep" / "film.mp4").stat().st_size < 1_000_000


def test_panels_show_plans_and_outcomes_and_do_without_a_plan(tmp_path):
    recorder, results = drawn(steps=12)
    Pictures(png=tmp_path / "with.png").draw(POINT, recorder, results, "a title")
    recorder._plans = [[], []]
    Pictures(png=tmp_path / "without.png").draw(POINT, recorder, results, "a title")
    with_plan, without = (imread(tmp_path / name)[..., :3] for name in ("with.png", "without.png"))
    assert with_plan.shape == without.shape
    color = chunk_colors(4)[1][:3]
    near = [(np.abs(picture - color).max(axis=-1) < 0.02).sum() for picture in (with_plan, without)]
    assert near[0] > 100
    assert near[1] == 0
    assert (np.abs(without - (0xB3 / 255, 0x26 / 255, 0x1E / 255)).max(axis=-1) < 0.02).any()  # both failed, in red


@pytest.mark.parametrize("options", [["--video", "film.avi"], ["--video", "film"], ["--png", "all.bananas"]])
def test_a_wrong_ending_is_told_before_any_work(options, capsys):
    assert main(["eval", "no-such-planner", *options]) == 2
    told = capsys.readouterr().err
    assert "'" + options[1] + "'" in told
    assert "no-such-planner" not in told


def test_the_task_to_be_filmed_must_be_evaluated():
    with pytest.raises(UserError, match="task 2 is not evaluated, so it cannot be filmed; evaluated: 1, 3"):
        Pictures(video_task=2).check_task(POINT, [1, 3])
    with pytest.raises(UserError, match="task 6 is not evaluated"):
        Pictures(video_task=6).check_task(POINT, None)
    Pictures(video_task=2).check_task(UMAZE, None)
    with pytest.raises(UserError, match="there is no --video"):
        Pictures(video_task=2).check()


def test_a_film_of_a_scene_needs_opengl_and_one_of_a_map_does_not(monkeypatch):
    def none():
        raise UserError("no OpenGL")

    monkeypatch.setattr("compdiffuser.plotting.scene_video.check_opengl", none)
    with pytest.raises(UserError, match="no OpenGL"):
        Pictures(video=Path("film.gif")).check_task(POINT, None)
    Pictures(video=Path("film.gif")).check_task(WALK, None)
    Pictures(video_task=1).check_task(POINT, None)


@pytest.mark.parametrize("asked", [{"png": "all.png"}, {"video": "film.gif"}, {"plots": "tasks"}])
def test_a_path_that_cannot_be_written_is_told_before_any_work(asked, tmp_path):
    (tmp_path / "file").write_text("in the way")
    given = {name: tmp_path / "file" / path for name, path in asked.items()}
    with pytest.raises(UserError, match="file"):
        Pictures(**given).check()
