import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from compdiffuser.cli import main
from compdiffuser.data import generate, storage
from compdiffuser.data.lockstep import alone, lockstep
from compdiffuser.data.recording import SIDE_BY_SIDE, Question
from compdiffuser.data.shards import ATTEMPTS, Shard, record_shard
from compdiffuser.domains.ogbench import OgbenchWorld
from compdiffuser.experts.policy import experts_for
from compdiffuser.presets import PRESETS, Preset, preset
from compdiffuser.types import Episodes, UserError

POINT = preset("pointmaze-medium-stitch-v0")


class Doubling:
    """Doubles what it is told and remembers how many rows it saw, and what was in them."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def act(self, observations, commands):
        self.seen.append(observations[:, 0].copy())
        return 2 * commands


def asking(steersman, lane, questions):
    """A lane that asks so many times and returns the answers."""
    answers = []
    for number in range(questions):
        answers.append((yield Question(steersman, np.array([lane + 1]), np.array([lane, number]))))
    return answers


def shortened(dataset: Preset, steps: int) -> Preset:
    return replace(dataset, recording=replace(dataset.recording, steps=steps))


def episodes(shard: Shard) -> dict[int, Episodes]:
    return dict(zip(shard.episodes, Episodes.from_terminals(**record_shard(shard).fields), strict=True))


def test_lanes_are_answered_together_each_in_its_own_row_until_the_last_ends():
    one, other = Doubling(), Doubling()
    lanes = [asking(one, 0, 3), asking(other, 1, 1), asking(one, 2, 2), asking(one, 3, 0)]
    results = lockstep(lanes)
    for lane, (answers, questions) in enumerate(zip(results, (3, 1, 2, 0), strict=True)):
        assert [list(answer) for answer in answers] == [[2 * lane, 2 * number] for number in range(questions)]
    assert [list(rows) for rows in one.seen] == [[1, 0, 3, 0], [1, 0, 3, 0], [1, 0, 3, 0]], "the last 3 is an old one"
    assert [list(rows) for rows in other.seen] == [[0, 2, 0, 0]]
    assert len(alone(asking(one, 0, 5))) == 5


@pytest.mark.parametrize(
    "name",
    ["antsoccer-arena-stitch-v0", pytest.param("humanoidmaze-medium-stitch-v0", marks=pytest.mark.slow)],
)
def test_an_episode_does_not_depend_on_those_beside_it(name):
    dataset = shortened(preset(name), 8)
    whole = Shard(dataset, "train", 0, SIDE_BY_SIDE + 4, 0, experts_for(dataset))
    expected = episodes(whole)
    for first, count in ((3, 1), (SIDE_BY_SIDE - 2, 5)):
        for number, episode in episodes(replace(whole, first=first, count=count)).items():
            for field in ("observations", "actions", "qpos", "qvel"):
                np.testing.assert_array_equal(getattr(episode, field), getattr(expected[number], field))


def test_a_manifest_tells_data_recorded_side_by_side_from_other():
    ant = preset("antmaze-medium-stitch-v0")
    assert generate.describe(ant, "train", 1, 0, experts_for(ant))["recipe"]["side_by_side"] == SIDE_BY_SIDE
    assert "side_by_side" not in generate.describe(POINT, "train", 1, 0)["recipe"]


class Fragile(OgbenchWorld):
    """Blows up, as MuJoCo says, in certain steps of its life."""

    def __init__(self, breaking) -> None:
        super().__init__("pointmaze-medium-v0")
        self.breaking, self.steps = breaking, 0

    def advance(self, action):
        self.steps += 1
        if self.steps in self.breaking:
            self.data.qpos[0] = 1e20
        return super().advance(action)


def fragile(name, breaking, monkeypatch) -> Preset:
    """A short dataset of a point whose world blows up."""
    domain = replace(POINT.domain, make=partial(Fragile, breaking))
    dataset = replace(shortened(POINT, 10), name=name, domain=domain)
    monkeypatch.setitem(PRESETS, name, dataset)
    return dataset


def test_an_episode_whose_simulation_blows_up_is_recorded_again(tmp_path, monkeypatch, capsys):
    fragile("fragile", {9 + 4, 9 + 6}, monkeypatch)  # in the second episode, and again
    out = tmp_path / "fragile.npz"
    assert main(["data", "make", "fragile", "--episodes", "3", "--workers", "1", "--out", str(out)]) == 0
    assert capsys.readouterr().out.endswith("simulations that blew up, and were recorded again: 2\n")
    assert json.loads(out.with_suffix(".json").read_text())["blown_up"] == 2
    assert storage.manifest_of(storage.validation_of(out))["blown_up"] == 0
    found, usual = storage.load(out), episodes(Shard(shortened(POINT, 10), "train", 0, 3, 0))
    assert found.lengths.tolist() == [10, 10, 10]
    assert not POINT.maze.in_wall(found.observations).any()
    same = [np.array_equal(found[e].observations, usual[e].observations) for e in range(3)]
    assert same == [True, False, True]


def test_a_simulation_that_always_blows_up_is_a_sentence(monkeypatch):
    dataset = fragile("broken", range(1000), monkeypatch)
    with pytest.raises(UserError, match=f"episode 7 of 'broken' blew up in each of {ATTEMPTS} simulations"):
        record_shard(Shard(dataset, "train", 7, 1, 0))
