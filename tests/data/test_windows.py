import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import PLANE, Space
from compdiffuser.types import Episodes, UserError


def tagged(lengths: list[int]) -> Episodes:
    """States (episode, step), so that a window shows where each of its rows is from."""
    rows = np.array([[e, t] for e, n in enumerate(lengths) for t in range(n)], np.float32)
    ends = np.cumsum(lengths)
    return Episodes(rows, rows, ends - lengths, np.array(lengths))


def windows_of(episodes: Episodes, **options) -> tuple[Windows, Normalizer]:
    normalizer = Normalizer.from_data(episodes.observations)
    return Windows.from_episodes(episodes, space=PLANE, normalizer=normalizer, **options), normalizer


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    horizon=st.integers(1, 9),
    front=st.integers(0, 6),
    back=st.integers(0, 6),
    stride=st.integers(1, 3),
)
def test_every_window_is_a_clamped_stretch_of_one_episode(lengths, horizon, front, back, stride):
    episodes = tagged(lengths)
    expected = [
        [(e, min(max(first + stride * h, 0), n - 1)) for h in range(horizon)]
        for e, n in enumerate(lengths)
        for first in range(-front, n + back - (horizon - 1) * stride)
    ]
    options = {"horizon": horizon, "front_padding": front, "back_padding": back, "stride": stride}
    if not expected:
        with pytest.raises(UserError, match=f"H {horizon} .* the longest has {max(lengths)} states"):
            windows_of(episodes, **options)
        return
    windows, normalizer = windows_of(episodes, **options)
    assert len(windows) == len(expected)
    found = normalizer.denormalize(windows.at(torch.arange(len(windows))))
    np.testing.assert_allclose(found, np.array(expected, np.float32), atol=1e-5)


def test_sampling_is_uniform_over_all_windows_and_repeats_with_its_seed():
    windows, _ = windows_of(tagged([5, 3, 9, 2]), horizon=4, front_padding=1)
    assert len(windows) == 3 + 1 + 7 + 0
    draws = torch.randint(len(windows), (40_000,), generator=torch.Generator().manual_seed(0))
    batch = windows.sample(40_000, torch.Generator().manual_seed(0))
    assert batch.shape == (40_000, 4, 2)
    torch.testing.assert_close(batch, windows.at(draws))
    _, counts = torch.unique(batch.flatten(1), dim=0, return_counts=True)
    assert len(counts) == len(windows)
    assert (counts / 40_000 - 1 / len(windows)).abs().max() < 0.01


def test_a_single_window_and_one_dimension():
    episodes = tagged([4])
    windows = Windows.from_episodes(episodes, Space.of([1]), Normalizer((0.0,), (3.0,)), horizon=4)
    assert len(windows) == 1
    torch.testing.assert_close(windows.sample(2)[:, :, 0], torch.tensor([[-1, -1 / 3, 1 / 3, 1]] * 2))


@settings(max_examples=50, deadline=None)
@given(lengths=st.lists(st.integers(1, 12), min_size=2, max_size=12), share=st.floats(0, 0.9), seed=st.integers(0, 9))
def test_episodes_that_are_held_out_share_no_window_with_the_others(lengths, share, seed):
    windows, normalizer = windows_of(tagged([*lengths, 9]), horizon=4)
    parts = windows.held_out(share, torch.Generator().manual_seed(seed))
    rows = [normalizer.denormalize(part.at(torch.arange(len(part)))) for part in parts]
    episodes = [{int(episode) for episode in found[..., 0].round().flatten()} for found in rows]
    long = [number for number, length in enumerate([*lengths, 9]) if length >= 4]
    if len(long) == 1:
        assert episodes == [set(long), set(long)], "a single episode has to stand on both sides"
    else:
        assert not episodes[0] & episodes[1]
        assert sorted(episodes[0] | episodes[1]) == long
        assert len(episodes[1]) == min(max(1, round(share * len(long))), len(long) - 1)
        assert len(parts[0]) + len(parts[1]) == len(windows)


def test_what_cannot_be_cut_is_named():
    episodes = tagged([4, 6])
    normalizer = Normalizer.from_data(episodes.observations)
    with pytest.raises(UserError, match=r"H 5 \(9 states\): the longest has 6 states and 2 of padding"):
        windows_of(episodes, horizon=5, stride=2, front_padding=1, back_padding=1)
    with pytest.raises(UserError, match="there is no dimension 2"):
        Windows.from_episodes(episodes, Space.of([0, 2]), normalizer, horizon=2)
    with pytest.raises(UserError, match="not H 0, stride 1"):
        windows_of(episodes, horizon=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_sampling_can_be_captured_in_a_cuda_graph():
    windows, _ = windows_of(tagged([30, 40]), horizon=8, front_padding=4, device="cuda")
    windows.sample(16)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        batch = windows.sample(16)
    graph.replay()
    first = batch.clone()
    graph.replay()
    assert not torch.equal(first, batch)
