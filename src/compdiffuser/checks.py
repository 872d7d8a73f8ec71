"""Checks that configs make of their fields: each raises UserError with the field's name, the value given and what would
be accepted. NaN is never accepted. A config may come from a stranger: any value is told in a few words.
"""

from __future__ import annotations

import difflib
import math
import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union

from compdiffuser.types import UserError

Entry = TypeVar("Entry")
LONGEST = 100
"""Characters that an error says of a value."""


def brief(value: Any) -> str:
    """A value as an error tells it, in one line that is not too long."""
    try:
        text = value if isinstance(value, Exception | str) else repr(value)
        line = " ".join(str(text).split())
    except (RecursionError, ValueError):  # nested too deep; more digits than Python writes
        return f"something of {type(value).__name__}"
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def chosen(what: str, name: Any, registry: Mapping[str, Entry]) -> Entry:
    """The entry of a registry by name. Raises UserError for an unknown one."""
    member(what, name, registry)
    return registry[name]


def member(what: str, name: Any, names: Collection[str]) -> None:
    """Raises UserError for a name that is not among `names`."""
    if not isinstance(name, str) or name not in names:
        raise UserError(f"unknown {what} '{brief(name)}'; choose one of {', '.join(names)}")


def unknown(what: str, name: str, known: Collection[str], listed: str) -> UserError:
    """The error for an unknown name: with the nearest of the known ones, else with all of them, called `listed`."""
    near = difflib.get_close_matches(str(name)[:LONGEST], known, n=1, cutoff=0.4)
    hint = f"did you mean '{near[0]}'?" if near else f"known {listed}: {', '.join(known)}"
    return UserError(f"unknown {what} '{brief(name)}'; {hint}")


def whole(config: object, *names: str, least: int = 1, most: int | None = None) -> None:
    """Raises UserError where a field is not a whole number from `least` to `most`; True and 2.0 are none."""
    for name in names:
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise UserError(f"{name} must be a whole number, not {_told(value)}")
        _in_range(name, value, least, most)


def finite(config: object, *names: str, least: float | None = None, most: float | None = None) -> None:
    """Raises UserError where a field is not a finite number, or not from `least` to `most` where these are given."""
    for name in names:
        value = getattr(config, name)
        if not is_finite(value):
            raise UserError(f"{name} must be a finite number, not {_told(value)}")
        _in_range(name, value, least, most)


def widths(config: object, *names: str, layers: int = 64, most: int = 65_536) -> None:
    """Raises UserError where a field is not a tuple of widths of hidden layers."""
    for name in names:
        value = getattr(config, name)
        given = brief(list(value) if isinstance(value, tuple) else value)
        if not (isinstance(value, tuple) and value and all(type(width) is int and width >= 1 for width in value)):
            raise UserError(f"{name} layers are one or more whole numbers of at least 1, not {given}")
        if len(value) > layers or max(value) > most:
            raise UserError(f"{name} layers are at most {layers} of a width of at most {most}, not {given}")


def between(config: object, *names: str, low: float = 0, high: float = 1) -> None:
    """Raises UserError where a field is not a number from `low` to `high`."""
    for name in names:
        value = getattr(config, name)
        if not is_finite(value) or not low <= value <= high:
            raise UserError(f"{name} must lie between {low} and {high}, not {_told(value)}")


def is_finite(value: Any) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that is no float
        return False


def typed(config: Any) -> None:
    """Raises UserError where a field of a dataclass is not what its annotation says; numbers are finite ones."""
    kind: Any = type(config)
    hints = _hints(kind)
    for field in fields(config):
        if not _fits(value := getattr(config, field.name), hints[field.name]):
            raise UserError(f"{field.name} must be {_words(hints[field.name])}, not {_told(value)}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str | int) and value in parts
    if origin is tuple:
        inner = parts[:1] * len(value) if isinstance(value, tuple) and parts[-1] is ... else parts
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(_fits, value, inner))
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    return is_finite(value) if hint is float else hint is Any or isinstance(value, origin or hint)


def _words(hint: Any) -> str:
    """What a value of a type is, in words."""
    known = {int: "a whole number", float: "a finite number", str: "text", bool: "true or false", type(None): "nothing"}
    parts = typing.get_args(hint)
    if typing.get_origin(hint) in (Union, types.UnionType):
        return " or ".join(map(_words, parts))
    if typing.get_origin(hint) is Literal:
        return " or ".join(map(repr, parts))
    if typing.get_origin(hint) is tuple:
        return f"a list, each {_words(parts[0])}"
    return known.get(hint, f"a {getattr(hint, '__name__', hint)}")


def _in_range(name: str, value: Any, least: Any, most: Any) -> None:
    if least is not None and value < least:
        raise UserError(f"{name} must be at least {least}, not {brief(value)}")
    if most is not None and value > most:
        raise UserError(f"{name} must be at most {most}, not {brief(value)}")


def _told(value: Any) -> str:
    """A value as it would be written, in a few words."""
    return f"'{brief(value)}'" if isinstance(value, str) else brief(value)


def described(what: str, values: Mapping[str, Any], names: Collection[str]) -> None:
    """Raises UserError where a description does not have exactly these fields."""
    if not isinstance(values, Mapping):
        raise UserError(f"the description of {what} must have the fields {', '.join(names)}, and is {_told(values)}")
    for problem, wrong in (("lacks", set(names) - set(values)), ("cannot have", set(values) - set(names))):
        if wrong:
            listed = brief(", ".join(sorted(map(str, wrong))))
            raise UserError(f"the description of {what} {problem} {listed}; its fields are {', '.join(names)}")
