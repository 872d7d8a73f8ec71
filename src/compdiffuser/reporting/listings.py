"""Tables that list what result files hold: times, trainings, curves, data, and how episodes ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compdiffuser.evaluation.causes import FALLEN, INFEASIBLE, LOST, TIME_OUT, UNSTABLE, lost, never_reached
from compdiffuser.presets import PRESETS
from compdiffuser.reporting.grid import MISSING, Result, figure, find, markdown


def render_speed(results: Sequence[Result], only_targets: bool = False, group: str | None = None) -> str:
    """The entries of the `benchmarks` lists of a group, in the order of their files; all, or those with a target."""
    entries = [entry for result in results for entry in result.get("benchmarks", ()) if entry.get("group") == group]
    entries = [entry for entry in entries if "target" in entry or not only_targets]
    body = [
        [
            entry["name"],
            f"{digits(entry['value'])} {entry['unit']}".strip(),
            _target(entry),
            entry["hardware"],
        ]
        for entry in entries
    ]
    return markdown(["what", "measured", "target", "hardware"], body or [[MISSING] * 4])


def render_grid(results: Sequence[Result], group: str) -> str:
    """The entries of a group that tell their `row` and `column`, a line for each row of each machine."""
    entries = [entry for result in results for entry in result.get("benchmarks", ()) if entry.get("group") == group]
    entries = [entry for entry in entries if "row" in entry and "column" in entry]
    columns = list(dict.fromkeys(entry["column"] for entry in entries))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for entry in entries:
        aim = f" ({_bound(entry)})" if "target" in entry else ""
        rows.setdefault((entry["row"], entry["hardware"]), {})[entry["column"]] = digits(entry["value"]) + aim
    body = [[row, machine, *(cells.get(name, MISSING) for name in columns)] for (row, machine), cells in rows.items()]
    head = ["what", "hardware", *columns]
    return markdown(head, body or [[MISSING] * len(head)])


def render_executing(results: Sequence[Result]) -> str:
    """How far bodies are from their plans: of the place in metres, of joints and torso in radians."""
    rows: dict[str, dict[int, list[str]]] = {}
    entries = [
        entry for result in results for entry in result.get("benchmarks", ()) if entry.get("group") == "executing"
    ]
    for entry in entries:  # place, joints and torso follow each other
        moment = int(entry["column"].rpartition(" ")[2])
        rows.setdefault(entry["row"], {}).setdefault(moment, []).append(f"{entry['value']:.2f}")
    moments = sorted({moment for cells in rows.values() for moment in cells})
    body = [[row, *(" · ".join(cells.get(moment, [MISSING])) for moment in moments)] for row, cells in rows.items()]
    head = ["plan, way of following, controller", *(f"after {moment} steps" for moment in moments)]
    return markdown(head, body or [[MISSING] * len(head)])


def digits(value: float) -> str:
    """Three digits; 1,000 and more in full, with separators."""
    if abs(float(f"{value:.3g}")) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _target(entry: Result) -> str:
    return f"{_bound(entry)} {entry['unit']}".strip() if "target" in entry else MISSING


def _bound(entry: Result) -> str:
    """ "at most 1", or "at least" where the entry says so."""
    return f"{entry.get('bound', 'at most')} {entry['target']:,}"


def render_training(results: Sequence[Result]) -> str:
    """How each baseline was trained: updates, speed, memory, and success along the way."""
    runs = {name: run for result in results for name, run in result.get("baselines", {}).items()}
    head = ["dataset, method", "updates", "seeds", "precision", "updates/s", "peak memory", "success along the way (%)"]
    body = [
        [
            name.replace("/", ", "),
            f"{run['steps']:,}",
            str(run["seeds"]),
            run["precision"],
            f"{run['updates_per_second']:.0f}",
            f"{run['peak_memory'] / 2**30:.2f} GiB" if run.get("peak_memory") else MISSING,
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
        [f"{point['seconds']:.0f}", point["training"], figure(point), str(point["episodes"])]
        for point in sorted(points, key=lambda point: float(point["seconds"]))
    ]
    return markdown(head, body or [[MISSING] * len(head)])


def render_walking(results: Sequence[Result]) -> str:
    """What recorded bodies with legs did: how far episodes get, who falls, what is visited."""
    figures = {
        name: entry["statistics"]
        for result in results
        for name, entry in result.get("datasets", {}).items()
        if name in PRESETS and PRESETS[name].domain.body.has_legs
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


def render_failures(
    results: Sequence[Result], rows: Sequence[tuple[str, Result]], things: Sequence[str] = ()
) -> str:  # fmt: skip
    """How episodes ended, by cause of failure: for each row, a title and the fields that its result has.

    `things` are position groups beyond the agent's, which have causes of their own.
    """
    own = [cause for thing in things for cause in (never_reached(thing), lost(thing))]
    head = [
        "dataset", "episodes", "reached", INFEASIBLE, FALLEN, *own, "lost", TIME_OUT, "unstable", "replans", "steps",
    ]  # fmt: skip
    found = [(title, find(results, wanted)) for title, wanted in rows]
    body = [[title, *_ends(result, own)] for title, result in found if result is not None and "failures" in result]
    return markdown(head, body or [[MISSING] * len(head)])


def _ends(result: Result, own: Sequence[str]) -> list[str]:
    causes = dict(result["failures"])
    if FALLEN not in causes:  # a file from before falls had a count of their own
        causes[FALLEN] = sum(
            episode["cause"] == LOST and any(one["reason"] == FALLEN for one in episode["decisions"])
            for episode in result["failed_episodes"]
        )
        causes[LOST] -= causes[FALLEN]
    counts = [causes.get(cause, 0) for cause in (INFEASIBLE, FALLEN, *own, LOST, TIME_OUT, UNSTABLE)]
    reached = result["episodes"] - sum(causes.values())
    steps = MISSING if result["steps_mean"] is None else f"{result['steps_mean']:.0f}"
    return [*map(str, [result["episodes"], reached, *counts]), f"{result['replans_per_episode']:.2f}", steps]
