"""Pictures of datasets with something to move: who takes it along is told apart from who does not."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from meadow import BALL, FENCE
from PIL import Image

from compdiffuser.domains import PLANE
from compdiffuser.plotting.datasets import LYING, MOVED, MOVING, _far_apart, plot_dataset
from compdiffuser.types import Episodes

WALK = np.linspace([1.0, 1.0], [4.0, 3.0], 30)


def recorded(*balls: float) -> Episodes:
    """Episodes in which an agent walks and a ball is taken along for so many metres."""
    ways = [(WALK + 0.5 * number, np.linspace([2, 2], [2 + far, 2], 30)) for number, far in enumerate(balls)]
    states = np.concatenate([np.concatenate(way, axis=1) for way in ways]).astype(np.float32)
    return Episodes.from_terminals(states, states, np.arange(len(states)) % 30 == 29)


def share(png: Path, color: str) -> float:
    """Share of a picture's pixels that have a colour."""
    pixels = np.asarray(Image.open(png).convert("RGB")) / 255
    return float((np.abs(pixels - to_rgb(color)).max(axis=-1) < 0.08).mean())


@pytest.mark.parametrize(
    ("balls", "moves", "lies"), [((0.0,), False, True), ((2.0,), True, False), ((0.0, 2.0, MOVED / 2), True, True)]
)
def test_a_ball_that_moves_and_one_that_lies_have_colours_of_their_own(tmp_path, balls, moves, lies):
    plot_dataset(recorded(*balls), FENCE, BALL.space, tmp_path / "ball.png")
    assert (share(tmp_path / "ball.png", MOVING) > 0.001, share(tmp_path / "ball.png", LYING) > 0.001) == (moves, lies)


def test_highlighted_episodes_take_turns_and_lie_apart():
    paths = [np.array([[x, 0.0], [x, 0.0]]) for x in (0, 1, 10, 11, 5)]
    everyone, middle = np.ones(5, bool), np.arange(5) == 4
    assert _far_apart(paths, [everyone, everyone, everyone]) == [0, 3, 4]
    assert _far_apart(paths, [middle, everyone, middle]) == [4, 3], "there is no other in the middle"


@pytest.mark.parametrize("count", [5, 500])
def test_all_episodes_can_be_seen(tmp_path, count):
    """Besides the few that stand out."""
    starts = np.random.default_rng(0).uniform(0, 10, (count, 1, 2))
    states = (starts + np.linspace(0, 1, 20)[:, None] * np.array([1.0, 0.5])).reshape(-1, 2).astype(np.float32)
    episodes = Episodes.from_terminals(states, states, np.arange(len(states)) % 20 == 19)
    plot_dataset(episodes, None, PLANE, tmp_path / "all.png")
    pixels = np.asarray(Image.open(tmp_path / "all.png").convert("L"))
    inside = pixels[60:-60, 80:-40]
    assert (inside < 215).mean() > (0.004 if count == 5 else 0.08)
