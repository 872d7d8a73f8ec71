"""Checks that configs make of their fields: each raises UserError with the field's name, the value given and what would
be accepted. NaN is never accepted.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

from compdiffuser.types import UserError

Entry = TypeVar("Entry")


def chosen(what: str, name: Any, registry: Mapping[str, Entry]) -> Entry:
    """The entry of a registry by name. Raises UserError for an unknown one."""
    member(what, name, registry)
    return registry[name]


def member(what: str, name: Any, names: Collection[str]) -> None:
    """Raises UserError for a name that is not among `names`."""
    if not isinstance(name, str) or name not in names:
        raise UserError(f"unknown {what} '{name}'; choose one of {', '.join(names)}")


def unknown(what: str, name: str, known: Collection[str], listed: str) -> UserError:
    """The error for an unknown name: with the nearest of the known ones, else with all of them, called `listed`."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean '{near[0]}'?" if near else f"known {listed}: {', '.join(known)}"
    return UserError(f"unknown {what} '{name}'; {hint}")


def whole(config: object, *names: str, least: int = 1) -> None:
    """Raises UserError where a field is not a whole number of at least `least`; True and 2.0 are none."""
    for name in names:
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise UserError(f"{name} must be a whole number, not {value!r}")
        if value < least:
            raise UserError(f"{name} must be at least {least}, not {value}")


def finite(config: object, *names: str, least: float | None = None) -> None:
    """Raises UserError where a field is not a finite number, of at least `least` where that is given."""
    for name in names:
        value = getattr(config, name)
        if not is_finite(value):
            raise UserError(f"{name} must be a finite number, not {value!r}")
        if least is not None and value < least:
            raise UserError(f"{name} must be at least {least}, not {value}")


def between(config: object, *names: str, low: float = 0, high: float = 1) -> None:
    """Raises UserError where a field is not a number from `low` to `high`."""
    for name in names:
        value = getattr(config, name)
        if not is_finite(value) or not low <= value <= high:
            raise UserError(f"{name} must lie between {low} and {high}, not {value!r}")


def is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def described(what: str, values: Mapping[str, Any], names: Collection[str]) -> None:
    """Raises UserError where a description does not have exactly these fields."""
    for problem, fields in (("lacks", set(names) - set(values)), ("cannot have", set(values) - set(names))):
        if fields:
            listed = ", ".join(sorted(map(str, fields)))
            raise UserError(f"the description of {what} {problem} {listed}; its fields are {', '.join(names)}")
