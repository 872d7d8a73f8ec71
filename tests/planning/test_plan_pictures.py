import numpy as np
import pytest
from matplotlib.image import imread
from oracle import oracle_plan
from PIL import Image

from compdiffuser.domains import Space
from compdiffuser.domains.mazes import maze
from compdiffuser.plotting.drawing import chunk_colors
from compdiffuser.plotting.plans import animate_denoising, plot_plan
from compdiffuser.types import UserError


@pytest.fixture
def plan():
    layout = maze("medium")
    return oracle_plan("medium", layout.center((1, 1)), layout.center((6, 6)))


def test_picture_shows_every_chunk_in_its_colour(plan, tmp_path):
    plan.plot(tmp_path / "plan.png", executed=plan.states[::40], title="a plan")
    pixels = imread(tmp_path / "plan.png")[..., :3].reshape(-1, 3)
    for color in chunk_colors(plan.n_chunks):
        assert (np.abs(pixels - color[:3]).max(axis=1) < 0.02).any()
    assert [path.name for path in tmp_path.iterdir()] == ["plan.png"]


def test_plan_without_a_maze_and_with_more_dimensions(tmp_path):
    chunks = np.random.default_rng(0).normal(size=(3, 20, 5))
    posture = Space.of(range(5))
    figure = plot_plan(chunks, space=posture, start=chunks[0, 0], goal=chunks[-1, -1], png=tmp_path / "own.svg")
    assert (tmp_path / "own.svg").read_text().lstrip().startswith("<?xml")
    assert figure.axes[0].get_aspect() == 1


def test_unknown_picture_format_is_named(plan, tmp_path):
    with pytest.raises(UserError, match=r"'\.bananas'"):
        plan.plot(tmp_path / "plan.bananas")


def test_film_has_all_frames_and_rests_on_the_last(plan, tmp_path):
    noise = np.random.default_rng(0).normal(size=plan.chunks.shape)
    frames = np.stack([plan.chunks + scale * noise for scale in (8, 2, 0)])
    animate_denoising(frames, tmp_path / "film.gif", maze=maze("medium"), start=plan.start, goal=plan.goal)
    film = Image.open(tmp_path / "film.gif")
    assert film.n_frames == 3
    film.seek(2)
    assert film.info["duration"] == 1500


def test_film_of_nothing_is_refused(tmp_path):
    with pytest.raises(UserError, match="frames"):
        animate_denoising(np.zeros((0, 2, 4, 2)), tmp_path / "film.gif")
