import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compdiffuser.compose.merge import BLENDINGS, exponential, merge, merged_length, split
from compdiffuser.types import UserError


@pytest.mark.parametrize("name", BLENDINGS)
def test_weights_fall_from_the_earlier_chunk_to_the_later(name):
    weight = BLENDINGS[name](torch.linspace(0, 1, 11, dtype=torch.float64))
    assert weight[0] == pytest.approx(1, abs=1e-12)
    assert weight[-1] == pytest.approx(0, abs=1e-12)
    assert (weight.diff() < 0).all()


def test_weights_in_the_middle():
    half = torch.tensor([0.5], dtype=torch.float64)
    e = math.e
    assert BLENDINGS["exponential"](half) == pytest.approx((1 / e - 1 / e**2) / (1 - 1 / e**2))  # β = 2
    assert exponential(half, beta=1e-6) == pytest.approx(0.5, abs=1e-5)
    assert BLENDINGS["cosine"](half) == pytest.approx(0.5)
    assert BLENDINGS["linear"](half / 2) == pytest.approx(0.75)


@pytest.mark.parametrize("name", BLENDINGS)
def test_a_merged_overlap_is_the_weighted_sum(name):
    chunks = torch.stack([torch.zeros(6, 1), torch.ones(6, 1)])
    merged = merge(chunks, 3, name)[:, 0]
    assert merged.shape == (9,)
    assert torch.equal(merged[:4], torch.zeros(4))
    assert torch.equal(merged[5:], torch.ones(4))
    assert merged[4] == pytest.approx(1 - float(BLENDINGS[name](torch.tensor(0.5))))


@given(
    count=st.integers(1, 6),
    overlap=st.integers(1, 5),
    extra=st.integers(0, 4),
    batch=st.sampled_from([(), (2,), (2, 3)]),
    name=st.sampled_from(sorted(BLENDINGS)),
)
def test_merging_the_chunks_of_a_trajectory_gives_it_back(count, overlap, extra, batch, name):
    horizon = 2 * overlap + extra
    length = count * horizon - (count - 1) * overlap
    trajectory = torch.arange(math.prod(batch) * length * 2, dtype=torch.float64).view(*batch, length, 2)
    chunks = split(trajectory, count, horizon, overlap)
    assert chunks.shape == (*batch, count, horizon, 2)
    assert torch.allclose(merge(chunks, overlap, name), trajectory)
    assert torch.allclose(split(merge(chunks, overlap, name), count, horizon, overlap), chunks)


def test_the_ends_of_a_merged_plan_are_those_of_its_chunks():
    chunks = torch.randn(5, 8, 2, generator=torch.Generator().manual_seed(0))
    merged = merge(chunks, 3)
    assert torch.equal(merged[0], chunks[0, 0])
    assert torch.equal(merged[-1], chunks[-1, -1])


def test_an_unknown_blending_is_named():
    with pytest.raises(UserError, match="unknown blending 'cubic'; choose one of exponential, cosine, linear"):
        merge(torch.zeros(2, 6, 1), 3, "cubic")


@given(
    count=st.integers(1, 6),
    overlap=st.integers(1, 5),
    extra=st.integers(0, 4),
    name=st.sampled_from(sorted(BLENDINGS)),
    seed=st.integers(0, 2**32),
)
def test_splitting_a_merged_plan_and_merging_it_again_changes_nothing(count, overlap, extra, name, seed):
    """Chunks that disagree agree after one merge."""
    horizon = 2 * overlap + extra
    chunks = torch.randn(count, horizon, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    plan = merge(chunks, overlap, name)
    assert len(plan) == merged_length(count, horizon, overlap)
    assert torch.allclose(merge(split(plan, count, horizon, overlap), overlap, name), plan, atol=1e-12)
