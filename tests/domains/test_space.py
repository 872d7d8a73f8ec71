import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compdiffuser.domains import PLANE, Group, Space
from compdiffuser.types import UserError

KNOWN = (Group("agent", (0, 1)), Group("ball", (15, 16)))
DIMS = st.lists(st.integers(0, 20), min_size=1, max_size=8, unique=True)


@given(dims=DIMS)
def test_planned_states_keep_their_order_and_positions_their_place(dims):
    space = Space.of(dims, KNOWN)
    observations = np.arange(60.0).reshape(2, 30)
    states = space.planned(observations)
    np.testing.assert_array_equal(states, observations[:, dims])
    np.testing.assert_array_equal(space.planned(torch.from_numpy(observations)).numpy(), states)
    np.testing.assert_array_equal(np.concatenate(list(space.groups(states).values()), axis=1), space.places(states))
    np.testing.assert_array_equal(space.agent(states), next(iter(space.groups(states).values())))
    for name, columns in KNOWN:
        if set(columns) <= set(dims):
            np.testing.assert_array_equal(space.groups(states)[name], observations[:, columns])
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    assert len(space.names) == len(dims)


def test_a_ball_is_a_position_and_the_rest_is_posture():
    space = Space.of((0, 1, 7, 15, 16), KNOWN)
    assert space.names == ("agent x", "agent y", "observation 7", "ball x", "ball y")
    assert (space.columns, space.only_positions) == ([0, 1, 3, 4], False)
    assert Space.of((0, 1, 15, 16), KNOWN).only_positions
    assert PLANE.only_positions
    states = np.zeros((3, 2))
    assert PLANE.places(states) is states, "nothing is copied where all are positions"


def test_where_no_place_is_planned_the_first_two_dimensions_are_the_agents():
    assert Space.of((4, 5, 6), KNOWN).positions == (Group("agent", (0, 1)),)
    assert Space.of((4,)).positions == (Group("agent", (0,)),)


@pytest.mark.parametrize("dims", [(), (0, 0), (-1, 0)])
def test_dimensions_are_different_ones(dims):
    with pytest.raises(UserError, match="planned dimensions are different ones from 0 on"):
        Space(dims)


@pytest.mark.parametrize("groups", [(), (Group("agent", (0, 2)),), (Group("a", (0, 1)), Group("b", (1,)))])
def test_positions_are_different_columns_of_what_is_planned(groups):
    with pytest.raises(UserError, match="positions are different columns of the 2 planned ones"):
        Space((0, 1), groups)


def test_observations_that_are_too_narrow_are_named():
    with pytest.raises(UserError, match="observations have dimensions 0 to 1, there is no dimension 5"):
        Space.of((0, 5)).planned(np.zeros((3, 2)))
