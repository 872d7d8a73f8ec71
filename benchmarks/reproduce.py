"""The command that makes a figure, as its result file tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def command(start: str, options: Any, names: Sequence[str], **more: Any) -> str:
    """`start`, those of the named options that differ from a script's defaults, and `more`."""
    changed = {name: value for name in names if (value := getattr(options, name)) != getattr(type(options), name)}
    words = [f"--{name.replace('_', '-')} {_word(value)}" for name, value in (changed | more).items()]
    return " ".join([start, *words])


def _word(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
