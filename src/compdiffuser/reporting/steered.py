"""The table of steered plans on random problems, from the files that `benchmarks/steering.py` writes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from compdiffuser.reporting.grid import MISSING, WIDTH, Result, markdown
from compdiffuser.reporting.listings import digits

DATASETS = ("pointmaze-giant-stitch-v0", "antmaze-giant-stitch-v0")
CELLS = (
    ("avoid", "steered"), ("avoid", "rejection"), ("avoid", "none"),
    ("via", "steered"), ("via", "rejection"), ("via", "none"),
    ("repair", "steered"),
)  # fmt: skip
"""Kinds of problems, and the methods that are asked."""
TOLD_NOTHING = "none"
"""A method whose certificate knows nothing of what steers a plan, so that it cannot be false about it."""


def render_steered(results: Sequence[Result]) -> str:
    """A line for each dataset, kind and method: how many plans are sound, how many arrive, and how long they take."""
    found = {(each["dataset"], each["kind"], each["method"]): each for each in results if _measured(each)}
    body = []
    for dataset in DATASETS:
        for kind, method in CELLS:
            result = found.get((dataset, kind, method), {})
            body.append([dataset.removesuffix("-v0"), kind, method, *_figures(result, method)])
    head = [
        "dataset", "kind", "method", "problems", "certified and sound (%)", "false certificates", "driven (%)",
        "median time", "times faster than anew",
    ]  # fmt: skip
    table = markdown(head, body)
    hardware = ", ".join(sorted({each["settings"]["hardware"] for each in found.values()}))
    return "\n".join([table, "", textwrap.fill(f"Times: {hardware}.", WIDTH)]) if hardware else table


def _measured(result: Result) -> bool:
    return {"kind", "certified_and_sound", "settings"} <= result.keys()


def _figures(result: Result, method: str) -> list[str]:
    """The cells after the method; dashes for what was not measured."""
    false = None if method == TOLD_NOTHING else result.get("false")
    return [
        _cell(result.get("count"), "{:,}".format),
        _cell(result.get("certified_and_sound"), "{:g}".format),
        _cell(false, str),
        _cell(result.get("driven"), "{:g}".format),
        _cell(result.get("seconds"), lambda seconds: f"{digits(seconds)} s"),
        _cell(result.get("times_faster"), digits),
    ]


def _cell(value: float | None, written: Callable[[float], str]) -> str:
    return MISSING if value is None else written(value)
