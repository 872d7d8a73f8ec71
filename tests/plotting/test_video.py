import sys
from itertools import pairwise

import numpy as np
import pytest
from followers import oracle_follower
from meadow import BALL, FENCE
from oracle import oracle_plan
from PIL import Image

from compdiffuser.evaluation.problems import Task
from compdiffuser.evaluation.replay import Recorder, Replayed, replay
from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
from compdiffuser.plotting.map_video import map_frames
from compdiffuser.plotting.plans import chunk_colors
from compdiffuser.plotting.scene_video import check_opengl, scene_frames
from compdiffuser.plotting.video import FPS, SECONDS, Shot, check_video, thinned, write_video
from compdiffuser.presets import preset
from compdiffuser.types import Array, UserError

POINT = preset("pointmaze-medium-stitch-v0")
UMAZE = preset("robotics-pointmaze-umaze-v0")
ANT = preset("antmaze-medium-stitch-v0")
GREEN, BROWN = (0.3, 0.6, 0.3), (0.7, 0.5, 0.3)  # PointMaze-v3's ball, OGBench's bodies


def driven(task, steps: int) -> tuple[Replayed, Array, EpisodeResult]:
    """The first task, played again; the plan's chunks; how it ended."""
    recorder = Recorder(oracle_follower(task))
    (result,) = evaluate(recorder, task, tasks=[1], episodes=1, step_limit=steps, workers=0)
    played = replay(task.domain, result.problem, recorder.actions(0, result.steps))
    return played, recorder.plans(0)[0][1].chunks, result


def shots(played: Replayed, steps, chunks) -> list[Shot]:
    return [Shot(played.observations[step, :2], chunks, played.qpos[step]) for step in steps]


def ends(played: Replayed) -> tuple[Array, Array]:
    return played.observations[0, :2], played.observations[-1, :2]


def body_at(frame: np.ndarray, color: tuple[float, ...]) -> np.ndarray:
    """Column and row of the middle of the pixels that have a body's hue."""
    hue = np.asarray(color) / np.linalg.norm(color)
    length = np.linalg.norm(frame.astype(float), axis=-1)
    rows, columns = np.nonzero((frame @ hue > 0.995 * length) & (length > 60))
    assert len(rows) > 20, "the body is not in the picture"
    return np.array([columns.mean(), rows.mean()])


def test_the_ball_crosses_a_maze_that_is_in_view_as_a_whole(gl):
    """From the lower left by the right to the upper left."""
    played, _, result = driven(UMAZE, steps=300)
    assert result.success
    shown = [0, result.steps // 2, result.steps]
    frames = scene_frames(played.model, shots(played, shown, None), UMAZE.maze, *ends(played))
    first, middle, last = (body_at(frame, GREEN) for frame in frames)
    assert middle[0] - first[0] > 100
    assert first[1] - last[1] > 100
    assert middle[0] - last[0] > 60


def test_an_ant_walks_in_the_middle_of_the_picture_and_its_plan_lies_on_the_floor(gl):
    played, chunks, _ = driven(ANT, steps=80)
    args = (ANT.maze, *ends(played), ANT.space, (320, 240))
    drawn = list(scene_frames(played.model, shots(played, range(0, 81, 10), chunks), *args))
    assert [frame.shape for frame in drawn] == [(240, 320, 3)] * 9
    (bare,) = scene_frames(played.model, shots(played, [0], None), *args)
    on_floor = np.abs(drawn[0].astype(int) - bare).max(axis=-1)[100:] > 60  # below the map
    assert 100 < on_floor.sum() < 0.1 * on_floor.size
    for before, after in pairwise(drawn):
        assert before.std() > 20
        assert (np.abs(before.astype(int) - after) > 30).any(axis=-1).sum() > 200
    assert (np.abs(body_at(drawn[-1], BROWN) - (160, 120)) < 80).all()


def test_the_map_shows_the_plan_in_the_colours_of_the_pictures(gl):
    layout = POINT.maze
    plan = oracle_plan("medium", layout.center((1, 1)), layout.center((6, 6)))
    played = replay(POINT.domain, Task(1, 0), np.zeros((0, 2)))
    (frame,) = scene_frames(played.model, shots(played, [0], plan.chunks), layout, plan.start, plan.goal)
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


def test_a_gif_is_half_as_large_and_keeps_its_colours(tmp_path):
    picture = np.full((48, 64, 3), (234, 235, 238), np.uint8)
    picture[10:20, 10:20] = (204, 71, 120)
    write_video([picture] * 30, tmp_path / "film.gif")
    film = Image.open(tmp_path / "film.gif")
    assert film.size == (32, 24)
    pixels = np.asarray(film.convert("RGB"), int)
    assert np.abs(pixels[0, 0] - (234, 235, 238)).max() < 8
    assert np.abs(pixels[7, 7] - (204, 71, 120)).max() < 8


def test_a_missing_encoder_or_opengl_is_told_with_what_helps(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UserError, match=r"in your clone: pip install .*'\.\[video\]'"):
        check_video("film.mp4")
    check_video("film.gif")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setitem(sys.modules, "mujoco.egl", None)
    with pytest.raises(UserError, match=r"cannot draw a video without OpenGL .* apt install libegl1"):
        check_opengl()


def test_the_map_has_room_for_all_that_moves_and_keeps_its_shape():
    """A wide world and a high one, without walls."""
    for far in ([8.0, 2.0], [2.0, 8.0]):
        places = np.linspace([0, 0], far, 5)
        taken = [Shot(place, places[None]) for place in places]
        pictures = list(map_frames(taken, None, places[0], places[-1], size=(320, 240)))
        assert [picture.shape for picture in pictures] == [(240, 320, 3)] * 5
        inked = np.abs(pictures[-1].astype(int) - (31, 36, 48)).max(axis=-1) < 40
        assert inked.sum() > 20


def test_a_ball_leaves_a_track_of_its_own():
    places = np.concatenate([np.linspace([1, 1], [5, 1], 9), np.linspace([1, 3], [5, 3], 9)], axis=1)
    taken = [Shot(place, None) for place in places]
    with_ball = list(map_frames(taken, FENCE, places[0], places[-1], BALL.space))[-1].astype(int)
    alone = list(map_frames([Shot(place[:2], None) for place in places], FENCE, places[0], places[-1]))[-1]
    height = len(alone) // 2
    changed = np.abs(with_ball - alone).max(axis=-1) > 60
    assert changed[:height].sum() > 500  # y points up: the ball is in the upper half
    assert changed[height + 40 :].sum() < 50
