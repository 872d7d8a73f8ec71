"""Options that are given as text: settings such as "beta2=0.999", and dimensions such as "0,1"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from compdiffuser.checks import brief
from compdiffuser.types import UserError


def parsed(texts: Sequence[str], network: str) -> dict[str, Any]:
    """A planner's settings given as "beta2=0.999" or "sides=losses". Raises UserError for others and repetitions."""
    from compdiffuser.planning.recipes import default_network, known_fields

    usual = known_fields(default_network(network))
    values: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in usual:
            raise UserError(f"a planner has no setting '{name}'; it has {', '.join(sorted(usual))}")
        if name in values:
            raise UserError(f"{name} is given twice by --set, at last as '{brief(value)}'")
        try:
            values[name] = _read(value, usual[name])
        except (ValueError, OverflowError, RecursionError):
            raise UserError(f"setting '{name}' cannot be '{brief(value)}'; its default is {usual[name]}") from None
    return values


def _read(text: str, default: Any) -> Any:
    """A setting's value, of its default's type where that is text or a float."""
    if isinstance(default, str):
        return text
    value = json.loads("null" if text == "none" else text)
    return float(value) if type(default) is float and type(value) is int else value


def dimensions(text: str) -> tuple[int, ...]:
    """The dimensions in "0,1"; one number alone is how many first ones: "15" is 0 to 14."""
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"dims are whole numbers separated by commas, not '{text}'") from None
    return tuple(range(numbers[0])) if len(numbers) == 1 else numbers
