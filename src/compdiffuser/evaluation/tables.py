"""The tables of README and docs, as data: which result goes into which cell.

A cell names the fields a result must have; results measured here and published figures are found the same way. A table
carries a note with what its figures were measured on, so that none is read without its conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

Result = Mapping[str, Any]

MISSING = "–"


@dataclass(frozen=True)
class Table:
    """Rows and columns, each a heading and the fields it asks of a result."""

    corner: str
    rows: tuple[tuple[str, Result], ...]
    columns: tuple[tuple[str, Result], ...]

    def render(self, results: Sequence[Result]) -> str:
        """Markdown: the table, then a note on how its figures came about."""
        cells = [[_find(results, {**row, **column}) for _, column in self.columns] for _, row in self.rows]
        head = [self.corner, *(title for title, _ in self.columns)]
        body = [[title, *map(_figure, line)] for (title, _), line in zip(self.rows, cells, strict=True)]
        return "\n".join([markdown(head, body), "", _note([cell for line in cells for cell in line if cell])])


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are set right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *body])


def _find(results: Sequence[Result], wanted: Result) -> Result | None:
    """The result with the wanted fields; of several, the one over most episodes."""
    found = [result for result in results if all(result.get(name) == value for name, value in wanted.items())]
    return max(found, key=lambda result: result.get("episodes") or 0, default=None)


def _figure(result: Result | None) -> str:
    if result is None:
        return MISSING
    std = result.get("std")
    return f"{result['success']:.0f}" if std is None else f"{result['success']:.0f} ± {std:.0f}"


def _note(cells: Sequence[Result]) -> str:
    """What was measured here and how, what was published and where; each once."""
    measured = sorted({_conditions(cell) for cell in cells if cell.get("origin") == "measured"})
    sources = sorted({str(cell["source"]) for cell in cells if cell.get("origin") == "published"})
    lines = ["Success in percent, mean ± standard deviation over seeds."]
    if measured:
        lines.append(f"Measured here: {'; '.join(measured)}.")
    if sources:
        lines.append(f"Published: {'; '.join(sources)}.")
    return " ".join(lines)


def _conditions(cell: Result) -> str:
    """The conditions of one measurement, in words."""
    seeds, tasks, each = len(cell["seeds"]), len(cell["tasks"]), cell["episodes_per_task"]
    return f"{cell['data']} data, {seeds} seeds × {tasks} tasks × {each} episodes, {cell['steps_limit']} steps"


_DATASETS = tuple(
    (title, {"dataset": name})
    for title, name in (
        ("PointMaze U (Ghugare et al.)", "robotics-pointmaze-umaze-v0"),
        ("PointMaze medium (Ghugare et al.)", "robotics-pointmaze-medium-v0"),
        ("PointMaze large (Ghugare et al.)", "robotics-pointmaze-large-v0"),
        ("pointmaze-medium-stitch", "pointmaze-medium-stitch-v0"),
        ("pointmaze-large-stitch", "pointmaze-large-stitch-v0"),
        ("pointmaze-giant-stitch", "pointmaze-giant-stitch-v0"),
    )
)

_PAPER: Result = {"origin": "published"}
_OURS: Result = {"origin": "measured", "method": "compdiffuser"}
_GIANT: Result = {"dataset": "pointmaze-giant-stitch-v0"}

POINTMAZE = Table(
    "dataset",
    _DATASETS,
    (
        ("best RL (published)", {**_PAPER, "method": "best-rl"}),
        ("GSC (published)", {**_PAPER, "method": "gsc"}),
        ("CompDiffuser (published)", {**_PAPER, "method": "compdiffuser", "replan": True}),
        ("ours, one plan", {**_OURS, "sampler": "default", "replan": False}),
        ("ours, replanning", {**_OURS, "sampler": "default", "replan": True}),
    ),
)

SAMPLERS = Table(
    "sampler",
    tuple(
        (title, {"sampler": sampler})
        for title, sampler in (
            ("autoregressive, forward", "autoregressive"),
            ("autoregressive, backward", "autoregressive-backward"),
            ("parallel", "parallel"),
            ("GSC", "gsc"),
            ("one long chunk (Decision Diffuser)", "dd"),
            ("default (resampling, chosen by reconstruction)", "default"),
        )
    ),
    (
        ("published", {**_PAPER, **_GIANT}),
        ("ours, same weights", {"origin": "measured", "replan": False, **_GIANT}),
    ),
)


def render_speed(results: Sequence[Result], only_targets: bool = False) -> str:
    """The entries of the `benchmarks` lists, in the order of their files; all, or those that have a target."""
    entries = [entry for result in results for entry in result.get("benchmarks", ())]
    entries = [entry for entry in entries if "target" in entry or not only_targets]
    body = [
        [
            entry["name"],
            f"{entry['value']:.3g} {entry['unit']}".strip(),
            f"at most {entry['target']} {entry['unit']}".strip() if "target" in entry else MISSING,
            entry["hardware"],
        ]
        for entry in entries
    ]
    return markdown(["what", "measured", "target", "hardware"], body or [[MISSING] * 4])


TABLES: dict[str, Callable[[Sequence[Result]], str]] = {
    "pointmaze": POINTMAZE.render,
    "samplers": SAMPLERS.render,
    "speed": render_speed,
    "speed-targets": partial(render_speed, only_targets=True),
}
