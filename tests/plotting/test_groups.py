import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from meadow import BALL, FENCE

from compdiffuser.domains import PLANE, Group, Space
from compdiffuser.plotting.datasets import COLORS, plot_dataset
from compdiffuser.plotting.groups import planes, points, track_planes
from compdiffuser.plotting.output import check_gif, check_picture
from compdiffuser.plotting.plans import animate_denoising, plot_plan
from compdiffuser.types import Episodes, UserError

LINE = np.linspace([1, 1, 2, 1, 9], [4, 1, 5, 3, 9], 8)
WIDE = Space((0, 1, 4, 2, 3), (Group("agent", (0, 1)), Group("ball", (3, 4))))
"""Five planned dimensions, of which the ball's are the last."""


def test_a_space_says_which_columns_are_drawn():
    agent, ball = planes(WIDE, WIDE.planned(LINE))
    np.testing.assert_array_equal(agent, LINE[:, :2])
    np.testing.assert_array_equal(ball, LINE[:, 2:4])
    tracks = track_planes(WIDE, WIDE.places(WIDE.planned(LINE)))
    np.testing.assert_array_equal(tracks, [agent, ball])
    (alone,) = track_planes(WIDE, LINE[:, :2])
    np.testing.assert_array_equal(alone, agent)
    assert points(WIDE, WIDE.planned(LINE), None, WIDE.planned(LINE[0])).shape == (18, 2)


def test_a_line_has_no_picture():
    with pytest.raises(UserError, match="a picture needs x and y"):
        planes(Space.of((3,)), np.zeros((4, 1)))


def test_a_ball_is_drawn_dashed_with_marks_of_its_own():
    states = BALL.space.planned(LINE)
    drawn = plot_plan(states[None], space=BALL.space, maze=FENCE, start=states[0], goal=states[-1], executed=states)
    chunks = [each for each in drawn.axes[0].collections if isinstance(each, LineCollection)]
    assert [line.get_linestyle()[0][1] is None for line in chunks] == [True, False]
    assert [path.get_linestyle() for path in drawn.axes[0].lines] == ["-", "--"]
    marks = [each for each in drawn.axes[0].collections if isinstance(each, PathCollection)]
    np.testing.assert_allclose([mark.get_offsets()[0] for mark in marks], [[1, 1], [2, 1], [4, 1], [5, 3]])
    alone = plot_plan(LINE[None, :, :2], maze=FENCE, start=LINE[0, :2], goal=LINE[-1, :2])
    assert len(alone.axes[0].collections) == len(drawn.axes[0].collections) - 3


def test_a_denoising_shows_all_that_moves(tmp_path):
    frames = np.stack([LINE[None, :, :4]] * 2)
    both = animate_denoising(frames, tmp_path / "both.gif", space=BALL.space, maze=FENCE)
    alone = animate_denoising(frames[..., :2], tmp_path / "alone.gif", maze=FENCE)
    assert both.read_bytes() != alone.read_bytes()
    with pytest.raises(UserError, match=r"ends in \.gif, not as .*plan\.mp4"):
        animate_denoising(frames, tmp_path / "plan.mp4", space=BALL.space)


def test_a_dataset_shows_balls_beside_their_agents(tmp_path):
    episodes = Episodes.from_terminals(LINE, LINE, np.arange(8) == 7)
    plot_dataset(episodes, FENCE, BALL.space, tmp_path / "both.png")
    plot_dataset(episodes, FENCE, PLANE, tmp_path / "alone.png")
    assert (tmp_path / "both.png").read_bytes() != (tmp_path / "alone.png").read_bytes()
    plot_dataset(episodes, None, BALL.space, tmp_path / "regions.png", len(COLORS))
    with pytest.raises(UserError, match="there is no dimension 7"):
        plot_dataset(episodes, None, Space.of((0, 7)), tmp_path / "none.png")


def test_endings_of_pictures_and_films_are_checked():
    assert [check_picture(name) for name in ("plan", "plan.PNG", "plan.svg")] == ["png", "png", "svg"]
    with pytest.raises(UserError, match=r"cannot write a picture as '\.txt'"):
        check_picture("plan.txt")
    check_gif("film.GIF")
    for name in ("film.txt", "film", "film.mp4"):
        with pytest.raises(UserError, match=rf"ends in \.gif, not as '{name}' does"):
            check_gif(name)


@pytest.mark.parametrize("count", [3, 6])
def test_places_of_more_numbers_are_projected(count):
    space = Space.of(range(count), (Group("agent", tuple(range(count))),))
    (drawn,) = planes(space, np.eye(count))
    assert drawn.shape == (count, 2)
    assert len(np.unique(drawn.round(6), axis=0)) == count, "every number has a direction of its own"
    (drawn,) = planes(space, np.zeros((4, count)))
    np.testing.assert_array_equal(drawn, 0)
    if count == 3:
        np.testing.assert_allclose(planes(space, np.array([0, 0, 2.0]))[0], [0, 2], atol=1e-12)


@pytest.mark.parametrize("wrong", [LINE, LINE[:, :3], LINE[0, :2]])
def test_a_path_that_holds_no_positions_is_not_drawn(wrong):
    with pytest.raises(UserError, match=r"holds positions \[n, 2\] or \[n, 4\], not an array of shape"):
        track_planes(BALL.space, wrong)
