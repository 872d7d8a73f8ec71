import sys
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.image import imread
from oracle import OraclePlanner, oracle_plan
from PIL import Image

from compdiffuser.cli import main
from compdiffuser.data.mazes import maze
from compdiffuser.evaluation.pictures import Pictures, film
from compdiffuser.evaluation.replay import Recorder, replay
from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
from compdiffuser.experts.policy import load_expert
from compdiffuser.planning.follower import Following, PlanFollower
from compdiffuser.plotting.plans import chunk_colors
from compdiffuser.plotting.video import FPS, SECONDS, Shot, check_video, frames, thinned, write_video
from compdiffuser.presets import preset
from compdiffuser.types import UserError

POINT = preset("pointmaze-medium-stitch-v0")
UMAZE = preset("robotics-pointmaze-umaze-v0")
ANT = preset("antmaze-medium-stitch-v0")
GREEN, BROWN = (0.3, 0.6, 0.3), (0.7, 0.5, 0.3)  # PointMaze-v3's ball, OGBench's bodies


@pytest.fixture
def gl() -> None:
    try:
        check_video("any.gif")
    except UserError as error:
        pytest.skip(str(error))


class SteeredAnt:
    """A controller: the shipped expert, told the direction of the target."""

    look_ahead, spacing, stall, patience = 1.2, 0.3, 25, 100

    def __init__(self):
        self.expert, _ = load_expert("ant")

    def __call__(self, observations, targets):
        away = targets[:, :2] - observations[:, :2]
        directions = away / np.linalg.norm(away, axis=1, keepdims=True)
        return self.expert.act(np.concatenate([observations[:, 2:], directions], axis=1))


def follower(task) -> PlanFollower:
    controller = SteeredAnt() if task is ANT else None
    return PlanFollower(OraclePlanner(task.maze, spacing=0.02), task, Following(), controller)


def recorded(task, steps: int) -> tuple[Recorder, list[EpisodeResult]]:
    recorder = Recorder(follower(task))
    return recorder, evaluate(recorder, task, tasks=[1, 2], episodes=1, step_limit=steps, workers=1)


def body_at(frame: np.ndarray, color: tuple[float, ...]) -> np.ndarray:
    """Column and row of the middle of the pixels that have a body's hue."""
    hue = np.asarray(color) / np.linalg.norm(color)
    length = np.linalg.norm(frame.astype(float), axis=-1)
    rows, columns = np.nonzero((frame @ hue > 0.995 * length) & (length > 60))
    assert len(rows) > 20, "the body is not in the picture"
    return np.array([columns.mean(), rows.mean()])


@pytest.mark.parametrize("task", [POINT, UMAZE, ANT], ids=lambda task: task.environment)
def test_an_episode_is_played_again_as_it_was_and_the_recorder_changes_nothing(task):
    recorder, results = recorded(task, steps=60)
    alone = evaluate(follower(task), task, tasks=[1, 2], episodes=1, step_limit=60, workers=1)
    for row, (result, same) in enumerate(zip(results, alone, strict=True)):
        assert (result.success, result.steps, result.decisions) == (same.success, same.steps, same.decisions)
        _, positions = replay(task, result, recorder.actions(row, result.steps))
        np.testing.assert_array_equal(positions[:, :2], result.path)
        np.testing.assert_array_equal(result.path, same.path)
        np.testing.assert_array_equal(recorder.plans(row)[0][1].start, recorder.starts[row])


class Idle:
    """A policy without plans."""

    def reset(self, observations, goals):
        self.episodes = len(observations)

    def act(self, observations, active):
        return np.zeros((self.episodes, 1))


class Replans(Idle):
    """A policy that gives its second episode another plan with every action."""

    def reset(self, observations, goals):
        super().reset(observations, goals)
        self.plans = ["a", "b"]

    def act(self, observations, active):
        self.plans[1] += "+"
        return super().act(observations, active)


def test_every_plan_is_kept_with_its_step_and_a_policy_without_plans_has_none():
    recorder = Recorder(Replans())
    recorder.reset(np.zeros((2, 2)), np.ones((2, 2)))
    for _ in range(3):
        recorder.act(np.zeros((2, 2)), np.ones(2, bool))
    assert recorder.plans(0) == [(0, "a")]
    assert recorder.plans(1) == [(0, "b"), (0, "b+"), (1, "b++"), (2, "b+++")]
    assert recorder.actions(0, steps=2).shape == (2, 1)
    recorder = Recorder(Idle())
    recorder.reset(np.zeros((2, 2)), np.ones((2, 2)))
    recorder.act(np.zeros((2, 2)), np.ones(2, bool))
    assert recorder.plans(1) == []
    assert recorder.decisions is None


