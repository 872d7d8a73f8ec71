from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from compdiffuser.cli import main
from compdiffuser.data import generate, storage
from compdiffuser.data.explore import REDRAW
from compdiffuser.data.lockstep import alone
from compdiffuser.data.recipes import recipe
from compdiffuser.data.statistics import statistics
from compdiffuser.domains import World
from compdiffuser.domains.body import uprightness
from compdiffuser.experts.policy import experts_for
from compdiffuser.presets import Preset, preset
from compdiffuser.types import UserError

STITCH, EXPLORE = preset("antmaze-medium-stitch-v0"), preset("antmaze-medium-explore-v0")


class Trembling:
    """A steersman that hardly moves an ant and remembers what it was told."""

    name, actions, noise, limit = "trembling", 8, 0.05, 0.1

    def __init__(self) -> None:
        self.told: list[np.ndarray] = []

    def act(self, observations, directions):
        self.told.extend(directions.copy())
        return np.zeros((len(observations), 8))


def shortened(dataset: Preset, steps: int) -> Preset:
    return replace(dataset, recording=replace(dataset.recording, steps=steps))


@cache
def opened() -> World:
    return EXPLORE.domain.open()


def recorded(dataset: Preset, policy: Trembling, seed: int = 0) -> dict[str, np.ndarray]:
    return alone(recipe(dataset, [policy]).record(opened(), 0, np.random.default_rng(seed))).arrays()


def test_directions_are_redrawn_every_ten_steps():
    policy = Trembling()
    arrays = recorded(shortened(EXPLORE, 45), policy)
    assert {name: array.shape for name, array in arrays.items()} == {
        "observations": (45, 29), "actions": (45, 8), "qpos": (45, 15), "qvel": (45, 14),
    }  # fmt: skip
    told = np.array(policy.told)
    np.testing.assert_allclose(np.linalg.norm(told, axis=1), 1.0)
    changed = np.flatnonzero(np.abs(np.diff(told, axis=0)).max(axis=1) > 0) + 1
    np.testing.assert_array_equal(changed, np.arange(REDRAW, 45, REDRAW))
    again = recorded(shortened(EXPLORE, 45), Trembling())
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, again[name])


def test_an_ant_starts_in_free_cells_on_its_feet():
    first = np.stack([recorded(shortened(EXPLORE, 2), Trembling(), seed)["qpos"][0] for seed in range(20)])
    assert not EXPLORE.maze.in_wall(first[:, :2]).any()
    assert (uprightness(first[:, 3:7]) > 0).all()


def test_an_ant_is_steered_to_the_next_cell():
    policy = Trembling()
    maker = recipe(shortened(STITCH, 3), [policy])
    path = alone(maker.record_from((1, 1), opened(), np.random.default_rng(0))).arrays()["observations"][:, :2]
    assert maker.maze.cell(path[0]) == (1, 1)
    ahead = path[0] + 4 * policy.told[0]
    assert not maker.maze.in_wall(ahead)
    assert len(policy.told) == 3


def test_walking_needs_an_expert(tmp_path, monkeypatch, capsys):
    with pytest.raises(UserError, match="'antmaze-medium-stitch-v0' is walked by the ant expert, and none was given"):
        recipe(STITCH)
    monkeypatch.setattr("compdiffuser.experts.policy.pretrained_folder", lambda: tmp_path)
    assert main(["data", "make", "antmaze-medium-stitch-v0", "--episodes", "1"]) == 2
    told = capsys.readouterr().err
    assert told == "compdiffuser: no ant expert is shipped; train one with: compdiffuser data expert ant\n"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "length", "cells"), [(STITCH.name, 201, 3.5), (EXPLORE.name, 501, 0.3)])
def test_recorded_ants_meet_no_wall_and_no_episode_is_broken(tmp_path, name, length, cells):
    path = generate.make(name, 6, 1, out=tmp_path / "ant.npz", steersmen=experts_for(preset(name)))
    assert storage.manifest_of(path)["recipe"]["policy"].startswith("ant-expert-")
    episodes = storage.load(path)
    assert episodes.lengths.tolist() == [length] * 6
    fields = {"observations": 29, "actions": 8, "qpos": 15, "qvel": 14}
    for field, width in fields.items():
        array = getattr(episodes, field)
        assert array.shape == (6 * length, width)
        assert np.isfinite(array).all()
    np.testing.assert_allclose(episodes.observations, np.concatenate([episodes.qpos, episodes.qvel], 1), atol=1e-6)
    figures = statistics(episodes, preset(name))
    assert figures["states_in_walls"] == 0
    assert figures["largest_step"] < 0.5  # of a metre: nothing jumped
    assert figures["mean_cells_net"] >= cells
    assert figures["upright_states"] > 0.8
    assert np.abs(episodes.actions).max() < 1
