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
    """The result with the wanted fields; of several, the one over most episodes, then the one with most steps.

    A tuple accepts any of its values, None where a result lacks the field.
    """
    choices = {name: value if isinstance(value, tuple) else (value,) for name, value in wanted.items()}
    found = [result for result in results if all(result.get(name) in values for name, values in choices.items())]
    return max(found, key=lambda result: (result.get("episodes") or 0, result.get("steps_limit") or 0), default=None)


def _figure(result: Result | None) -> str:
    if result is None:
        return MISSING
    # One seed has no spread.
    std = None if len(result.get("seeds", ())) == 1 else result.get("std")
    return " ± ".join(_percent(value) for value in (result["success"], std) if value is not None)


def _percent(value: float) -> str:
    """One decimal, where there is one: 99.5 must not look like 100."""
    return f"{value:.1f}".removesuffix(".0")


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


_STITCH = tuple((size, {"dataset": f"pointmaze-{size}-stitch-v0"}) for size in ("medium", "large", "giant"))

BASELINES = Table(
    "method",
    tuple((title, {"method": title.lower()}) for title in ("GCBC", "GCIVL", "GCIQL", "QRL", "CRL", "HIQL")),
    tuple(
        (f"{size} ({mark})", {**dataset, "origin": origin})
        for size, dataset in _STITCH
        for mark, origin in (("published", "published"), ("here", "measured"))
    ),
)


GHUGARE = Table(
    "maze",
    tuple(
        (f"{title} ({mark})", {"dataset": f"robotics-pointmaze-{size}-v0", "origin": origin})
        for title, size in (("U", "umaze"), ("Medium", "medium"), ("Large", "large"))
        for mark, origin in (("published", "published"), ("here", "measured"))
    ),
    (
        *(
            (title + ("" if augment == "none" else f" ({augment.upper()})"), {"method": method, "augment": augment})
            for title, method in (("RvS", "rvs"), ("DT", "dt"))
            for augment in ("none", "sa", "ga")
        ),
        ("DD", {"sampler": "dd"}),
        ("GSC", {"sampler": "gsc"}),
        ("CompDiffuser, one plan", {"method": "compdiffuser", "sampler": "default", "replan": False}),
        ("CompDiffuser", {"method": "compdiffuser", "sampler": (None, "default"), "replan": True}),
    ),
)


_ANTMAZE = tuple(
    (name.removesuffix("-v0"), {"dataset": name, "steps_limit": (None, limit)})
    for name, limit in (
        ("antmaze-medium-stitch-v0", 1000),
        ("antmaze-large-stitch-v0", 2000),
        ("antmaze-giant-stitch-v0", 2000),
        ("antmaze-medium-explore-v0", 1000),
        ("antmaze-large-explore-v0", 1000),
    )
)
_ALL_HORIZONS: Result = {**_OURS, "controller_horizon": None}

ANTMAZE = Table(
    "dataset",
    _ANTMAZE,
    (
        ("best RL (published)", {**_PAPER, "method": "best-rl"}),
        ("GSC (published)", {**_PAPER, "method": "gsc"}),
        ("CompDiffuser (published)", {**_PAPER, "method": "compdiffuser", "replan": True, "controller_horizon": None}),
        ("GSC, our network, one plan", {**_ALL_HORIZONS, "sampler": "gsc", "replan": False}),
        ("ours from pure noise, one plan", {**_ALL_HORIZONS, "sampler": "noise", "replan": False}),
        ("ours, one plan", {**_ALL_HORIZONS, "sampler": "default", "replan": False}),
        ("ours, replanning", {**_ALL_HORIZONS, "sampler": "default", "replan": True}),
        ("ours, replanning, 1000 steps", {**_ALL_HORIZONS, "sampler": "default", "replan": True, "steps_limit": 1000}),
    ),
)

HORIZONS = Table(
    "maze",
    tuple(
        (f"{size} ({mark})", {"dataset": f"antmaze-{size}-stitch-v0", "origin": origin, "replan": True})
        for size in ("large", "giant")
        for mark, origin in (("published", "published"), ("here", "measured"))
    ),
    tuple((str(horizon), {"controller_horizon": horizon}) for horizon in (8, 12, 16, 20, 24, 28)),
)


def render_speed(results: Sequence[Result], only_targets: bool = False, group: str | None = None) -> str:
    """The entries of the `benchmarks` lists of a group, in the order of their files; all, or those with a target."""
    entries = [entry for result in results for entry in result.get("benchmarks", ()) if entry.get("group") == group]
    entries = [entry for entry in entries if "target" in entry or not only_targets]
    body = [
        [
            entry["name"],
            f"{_digits(entry['value'], entry['unit'])} {entry['unit']}".strip(),
            _target(entry),
            entry["hardware"],
        ]
        for entry in entries
    ]
    return markdown(["what", "measured", "target", "hardware"], body or [[MISSING] * 4])


