"""Rows of numbers with named parts: one block of memory for simulators, transitions on a device, and their file."""

from __future__ import annotations

from typing import Any


class Layout:
    """Names and widths of the parts of a row."""

    def __init__(self, **widths: int) -> None:
        self.widths = widths
        self.width = sum(widths.values())
        self.columns: dict[str, slice] = {}
        first = 0
        for name, width in widths.items():
            self.columns[name] = slice(first, first + width)
            first += width

    def part(self, rows: Any, name: str) -> Any:
        """A part [..., w] of rows [..., width], as a view."""
        return rows[..., self.columns[name]]

    def split(self, rows: Any) -> dict[str, Any]:
        """All parts by name."""
        return {name: self.part(rows, name) for name in self.widths}


def transition(view: int, action: int, ingredients: int) -> Layout:
    """A transition; `frame` is the angle of the view's frame, `going_on` 0 where nothing comes after."""
    return Layout(
        view=view, following=view, action=action, command=2, displacement=2, frame=1, next_frame=1,
        ingredients=ingredients, going_on=1,
    )  # fmt: skip


def moment(view: int, observation: int) -> Layout:
    """Where a body is now: what its policy needs, then the maze's observation; `ended` where an episode began anew."""
    return Layout(view=view, command=2, frame=1, heading=1, ended=1, observation=observation)