def test_the_ball_crosses_a_maze_that_is_in_view_as_a_whole(gl):
    """From the lower left by the right to the upper left."""
    recorder, results = recorded(UMAZE, steps=300)
    assert results[0].success
    model, positions = replay(UMAZE, results[0], recorder.actions(0, results[0].steps))
    shown = [0, len(positions) // 2, len(positions) - 1]
    shots = [Shot(positions[step], None) for step in shown]
    first, middle, last = (body_at(f, GREEN) for f in frames(model, shots, maze(UMAZE.maze), recorder.goals[0]))
    assert middle[0] - first[0] > 100
    assert first[1] - last[1] > 100
    assert middle[0] - last[0] > 60


def test_an_ant_walks_in_the_middle_of_the_picture_and_its_plan_lies_on_the_floor(gl):
    recorder, results = recorded(ANT, steps=80)
    model, positions = replay(ANT, results[0], recorder.actions(0, results[0].steps))
    chunks = recorder.plans(0)[0][1].chunks
    args = (maze(ANT.maze), recorder.goals[0], (320, 240))
    drawn = list(frames(model, [Shot(qpos, chunks) for qpos in positions[::10]], *args))
    assert [frame.shape for frame in drawn] == [(240, 320, 3)] * len(positions[::10])
    (bare,) = frames(model, [Shot(positions[0], None)], *args)
    on_floor = np.abs(drawn[0].astype(int) - bare).max(axis=-1)[100:] > 60  # below the map
    assert 100 < on_floor.sum() < 0.1 * on_floor.size
    for before, after in pairwise(drawn):
        assert before.std() > 20
        assert (np.abs(before.astype(int) - after) > 30).any(axis=-1).sum() > 200
    assert (np.abs(body_at(drawn[-1], BROWN) - (160, 120)) < 80).all()


def test_the_map_shows_the_plan_in_the_colours_of_the_pictures(gl):
    layout = maze("medium")
    plan = oracle_plan("medium", layout.center((1, 1)), layout.center((6, 6)))
    model, positions = replay(POINT, EpisodeResult(1, 0, 0, True, 0, None, np.zeros((1, 2))), np.zeros((0, 2)))
    (frame,) = frames(model, [Shot(positions[0], plan.chunks)], layout, plan.goal)
    corner = frame[:200, :200].reshape(-1, 3) / 255
    for color in chunk_colors(plan.n_chunks):
        assert (np.abs(corner - color[:3]).max(axis=1) < 0.12).any()


def test_long_episodes_are_sped_up_and_the_end_stays_for_a_second():
    assert thinned(100).tolist() == [*range(100), *[100] * FPS]
    for steps in (450, 451, 2000):
        shown = thinned(steps)
        assert len(shown) <= (SECONDS + 1) * FPS
        assert len(shown) > 0.5 * SECONDS * FPS
        assert (shown[0], shown[-1]) == (0, steps)
        assert len(set(np.diff(shown[:-FPS]))) == 1


def test_a_film_is_a_small_file_with_all_its_frames(gl, tmp_path):
    av = pytest.importorskip("av")
    recorder, results = recorded(POINT, steps=12)
    film(tmp_path / "deep" / "film.mp4", POINT, recorder, results, row=1)
    with av.open(str(tmp_path / "deep" / "film.mp4")) as container:
        pictures = [picture.to_ndarray(format="rgb24") for picture in container.decode(video=0)]
        assert container.streams.video[0].average_rate == FPS
    assert len(pictures) == 12 + FPS
    assert pictures[0].shape == (480, 640, 3)
    assert pictures[0].std() > 20
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["film.mp4"]
    assert (tmp_path / "deep" / "film.mp4").stat().st_size < 1_000_000


def test_a_gif_is_half_as_large_and_keeps_its_colours(tmp_path):
    picture = np.full((48, 64, 3), (234, 235, 238), np.uint8)
    picture[10:20, 10:20] = (204, 71, 120)
    write_video([picture] * 30, tmp_path / "film.gif")
    film = Image.open(tmp_path / "film.gif")
    assert film.size == (32, 24)
    pixels = np.asarray(film.convert("RGB"), int)
    assert np.abs(pixels[0, 0] - (234, 235, 238)).max() < 8
    assert np.abs(pixels[7, 7] - (204, 71, 120)).max() < 8


def test_panels_show_plans_and_outcomes_and_do_without_a_plan(tmp_path):
    recorder, results = recorded(POINT, steps=12)
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


def test_a_missing_encoder_or_opengl_is_told_with_what_helps(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UserError, match=r"pip install 'compdiffuser\[video\]'"):
        check_video("film.mp4")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setitem(sys.modules, "mujoco.egl", None)
    with pytest.raises(UserError, match=r"cannot draw a video without OpenGL .* apt install libegl1"):
        check_video("film.gif")


def test_the_task_to_be_filmed_must_be_evaluated():
    with pytest.raises(UserError, match="task 2 is not evaluated, so it cannot be filmed; evaluated: 1, 3"):
        Pictures(video_task=2).check_task(POINT, [1, 3])
    with pytest.raises(UserError, match="task 6 is not evaluated"):
        Pictures(video_task=6).check_task(POINT, None)
    Pictures(video_task=2).check_task(UMAZE, None)
    with pytest.raises(UserError, match="there is no --video"):
        Pictures(video_task=2).check()
