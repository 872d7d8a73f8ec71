"""Proposals for data that nobody has tuned anything for: by its lengths, its width and the machine."""

import numpy as np
import pytest

from compdiffuser.data.proposal import ON_CPU, ON_GPU, propose, wraps
from compdiffuser.data.windows import Windows
from compdiffuser.planning.training import normalizer_of, windows_of
from compdiffuser.presets import own_preset
from compdiffuser.types import Episodes, UserError


def walks(length: int, width: int = 2, count: int = 20, step: float = 0.1) -> Episodes:
    rng = np.random.default_rng(0)
    starts, ways = rng.uniform(0, 20, (count, 1, width)), rng.normal(size=(count, 1, width))
    return Episodes.from_lists(list(starts + np.arange(length)[:, None] * step * ways))


@pytest.mark.parametrize("length", [10, 24, 60, 200, 2000])
def test_chunks_fit_the_episodes(length):
    episodes = walks(length)
    chunks = propose(episodes, own_preset("mine"), on_gpu=False).preset.chunks
    assert chunks.horizon % 8 == 0
    assert 4 <= chunks.overlap <= chunks.horizon // 2
    assert chunks.scaffold == 0.25
    span = (chunks.horizon - 1) * chunks.stride + 1
    if length >= 24:
        assert span <= length, "a chunk is shorter than an episode"
    assert chunks.horizon <= 64
    preset = propose(episodes, own_preset("mine"), on_gpu=False).preset
    windows = windows_of(episodes, preset, normalizer_of(episodes, preset.space), "cpu")
    assert isinstance(windows, Windows)
    assert len(windows) > 0


def test_longer_ways_get_more_chunks():
    most = [propose(walks(40, step=step), own_preset("mine"), False).preset.chunks.most for step in (0.5, 0.05, 0.001)]
    assert most == sorted(most)
    assert most[0] < most[-1] == 48


@pytest.mark.parametrize(
    ("width", "dims", "position"), [(1, (0,), 1), (2, (0, 1), 2), (3, (0, 1, 2), 3), (9, (0, 1), 2)]
)
def test_dimensions_are_a_place(width, dims, position):
    proposal = propose(walks(40, width), own_preset("mine"), on_gpu=True)
    assert proposal.preset.space.dims == dims
    assert proposal.preset.space.sizes == [position]
    assert proposal.sizes == ON_GPU
    assert proposal.reasons[0].startswith(f"--dims {','.join(map(str, dims))}: observations are {width} numbers")


def test_an_angle_that_wraps_is_no_height():
    episodes = walks(40, 3)
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, len(episodes.observations))
    assert wraps(angles)
    assert not wraps(episodes.observations[:, 2])
    turned = np.concatenate([episodes.observations[:, :2], angles[:, None]], axis=1)
    proposal = propose(Episodes.from_lists([turned]), own_preset("mine"), on_gpu=False)
    assert (proposal.preset.space.dims, proposal.sizes) == ((0, 1), ON_CPU)


def test_given_dimensions_stay():
    proposal = propose(walks(40, 4), own_preset("mine").planning((2, 3)), False, dims_given=True)
    assert proposal.preset.space.dims == (2, 3)
    assert len(proposal.reasons) == 2


@pytest.mark.parametrize("given", [{"overlap": 200, "horizon": 16}, {"stride": -2}])
def test_chunks_that_cannot_be_are_told(given):
    with pytest.raises(UserError, match=f"{next(iter(given))} .*{next(iter(given.values()))}"):
        propose(walks(5), own_preset("mine"), False, **given)


def test_sizes_that_are_given_are_not_told_as_proposed():
    *_, told = propose(walks(40, 2), own_preset("mine"), False, sizes_given=("width", "steps")).reasons
    assert told == "depth 3, batch 128: there is no GPU"
    reasons = propose(walks(40, 2), own_preset("mine"), False, sizes_given=ON_CPU).reasons
    assert not any("GPU" in reason for reason in reasons)
