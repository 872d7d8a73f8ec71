import numpy as np
import pytest

from compdiffuser.data.advice import _padded, on_precision, on_windows
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import PLANE
from compdiffuser.presets import OWN_CHUNKS, ChunkConfig
from compdiffuser.types import Episodes


def episodes(*lengths: int) -> Episodes:
    states = np.concatenate([np.stack([np.arange(n), np.zeros(n)], axis=1) for n in lengths]).astype(np.float32)
    ends = np.cumsum(lengths)
    return Episodes(states, states, ends - lengths, np.array(lengths))


def test_long_chunks_of_short_episodes_are_told():
    (told,) = on_windows(episodes(*[10] * 20), OWN_CHUNKS)
    assert told.startswith("84% of the states in chunks are copies")
    assert "half of the episodes have 10 states or fewer" in told
    assert on_windows(episodes(100, 120), OWN_CHUNKS) == []


def test_episodes_that_are_left_out_are_told():
    (told,) = on_windows(episodes(100, 10), ChunkConfig(64, 24, front_padding=0))
    assert told.startswith("1 of 2 episodes are left out")


def test_places_that_float32_cannot_tell_apart_are_told():
    path = np.cumsum(np.full((50, 2), 0.1), axis=0)
    ends = np.arange(50) == 49
    near, far = (Episodes.from_terminals(path + offset, path, ends) for offset in ((0, 4e3), (0, 5e6)))
    assert on_precision(near, PLANE) == []
    (told,) = on_precision(far, PLANE)
    assert told.startswith("agent y reaches 5,000,005, where float32 only knows every 0.5")


@pytest.mark.parametrize(("front", "back", "stride"), [(3, 0, 1), (0, 4, 1), (5, 5, 2)])
def test_the_share_is_that_of_the_windows_themselves(front, back, stride):
    data = episodes(7, 12)
    windows = Windows.from_episodes(data, PLANE, Normalizer((0, 0), (1, 1)), 5, front, back, stride=stride)
    counts = windows.ends.diff(prepend=windows.ends.new_zeros(1)).tolist()
    first = np.concatenate([np.arange(count) - front for count in counts])
    length = np.repeat(data.lengths, counts)
    steps = first[:, None] + np.arange((5 - 1) * stride + 1)  # of every window
    outside = ((steps < 0) | (steps >= length[:, None])).mean()
    assert _padded(data.lengths, (5 - 1) * stride + 1, front, back) == pytest.approx(outside)
