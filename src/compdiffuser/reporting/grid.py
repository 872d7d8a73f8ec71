"""Tables of success: rows and columns that say which result goes into which cell.

A cell names the fields a result must have; results measured here and published figures are found the same way. A table
carries a note with what its figures were measured on, so that none is read without its conditions.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Result = Mapping[str, Any]

ANY: Any = object()
"""Accepts every value of a field, and a result without it."""
MISSING = "–"
WIDTH = 120
"""Of a line of the note below a table."""


@dataclass(frozen=True)
class Table:
    """Rows and columns, each a heading and the fields it asks of a result."""

    corner: str
    rows: tuple[tuple[str, Result], ...]
    columns: tuple[tuple[str, Result], ...]
    measured_only: bool = False
    """Whether a row without a figure of ours is left out."""

    def render(self, results: Sequence[Result]) -> str:
        """Markdown: the table, then a note on how its figures came about."""
        lines = [(title, [find(results, {**row, **column}) for _, column in self.columns]) for title, row in self.rows]
        if self.measured_only:
            lines = [(title, cells) for title, cells in lines if any(map(_measured, cells))]
        head = [self.corner, *(title for title, _ in self.columns)]
        body = [[title, *map(figure, cells)] for title, cells in lines] or [[MISSING] * len(head)]
        return "\n".join([markdown(head, body), "", _note([cell for _, cells in lines for cell in cells if cell])])


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are set right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *body])


def find(results: Sequence[Result], wanted: Result) -> Result | None:
    """The result with the wanted fields; of several, the one over most episodes, then the one with most steps.

    A tuple accepts any of its values, None where a result lacks the field. `settings.follow` is the field `follow` of
    the object in `settings`.
    """
    asked = {name: value for name, value in wanted.items() if value is not ANY}
    choices = {name: value if isinstance(value, tuple) else (value,) for name, value in asked.items()}
    found = [result for result in results if all(field(result, name) in values for name, values in choices.items())]
    return max(found, key=lambda result: (result.get("episodes") or 0, result.get("steps_limit") or 0), default=None)


def field(result: Result, name: str) -> Any:
    """A field of a result, or of an object in it; None where it is not there."""
    found: Any = result
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def figure(result: Result | None) -> str:
    if result is None:
        return MISSING
    # One seed has no spread.
    std = None if len(result.get("seeds", ())) == 1 else result.get("std")
    return " ± ".join(_percent(value) for value in (result["success"], std) if value is not None)


def _measured(cell: Result | None) -> bool:
    return cell is not None and cell.get("origin") in ("measured", "ablation")


def _percent(value: float) -> str:
    """One decimal, where there is one: 99.5 must not look like 100."""
    return f"{value:.1f}".removesuffix(".0")


def _note(cells: Sequence[Result]) -> str:
    """What was measured here and how, what was published and where; each once, in a line of its own."""
    measured = [cell for cell in cells if _measured(cell)]
    sources = sorted({str(cell["source"]) for cell in cells if cell.get("origin") == "published"})
    lines = ["Success in percent, mean ± standard deviation over seeds."]
    if measured:
        lines.append(f"Measured here: {_conditions(measured)}.")
    if sources:
        lines.append(f"Published: {'; '.join(sources)}.")
    return "\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in lines)


def _conditions(cells: Sequence[Result]) -> str:
    """The conditions of measurements in words; where they differ, what values occur."""
    counts = (
        ("seed", [len(cell["seeds"]) for cell in cells]),
        ("task", [len(cell["tasks"]) for cell in cells]),
        ("episode", [cell["episodes_per_task"] for cell in cells]),
    )
    data = " or ".join(sorted({str(cell["data"]) for cell in cells if "data" in cell})) or "no"
    steps = _values([cell["steps_limit"] for cell in cells])
    return f"{data} data, {' × '.join(_counted(numbers, what) for what, numbers in counts)}, {steps} steps"


def _counted(numbers: Sequence[int], what: str) -> str:
    """The numbers that occur, and what they count: "1 seed", "2 or 5 tasks"."""
    return f"{_values(numbers)} {what}{'' if set(numbers) == {1} else 's'}"


def _values(numbers: Sequence[int]) -> str:
    """The numbers that occur: "5", "2 or 5", or of more than two "2 to 7"."""
    found = [f"{number:,}" for number in sorted(set(numbers))]
    return found[0] if len(found) == 1 else f"{found[0]} {'or' if len(found) == 2 else 'to'} {found[-1]}"