def _target(entry: Result) -> str:
    """ "at most 1 s", or "at least" where the entry says so."""
    return (
        f"{entry.get('bound', 'at most')} {entry['target']} {entry['unit']}".strip() if "target" in entry else MISSING
    )


def _digits(value: float, unit: str) -> str:
    """Three digits; large rates in full."""
    return f"{value:.0f}" if unit.endswith("/s") and value >= 1000 else f"{value:.3g}"


def render_training(results: Sequence[Result]) -> str:
    """How each baseline was trained: updates, speed, and success along the way."""
    runs = {name: run for result in results for name, run in result.get("baselines", {}).items()}
    head = ["dataset, method", "updates", "seeds", "updates/s", "success along the way (%)"]
    body = [
        [
            name.replace("/", ", "),
            f"{run['steps']:,}",
            str(run["seeds"]),
            f"{run['updates_per_second']:.0f}",
            " → ".join(f"{point['success']:.0f}" for point in run["curve"]),
        ]
        for name, run in sorted(runs.items())
    ]
    return markdown(head, body or [[MISSING] * len(head)])


def render_planners(results: Sequence[Result]) -> str:
    """How each planner was trained: data, compiling and calibrating, updates, memory."""
    runs = {name: run for result in results for name, run in result.get("planners", {}).items()}
    head = ["planner", "waiting for data", "compiling, calibrating", "training", "updates", "peak memory", "hardware"]
    body = [
        [
            name.removesuffix("/compdiffuser").replace("/dd", ", one long chunk"),
            f"{run['waited_for_data']:.0f} s" if "waited_for_data" in run else MISSING,
            f"{run['preparation']:.0f} s" if "preparation" in run else MISSING,
            f"{run['seconds']:.0f} s",
            f"{run['steps']:,}",
            f"{run['peak_memory'] / 2**30:.1f} GiB",
            run["device"],
        ]
        for name, run in sorted(runs.items())
    ]
    return markdown(head, body or [[MISSING] * len(head)])


def render_curve(results: Sequence[Result]) -> str:
    """Success in the giant maze against the seconds that its planner was trained for."""
    points = [point for result in results for point in result.get("curve", ()) if "training" in point]
    head = ["seconds of training", "planner", "success, one plan (%)", "episodes"]
    body = [
        [f"{point['seconds']:.0f}", point["training"], _figure(point), str(point["episodes"])]
        for point in sorted(points, key=lambda point: float(point["seconds"]))
    ]
    return markdown(head, body or [[MISSING] * len(head)])


def render_ants(results: Sequence[Result]) -> str:
    """What the recorded ants did: how far episodes get, who falls, what is visited."""
    figures = {
        name: entry["statistics"]
        for result in results
        for name, entry in result.get("datasets", {}).items()
        if name.startswith("antmaze-")
    }
    columns: dict[str, Callable[[Result], str]] = {
        "episodes": lambda f: f"{f['episodes']:,}",
        "cells, net": lambda f: f"{f['mean_cells_net']:.2f}",
        "cells, farthest": lambda f: f"{f['mean_cells_farthest']:.2f}",
        "goal reached": lambda f: f"{f['goal_reached']:.1%}" if "goal_reached" in f else MISSING,
        "steps to it": lambda f: f"{f['median_steps_to_goal']:.0f}" if f.get("median_steps_to_goal") else MISSING,
        "upright episodes": lambda f: f"{f['upright_episodes']:.1%}",
        "upright states": lambda f: f"{f['upright_states']:.1%}",
        "step": lambda f: f"{f['mean_step']:.3f} m",
        "states in walls": lambda f: f"{f['states_in_walls']:,}",
        "cells visited": lambda f: f"{f['free_cells_visited']:.0%}",
    }
    body = [[f"`{name}`", *(cell(found) for cell in columns.values())] for name, found in figures.items()]
    return markdown(["dataset", *columns], body or [[MISSING] * (len(columns) + 1)])


TABLES: dict[str, Callable[[Sequence[Result]], str]] = {
    "pointmaze": POINTMAZE.render,
    "samplers": SAMPLERS.render,
    "baselines": BASELINES.render,
    "ghugare": GHUGARE.render,
    "antmaze": ANTMAZE.render,
    "controller-horizons": HORIZONS.render,
    "baseline-training": render_training,
    "planner-training": render_planners,
    "training-curve": render_curve,
    "ant-data": render_ants,
    "baseline-speed": partial(render_speed, group="baselines"),
    "serving": partial(render_speed, group="serving"),
    "speed": render_speed,
    "speed-targets": partial(render_speed, only_targets=True),
}
