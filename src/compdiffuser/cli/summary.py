"""An evaluation, as tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compdiffuser.types import counted


def show(summary: Mapping[str, Any]) -> None:
    """The summary as tables for people: success by task, failures by cause."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"{_name(summary)}: {summary['success']:.1f} ± {summary['std']:.1f} % of goals reached")
    table = Table("task", "success %")
    for task, percent in summary["per_task"].items():
        table.add_row(task, f"{percent:.1f}")
    console.print(table)
    failed = {cause: count for cause, count in summary["failures"].items() if count}
    if failed:
        causes = Table("failures", "episodes")
        for cause, count in failed.items():
            causes.add_row(cause, str(count))
        console.print(causes)
    if summary.get("failed_tests"):
        tests = ", ".join(f"{test} {count}" for test, count in summary["failed_tests"].items())
        console.print(f"tests failed by their last plans: {tests}")
    if "plans" in summary:
        begun = ", ".join(f"{count} {origin}" for origin, count in summary["plans"].items() if count)
        console.print(f"plans by what they began from: {begun}")
    console.print(
        f"{counted(summary['episodes'], 'episode')} ({counted(len(summary['seeds']), 'seed')}), "
        f"at most {summary['steps_limit']} steps, "
        f"{summary['data']} data"
        + (f", planning {sum(summary['planning_seconds']):.1f} s" if "planning_seconds" in summary else "")
    )
    for limit, success in summary.get("within", {}).items():
        console.print(f"{success['success']:.1f} ± {success['std']:.1f} % within the benchmark's own {limit} steps")
    if summary.get("heading") == "true":
        console.print("the simulator told the heading: for comparison, not a result of the benchmark")
    if summary["steps_mean"] is not None:
        console.print(f"{summary['steps_mean']:.0f} steps to the goal on average")


def _name(summary: Mapping[str, Any]) -> str:
    """The dataset, with the planner where that has a name of its own."""
    dataset, planner = summary["dataset"], summary.get("planner")
    if planner in (None, dataset):
        return str(dataset)
    return f"{dataset}, planner '{planner}' of {counted(summary['dims'], 'dimension')}"
