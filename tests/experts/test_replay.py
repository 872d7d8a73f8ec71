import numpy as np
import pytest
import torch

from compdiffuser.experts.replay import Replay, Sizes
from compdiffuser.types import UserError

SIZES = Sizes(observation=3, action=2, direction=2)
CPU = torch.device("cpu")


def transitions(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, sum(SIZES.fields))).astype(np.float32)


def test_the_newest_transitions_are_kept_and_outlive_the_run(tmp_path):
    rows = transitions(25)
    replay = Replay(tmp_path / "replay.bin", 10, SIZES, CPU)
    for first in range(0, 25, 5):
        replay.add(rows[first : first + 5])
    again = Replay(tmp_path / "replay.bin", 10, SIZES, CPU, count=replay.count)
    assert sorted(again.rows[:, 0].tolist()) == sorted(rows[-10:, 0].tolist())
    assert float(again.filled) == 10


def test_only_what_was_added_is_drawn(tmp_path):
    replay = Replay(tmp_path / "replay.bin", 100, SIZES, CPU)
    replay.add(transitions(4))
    drawn = replay.sample(500, torch.Generator().manual_seed(0))
    assert set(drawn.states[:, 0].tolist()) == set(replay.rows[:4, 0].tolist())


def test_rewards_belong_to_the_direction_that_a_batch_shows(tmp_path):
    replay = Replay(tmp_path / "replay.bin", 50, SIZES, CPU)
    rows = transitions(50)
    rows[:, 3:6] = rows[:, :3]  # the next observation is the same, so that states tell the row
    replay.add(rows)
    for relabel, commanded in ((0.0, 400), (1.0, 0), (0.5, 200)):
        batch = replay.sample(400, torch.Generator().manual_seed(0), relabel=relabel, scale=3.0)
        index = (batch.states[:, :1] == replay.rows[:, 0]).float().argmax(1)
        shown, push = batch.states[:, 3:], replay.rows[index, 10:12]
        torch.testing.assert_close(batch.rewards, 3 * (replay.rows[index, 12] + (push * shown).sum(1)))
        torch.testing.assert_close(batch.following, batch.states)
        same = int((shown == replay.rows[index, 8:10]).all(1).sum())
        assert abs(same - commanded) < 50
        if relabel == 1.0:
            torch.testing.assert_close(shown.norm(dim=1), torch.ones(400))


def test_haste_is_worth_no_more_than_the_most(tmp_path):
    replay = Replay(tmp_path / "replay.bin", 50, SIZES, CPU)
    rows = transitions(50)
    rows[:, 12] = 0  # base
    replay.add(rows)
    free, limited = (replay.sample(200, torch.Generator().manual_seed(0), most=m).rewards for m in (None, 0.5))
    assert free.max() > 0.5
    torch.testing.assert_close(limited, free.clamp(max=0.5))


def test_a_run_without_its_transitions_is_told(tmp_path):
    with pytest.raises(UserError, match=r"cannot go on without its transitions in replay\.bin"):
        Replay(tmp_path / "replay.bin", 10, SIZES, CPU, count=5)
    Replay(tmp_path / "replay.bin", 10, SIZES, CPU)
    with pytest.raises(UserError, match="does not hold 20 transitions of 14 numbers"):
        Replay(tmp_path / "replay.bin", 20, SIZES, CPU, count=5)
