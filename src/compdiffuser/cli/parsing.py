"""Options that are given as text: settings such as "beta2=0.999", and dimensions such as "0,1"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from compdiffuser.types import UserError


def parsed(texts: Sequence[str], network: str) -> dict[str, Any]:
    """A planner's settings given as "beta2=0.999" or "sides=losses". Raises UserError for what is none."""
    from compdiffuser.planning.recipes import default_network, known_fields

    usual = known_fields(default_network(network))
    values: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in usual:
            raise UserError(f"a planner has no setting '{name}'; it has {', '.join(sorted(usual))}")
        was = usual[name]
        try:
            values[name] = value if isinstance(was, str) else json.loads("null" if value == "none" else value)
        except ValueError:
            raise UserError(f"setting '{name}' cannot be '{value}'; its default is {was}") from None
        if type(was) is float and type(values[name]) is int:
            values[name] = float(values[name])
    return values


def dimensions(text: str) -> tuple[int, ...]:
    """The dimensions in "0,1"; one number alone is how many first ones: "15" is 0 to 14."""
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"dims are whole numbers separated by commas, not '{text}'") from None
    return tuple(range(numbers[0])) if len(numbers) == 1 else numbers
