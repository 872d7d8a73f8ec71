from dataclasses import dataclass
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compdiffuser.checks import between, brief, chosen, described, finite, member, typed, unknown, whole, widths
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


def test_numbers_end_at_the_most():
    whole(having(4), "value", most=4)
    finite(having(0.5), "value", most=0.5)
    with pytest.raises(UserError, match="value must be at most 4, not 5"):
        whole(having(5), "value", most=4)
    with pytest.raises(UserError, match=r"value must be at most 0.5, not 0.6"):
        finite(having(0.6), "value", most=0.5)
    with pytest.raises(UserError, match="value must be a finite number, not 1000"):
        finite(having(10**400), "value")


@dataclass(frozen=True)
class Everything:
    count: int = 1
    share: float | None = None
    name: str = "a"
    sizes: tuple[int, ...] = ()
    pair: tuple[float, str] = (1, "a")
    kind: Literal["a", "b"] = "a"
    flag: bool = True

    def __post_init__(self) -> None:
        typed(self)


def test_fields_are_what_their_annotations_say():
    Everything(np.int64(3), 2, "b", (1, 2), (0.5, "b"), "b", False)
    for change, sentence in (
        ({"count": 1.0}, "count must be a whole number, not 1.0"),
        ({"count": True}, "count must be a whole number, not True"),
        ({"share": float("nan")}, "share must be a finite number or nothing, not nan"),
        ({"name": None}, "name must be text, not None"),
        ({"sizes": [1]}, "sizes must be a list, each a whole number, not [1]"),
        ({"sizes": (1, "2")}, "sizes must be a list, each a whole number, not (1, '2')"),
        ({"pair": (1,)}, "pair must be a list"),
        ({"kind": "c"}, "kind must be 'a' or 'b', not 'c'"),
        ({"kind": []}, "kind must be 'a' or 'b', not []"),
        ({"flag": 1}, "flag must be true or false, not 1"),
    ):
        with pytest.raises(UserError) as error:
            Everything(**change)
        assert sentence in str(error.value)


@pytest.mark.parametrize("value", [(), [4], (0,), (True,), (2.0,), None, (4,) * 65, (65_537,)])
def test_hidden_layers_are_a_few_of_some_width(value):
    widths(having((4, 4)), "value")
    with pytest.raises(UserError, match="value layers are"):
        widths(having(value), "value")


def test_any_value_is_told_in_a_few_words():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    for value in ("n" * 5000, "a\nb", 10**5000, deep, UserError("x" * 999), list(range(9999))):
        assert len(brief(value)) < 150
        assert "\n" not in brief(value)
        assert len(str(unknown("thing", value, ["a"], "things"))) < 300 if isinstance(value, str) else True
