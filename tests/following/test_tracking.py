import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compdiffuser.following.tracking import look_ahead, nearest_ahead, pad_paths, receding_chunks, without_loops


@pytest.mark.parametrize(
    ("chunks", "executed", "planned", "delta", "expected"),
    [
        (9, 0, 1000, 10, 9),
        (9, 10, 1000, 10, 9),
        (9, 121, 1000, 10, 9),
        (9, 122, 1000, 10, 8),
        (10, 900, 1000, 0, 1),
        (9, 1000, 1000, 10, 1),
        (9, 1000, 1000, 0, 1),
        (9, 500, 1000, -500, 1),
        (9, 1000, 1000, 2000, 9),
    ],
)
def test_receding_chunks_follows_the_formula(chunks, executed, planned, delta, expected):
    assert receding_chunks(chunks, executed, planned, delta) == expected


@given(st.integers(1, 20), st.integers(1, 2000), st.integers(0, 2000), st.integers(0, 300))
def test_receding_chunks_never_grows_and_never_vanishes(chunks, planned, executed, delta):
    executed = min(executed, planned)
    now = receding_chunks(chunks, executed, planned, delta)
    assert 1 <= now <= chunks
    assert receding_chunks(chunks, min(executed + 1, planned), planned, delta) <= now


def test_loops_are_cut_out_and_ends_are_kept():
    out = np.linspace([0, 0], [5, 0], 51)
    back_and_forth = np.concatenate([out, out[::-1], out, np.linspace([5, 0], [5, 3], 31)])
    kept = without_loops(back_and_forth, radius=0.25)
    path = back_and_forth[kept]
    assert kept[0] == 0
    assert kept[-1] == len(back_and_forth) - 1
    assert (np.diff(kept) > 0).all()
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).sum() == pytest.approx(8, abs=0.1)
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() < 0.5


def test_paths_are_padded_with_their_last_state():
    padded = pad_paths([np.arange(4.0).reshape(2, 2), np.arange(8.0).reshape(4, 2)])
    assert padded.shape == (2, 4, 2)
    np.testing.assert_array_equal(padded[0, 1:], [[2, 3]] * 3)


def test_nearest_is_looked_for_ahead_only():
    # A hairpin: the second half comes back beside the first, one metre away.
    path = np.concatenate([np.linspace([0, 0], [10, 0], 21), np.linspace([10, 1], [0, 1], 21)])[None]
    last = np.array([41])
    assert nearest_ahead(path, np.array([4]), last, np.array([[3.1, 0.6]]), window=12) == 6
    assert nearest_ahead(path, np.array([10]), last, np.array([[0.0, 0.0]]), window=12) == 10
    assert nearest_ahead(path, np.array([41]), last, np.array([[0.0, 0.0]]), window=12) == 41


def test_look_ahead_goes_by_distance_and_stops_at_the_end():
    path = np.linspace([0, 0], [10, 0], 101)[None]
    last = np.array([100])
    assert look_ahead(path, np.array([0]), last, distance=0.45, window=12) == 5
    assert look_ahead(path, np.array([0]), last, distance=50.0, window=12) == 11
    assert look_ahead(path, np.array([99]), last, distance=0.5, window=12) == 100
