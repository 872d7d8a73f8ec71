import json

import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.types import UserError

STATES = arrays.arrays(
    np.float32,
    st.tuples(st.integers(1, 20), st.integers(1, 4)),
    elements=st.floats(-1e4, 1e4, width=32),
)


@settings(max_examples=100, deadline=None)
@given(STATES)
def test_states_land_in_the_unit_interval_and_come_back(states):
    normalizer = Normalizer.from_data(states)
    scaled = normalizer.normalize(states)
    assert np.abs(scaled).max() <= 1 + 1e-5
    spread = states.max(axis=0) - states.min(axis=0)
    back = normalizer.denormalize(scaled)
    assert (np.abs(back - states) <= 1e-5 * spread + 1e-6 * np.abs(states) + 1e-30).all()


@settings(max_examples=50, deadline=None)
@given(STATES)
def test_tensors_and_arrays_agree(states):
    normalizer = Normalizer.from_data(torch.from_numpy(states))
    scaled = normalizer.normalize(torch.from_numpy(states))
    assert scaled.dtype == torch.float32
    np.testing.assert_allclose(scaled.numpy(), normalizer.normalize(states), rtol=1e-6, atol=1e-6)
    back = normalizer.denormalize(scaled)
    np.testing.assert_allclose(back.numpy(), normalizer.denormalize(scaled.numpy()), rtol=1e-6, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.floats(-1e6, 1e6, width=32), st.integers(1, 9))
def test_a_constant_dimension_becomes_zero_and_comes_back_exactly(value, count):
    states = np.full((count, 1), value, np.float32)
    normalizer = Normalizer.from_data(states)
    np.testing.assert_array_equal(normalizer.normalize(states), np.zeros_like(states))
    np.testing.assert_array_equal(normalizer.denormalize(normalizer.normalize(states)), states)


def test_limits_become_minus_one_and_one_in_any_shape():
    normalizer = Normalizer(low=(0.0, -2.0), high=(10.0, 2.0))
    states = torch.tensor([[[0.0, -2.0], [10.0, 2.0], [5.0, 0.0]]])
    assert normalizer.normalize(states).tolist() == [[[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0]]]


def test_survives_json():
    normalizer = Normalizer.from_data(np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32))
    assert Normalizer.from_dict(json.loads(json.dumps(normalizer.to_dict()))) == normalizer


def test_bad_limits_are_named():
    with pytest.raises(UserError, match="equal in number, not 1 and 2"):
        Normalizer((0.0,), (1.0, 2.0))
    with pytest.raises(UserError, match=r"dimension 1 are finite and in order, not 3\.0 and 2\.0"):
        Normalizer((0.0, 3.0), (1.0, 2.0))
    with pytest.raises(UserError, match=r"shape \[S, D\] with S of at least 1, not \[0, 2\]"):
        Normalizer.from_data(np.zeros((0, 2)))


def test_a_wide_world_spans_more_than_a_unit():
    wide = Normalizer((0.0, -2.0), (8.0, 2.0), (4.0, 1.0))
    states = np.array([[0.0, -2.0], [4.0, 0.0], [8.0, 2.0]], np.float32)
    np.testing.assert_allclose(wide.normalize(states), [[-4, -1], [0, 0], [4, 1]])
    np.testing.assert_allclose(wide.denormalize(wide.normalize(states)), states)
    assert (wide.units.tolist(), wide.limits.tolist()) == ([1.0, 2.0], [4.0, 1.0])
    assert Normalizer.from_dict(wide.to_dict()) == wide
    assert wide.part([1]) == Normalizer((-2.0,), (2.0,), (1.0,))
    assert "span" not in Normalizer((0.0,), (1.0,)).to_dict()
    with pytest.raises(UserError, match="a span is at least 1 for each of 2 dimensions"):
        Normalizer((0.0, 0.0), (1.0, 1.0), (0.5, 1.0))
