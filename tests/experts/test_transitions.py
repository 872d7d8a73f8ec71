import numpy as np
import pytest
import torch

from compdiffuser.experts.layout import Layout
from compdiffuser.experts.replay import Replay
from compdiffuser.types import UserError

LAYOUT = Layout(view=3, action=2, going_on=1)
CPU = torch.device("cpu")


def transitions(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, LAYOUT.width)).astype(np.float32)


def test_rows_have_named_parts():
    rows = transitions(4)
    parts = LAYOUT.split(rows)
    np.testing.assert_array_equal(np.concatenate(list(parts.values()), axis=1), rows)
    assert parts["action"].shape == (4, 2)


def test_the_newest_transitions_are_kept_and_outlive_the_run(tmp_path):
    rows = transitions(25)
    replay = Replay(tmp_path / "replay.bin", 12, LAYOUT, CPU, together=5)  # room for two times five
    for first in range(0, 25, 5):
        replay.add(rows[first : first + 5])
    again = Replay(tmp_path / "replay.bin", 12, LAYOUT, CPU, together=5, count=replay.count)
    assert sorted(again.rows[:, 0].tolist()) == sorted(rows[-10:, 0].tolist())
    assert float(again.filled) == 10


def test_only_what_was_added_is_drawn(tmp_path):
    replay = Replay(tmp_path / "replay.bin", 100, LAYOUT, CPU, together=4)
    replay.add(transitions(4))
    drawn = replay.sample(500, torch.Generator().manual_seed(0))
    assert set(drawn["view"][:, 0].tolist()) == set(replay.rows[:4, 0].tolist())


def test_a_run_without_its_transitions_is_told(tmp_path):
    with pytest.raises(UserError, match=r"cannot go on without its transitions in replay\.bin"):
        Replay(tmp_path / "replay.bin", 10, LAYOUT, CPU, count=5)
    Replay(tmp_path / "replay.bin", 10, LAYOUT, CPU)
    with pytest.raises(UserError, match="does not hold 20 transitions of 6 numbers"):
        Replay(tmp_path / "replay.bin", 20, LAYOUT, CPU, count=5)
