"""How long an ant's giant maze takes on the machine it runs on: recording the data, one plan, a hundred episodes.

    python benchmarks/antmaze_speed.py --out results/antmaze_speed_h200.json --hardware "16 cores and one H200"
    python benchmarks/antmaze_speed.py --only plan --hardware "two CPU cores"                 # a part of it

A plan is what each replan adds to an episode: automatic K, up to 256 candidates, and the second call with the same
shapes, between random cells at least ten steps apart. The hundred episodes are those of one seed, with replanning, from
the start of the process to its end. Each figure is written when it is measured; a second call adds to the file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import data_generation
import numpy as np
import tyro
from figures import Figures
from planning_speed import problems, second_calls
from reproduce import Clock, compdiffuser, options_of

from compdiffuser import Planner
from compdiffuser.files import read_json

NAME = "antmaze-giant-stitch-v0"


@dataclass(frozen=True)
class Benchmark:
    out: Path = Path("results/antmaze_speed.json")
    hardware: str = "this machine"
    device: str = "auto"
    only: tuple[Literal["data", "plan", "episodes"], ...] = ("data", "plan", "episodes")
    """Parts to measure."""
    workers: int = os.cpu_count() or 1
    """Processes that simulate."""
    problems: int = 10
    """Problems planned one by one."""
    episodes: int | None = None
    """Episodes of data, and per task; by default all and 20. Others are a trial, for which there is no target."""


def main() -> None:
    options = tyro.cli(Benchmark)
    figures = Figures(options.out, "python benchmarks/antmaze_speed.py", options.hardware, "antmaze", add=True)
    for part in options.only:
        PARTS[part](options, figures.note)


def data(options: Benchmark, note: Callable[..., None]) -> None:
    speed = data_generation.measured(
        NAME, data_generation.Benchmark(workers=options.workers, episodes=options.episodes)
    )["speed"]
    aim = at_most(60, options)
    note(f"recording {speed['episodes']:,} episodes", speed["seconds"], "s", load_before=speed["load_before"], **aim)


def plan(options: Benchmark, note: Callable[..., None]) -> None:
    planner = Planner.from_pretrained(NAME, device=options.device)
    seconds, certified = second_calls(planner, *problems(options.problems), candidates=256)
    aim = at_most(1, options) if planner.device.type == "cuda" else {}
    note("one plan, as a replan makes it, median", float(np.median(seconds)), "s", **aim)
    note("one plan, as a replan makes it, slowest", max(seconds), "s")
    note("share of these plans certified", certified, "")


def episodes(options: Benchmark, note: Callable[..., None]) -> None:
    per_task = options.episodes or 20
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        clock = Clock()
        asked = options_of(episodes=per_task, workers=options.workers, device=options.device, out=result)
        compdiffuser("eval", NAME, "--seeds", "1", *asked)
        seconds = clock.seconds
        measured = read_json(result)
    note(
        f"{measured['episodes']} episodes with replanning", seconds, "s", device=measured["device"],
        planning_seconds=measured["planning_seconds"], success=measured["success"], **at_most(600, options),
    )  # fmt: skip


def at_most(seconds: float, options: Benchmark) -> dict[str, float]:
    """The target of a whole measurement; a trial has none."""
    return {} if options.episodes else {"target": seconds}


PARTS = {"data": data, "plan": plan, "episodes": episodes}

if __name__ == "__main__":
    main()
