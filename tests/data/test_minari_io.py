import gymnasium
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer

from compdiffuser.cli import main
from compdiffuser.data.minari_io import from_minari, to_minari
from compdiffuser.data.storage import load
from compdiffuser.files import read_json
from compdiffuser.types import Episodes, UserError


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def test_round_trip_is_exact(small):
    episodes = load(small)[:5]
    to_minari(episodes, "maze/small-v0")
    again = load("minari:maze/small-v0")
    for name in ("observations", "actions", "starts", "lengths", "qpos", "qvel"):
        expected, found = getattr(episodes, name), getattr(again, name)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def test_the_clock_is_kept():
    episodes = Episodes.from_lists([np.ones((4, 2)), np.ones((3, 2))], [np.ones((4, 1)), np.ones((3, 1))], rate=10)
    to_minari(episodes, "own/clock-v0")
    again = from_minari("own/clock-v0")
    np.testing.assert_array_equal(again.times, episodes.times)
    assert again.step_seconds == pytest.approx(0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("few_windows")
def test_a_planner_is_trained_from_minari(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    to_minari(load(small)[:5], "maze/small-v0")
    assert main(["train", "minari:maze/small-v0", "--steps", "2", "--batch", "4", "--width", "32", "--depth", "1"]) == 0
    record = read_json(tmp_path / "runs" / "maze-small-v0-compdiffuser" / "config.json")["record"]
    assert record["data"] == {"name": "minari:maze/small-v0", "source": "minari"}
    assert main(["data", "info", "minari:maze/small-v0"]) == 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_foreign_dataset_with_dictionaries_loads():
    observations = {"observation": np.ones((4, 3), np.float32), "achieved_goal": np.zeros((4, 2), np.float32)}
    box = gymnasium.spaces.Box
    minari.create_dataset_from_buffers(
        "own/goals-v0",
        [
            EpisodeBuffer(
                observations=observations,
                actions=np.full((3, 2), 0.5, np.float32),
                rewards=[0.0] * 3,
                terminations=[False] * 3,
                truncations=[False, False, True],
                infos={"times": np.zeros(4)},
            )
        ],
        observation_space=gymnasium.spaces.Dict(
            observation=box(-9, 9, (3,), np.float32), achieved_goal=box(-9, 9, (2,), np.float32)
        ),
        action_space=box(-1, 1, (2,), np.float32),
    )
    episodes = from_minari("own/goals-v0")
    assert episodes.observations.shape == (4, 3)
    np.testing.assert_array_equal(episodes.actions[:, 0], [0.5, 0.5, 0.5, 0.0])
    assert episodes.qpos is None
    assert episodes.times is None


def test_what_is_no_vector_is_named():
    box = gymnasium.spaces.Box
    minari.create_dataset_from_buffers(
        "own/discrete-v0",
        [
            EpisodeBuffer(
                observations=np.ones((4, 3), np.float32), actions=np.zeros(3, np.int64), rewards=[0.0] * 3,
                terminations=[False] * 3, truncations=[False, False, True],
            )
        ],
        observation_space=box(-9, 9, (3,), np.float32), action_space=gymnasium.spaces.Discrete(2),
    )  # fmt: skip
    with pytest.raises(UserError, match=r"'own/discrete-v0': field 'actions' has shape \[4\], expected \[S, dim"):
        from_minari("own/discrete-v0")


def test_mistakes_are_named(three):
    with pytest.raises(UserError, match="Minari dataset 'no/such-v0' cannot be loaded"):
        from_minari("no/such-v0")
    with pytest.raises(UserError, match="at least 2 states, the shortest here has 1"):
        to_minari(three, "own/short-v0")
    to_minari(three[:1], "own/once-v0")
    with pytest.raises(UserError, match="'own/once-v0' exists already"):
        to_minari(three[:1], "own/once-v0")
