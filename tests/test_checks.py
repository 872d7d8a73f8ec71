from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compdiffuser.checks import between, chosen, described, finite, member, whole
from compdiffuser.types import UserError

NO_NUMBERS = st.sampled_from([float("nan"), float("inf"), -float("inf"), np.nan, True, False, None, "1", [1]])


def having(value):
    return SimpleNamespace(value=value)


@given(NO_NUMBERS)
def test_what_is_no_finite_number_is_refused_everywhere(value):
    for check in (whole, finite, between):
        with pytest.raises(UserError, match="value must"):
            check(having(value), "value")


@given(value=st.integers(), least=st.integers())
def test_whole_numbers_are_accepted_from_the_least_on(value, least):
    if value >= least:
        whole(having(value), "value", least=least)
    else:
        with pytest.raises(UserError, match=f"value must be at least {least}, not {value}"):
            whole(having(value), "value", least=least)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_are_accepted_and_none_is_whole(value):
    finite(having(value), "value")
    with pytest.raises(UserError, match="value must be a whole number"):
        whole(having(value), "value")


def test_numbers_of_numpy_count():
    whole(having(np.int64(3)), "value")
    finite(having(np.float32(3)), "value")
    between(having(np.float64(0.3)), "value")


@given(st.floats(-3, 3))
def test_between_includes_both_ends(value):
    if 0 <= value <= 1:
        between(having(value), "value")
    else:
        with pytest.raises(UserError, match="value must lie between 0 and 1, not"):
            between(having(value), "value")


def test_every_field_that_is_named_is_checked():
    with pytest.raises(UserError, match="b must be at least 1, not 0"):
        whole(SimpleNamespace(a=1, b=0), "a", "b")


@pytest.mark.parametrize("name", ["c", None, float("nan"), ["a"]])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(UserError, match=r"unknown letter '.*'; choose one of a, b"):
        chosen("letter", name, {"a": 1, "b": 2})
    with pytest.raises(UserError, match=r"unknown letter '.*'; choose one of a, b"):
        member("letter", name, ("a", "b"))
    assert chosen("letter", "b", {"a": 1, "b": 2}) == 2


def test_a_description_has_exactly_its_fields():
    described("a point", {"x": 1, "y": 2}, ["y", "x"])
    with pytest.raises(UserError, match="the description of a point lacks x, y; its fields are y, x"):
        described("a point", {}, ["y", "x"])
    with pytest.raises(UserError, match="the description of a point cannot have z; its fields are y, x"):
        described("a point", {"x": 1, "y": 2, "z": 3}, ["y", "x"])
