"""What a planner is asked: numbers that are none are refused in one sentence, before anything is planned."""

import math
import warnings

import numpy as np
import pytest

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.domains import PLANE
from compdiffuser.planning.problem import checked, one_each, real
from compdiffuser.types import UserError

ROOM = Normalizer((0.0, 0.0), (10.0, 10.0))


@pytest.mark.parametrize("value", [1.5, 2.0, math.nan, math.inf, "3", None, 1j, True, np.float32(1), [0, 0.5], [None]])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(UserError, match="seeds must be whole numbers, not ") as error:
        one_each(value, 2, "seeds")
    assert "\n" not in str(error.value)


def test_whole_numbers_of_any_kind_are_taken():
    for value in (3, np.int64(3), [3, 3], (3, 3), np.array([3, 3]), [np.uint8(3), 3]):
        assert one_each(value, 2, "seeds") == [3, 3]
        assert all(type(each) is int for each in one_each(value, 2, "seeds"))
    with pytest.raises(UserError, match="numbers of chunks must be at least 1, not 0"):
        one_each(0, 1, "numbers of chunks", least=1)
    with pytest.raises(UserError, match="seeds must be whole numbers of 64 bits, not 1180591620717411303424"):
        one_each(2**70, 1, "seeds")
    with pytest.raises(UserError, match="3 seeds were given for 2 problems"):
        one_each([1, 2, 3], 2, "seeds")


@pytest.mark.parametrize("state", [[1j, 0], [0j, 0], ["1", "2"], [True, False], np.array(["2020-01-01"] * 2, "M8[D]")])
def test_states_are_real_numbers(state):
    """Complex numbers lost their imaginary part with no more than a warning, and texts became numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match="a start is 2 numbers, not ") as error:
            checked(np.asarray(state)[None], "start", PLANE, ROOM)
    assert "\n" not in str(error.value)


def test_real_numbers_of_any_kind_are_taken():
    for states in ([[1, 2]], [[1.0, 2.0]], np.array([[1, 2]], np.uint8), np.array([[1, 2.0]], object)):
        found = real(states, "a start is 2 numbers")
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, [[1, 2]])
    with pytest.raises(UserError, match="a start is 2 numbers, not"):
        real(np.array([[1j, 2]], object), "a start is 2 numbers")
    with pytest.raises(UserError, match=r"the start \[inf, 0.0\] is not finite"):
        checked([[1e39, 0]], "start", PLANE, ROOM)


def test_a_wide_world_is_planned_in_up_to_its_limits():
    wide = Normalizer((0.0, 0.0), (100.0, 10.0), (10.0, 1.0))
    checked([[99.0, 9.0]], "start", PLANE, wide)
    with pytest.raises(UserError, match="lies outside the data"):
        checked([[106.0, 9.0]], "start", PLANE, wide)
