"""How long bodies in mazes take: recording the data, one plan, a hundred episodes, and what was trained for them.

    python benchmarks/world_speed.py --group antmaze --out results/antmaze_speed_h200.json \\
        --hardware "16 cores and one H200"
    python benchmarks/world_speed.py --group humanoidmaze --names humanoidmaze-giant-stitch-v0 --only plan episodes
    python benchmarks/world_speed.py --group dimensions --names antmaze-giant-stitch-v0{,-15d,-29d} --only plan

A plan is what each replan adds to an episode: automatic K, up to 256 candidates, and the second call with the same
shapes, between random cells as far apart as half of the longest way; a simulator says in which posture a body starts.
The hundred episodes are those of one seed, with replanning, from the start of the process to its end. Each figure is
written when it is measured; a second call adds to the file. `made` measures nothing: it collects from results/ how long
the experts, the data and the planners took that are shipped, on the machine that made them.
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
from figures import Figures, certificates
from planning_speed import second_calls
from reproduce import Clock, compdiffuser, options_of

from compdiffuser import Planner
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.problems import Placement
from compdiffuser.files import read_json
from compdiffuser.presets import Preset, preset
from compdiffuser.types import Array

EXPERTS = {"humanoid": ("humanoid", "humanoid-student"), "soccer": ("ball",), "ant": ("ant",)}
TARGETS = {
    ("humanoid", "made"): 600,
    ("humanoid-student", "made"): 240,
    ("ball", "made"): 600,
    ("antmaze-giant-stitch-v0", "data"): 60,
    ("humanoidmaze-medium-stitch-v0", "data"): 100,
    ("antsoccer-medium-stitch-v0", "data"): 300,
    ("antmaze-giant-stitch-v0", "plan"): 1,
    ("humanoidmaze-giant-stitch-v0", "plan"): 0.3,
    ("antsoccer-arena-stitch-v0", "plan"): 0.3,
    ("antsoccer-medium-stitch-v0", "plan"): 0.3,
    ("antmaze-giant-stitch-v0", "episodes"): 600,
    ("humanoidmaze-giant-stitch-v0", "episodes"): 600,
}


@dataclass(frozen=True)
class Benchmark:
    names: tuple[str, ...] = ("antmaze-giant-stitch-v0",)
    """Planners, or datasets where only `data` is measured."""
    group: str = "antmaze"
    """The table that lists the figures."""
    out: Path | None = None
    """By default results/GROUP_speed.json."""
    hardware: str = "this machine"
    device: str = "auto"
    only: tuple[Literal["data", "plan", "episodes", "made"], ...] = ("data", "plan", "episodes")
    """Parts to measure."""
    workers: int = os.cpu_count() or 1
    """Processes that simulate."""
    problems: int = 10
    """Problems planned one by one."""
    episodes: int | None = None
    """Episodes of data, and per task; by default all and 20. Others are a trial, for which there is no target."""


def main() -> None:
    options = tyro.cli(Benchmark)
    out = options.out or Path(f"results/{options.group}_speed.json")
    figures = Figures(out, "python benchmarks/world_speed.py", options.hardware, options.group, add=True)
    for name in options.names:
        for part in options.only:
            PARTS[part](name, options, figures.note)


def data(name: str, options: Benchmark, note: Callable[..., None]) -> None:
    asked = data_generation.Benchmark(workers=options.workers, episodes=options.episodes)
    speed = data_generation.measured(name, asked)["speed"]
    aim = target(name, "data", options)
    recorded = f"{name}: recording {speed['episodes']:,} episodes"
    note(recorded, speed["seconds"], "s", load_before=speed["load_before"], **aim)


def plan(name: str, options: Benchmark, note: Callable[..., None]) -> None:
    planner = Planner.from_pretrained(name, device=options.device)
    seconds, plans = second_calls(planner, *ends(planner.preset, options.problems), candidates=256)
    aim = target(name, "plan", options) if planner.device.type == "cuda" else {}
    note(f"{name}: one plan, as a replan makes it, median", float(np.median(seconds)), "s", **aim)
    note(f"{name}: one plan, as a replan makes it, slowest", max(seconds), "s")
    certified, wrong = certificates(plans)
    note(f"{name}: share of these plans certified", certified / len(plans), "")
    note(f"{name}: certified plans that pass through a wall", wrong, "", problems=len(plans))


def episodes(name: str, options: Benchmark, note: Callable[..., None]) -> None:
    per_task = options.episodes or 20
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        clock = Clock()
        asked = options_of(episodes=per_task, workers=options.workers, device=options.device, out=result)
        compdiffuser("eval", name, "--seeds", "1", *asked)
        seconds = clock.seconds
        measured = read_json(result)
    note(
        f"{name}: {measured['episodes']} episodes with replanning", seconds, "s", device=measured["device"],
        planning_seconds=measured["planning_seconds"], success=measured["success"],
        **target(name, "episodes", options),
    )  # fmt: skip


def ends(preset: Preset, count: int) -> tuple[Array, Array]:
    """Whole starts and goals [P, D] of `far_apart` problems."""
    with EnvironmentPool(preset.domain, 1) as pool:
        starts, goals = pool.reset(far_apart(preset, count))
    return preset.space.planned(starts), preset.space.planned(goals)


def far_apart(preset: Preset, count: int) -> list[Placement]:
    """Random problems, what is asked for at least half of the longest way from where the body begins."""
    layout = preset.maze
    assert layout is not None
    cells, rng = layout.free_cells, np.random.default_rng(0)
    longest = max(int(layout.distances(cell).max()) for cell in cells)
    placements: list[Placement] = []
    while len(placements) < count:
        chosen = [cells[rng.integers(len(cells))] for _ in preset.space.positions]
        goal = cells[rng.integers(len(cells))]
        if min(layout.distances(goal)[cell] for cell in chosen) >= longest // 2:
            start = np.concatenate([layout.center(cell) + rng.uniform(-1, 1, 2) for cell in chosen])
            place = layout.center(goal) + rng.uniform(-1, 1, 2)
            placements.append(Placement(start, np.tile(place, len(chosen)), seed=len(placements)))
    return placements


def target(name: str, part: str, options: Benchmark) -> dict[str, float]:
    """The target of a whole measurement; a trial has none."""
    aim = None if options.episodes else TARGETS.get((name, part))
    return {} if aim is None else {"target": aim}


def made(name: str, options: Benchmark, note: Callable[..., None]) -> None:
    """What is shipped for a dataset; hardware is that of the machine it was made on."""
    results, record = Path("results"), preset(name)
    for expert in EXPERTS.get(record.domain.family, ()):
        trained = read_json(results / f"expert_{expert}.json")["trained"]
        aim = {"target": limit} if (limit := TARGETS.get((expert, "made"))) else {}
        note(f"expert {expert}, from nothing", trained["seconds"], "s", hardware=trained["device"], **aim)
    recorded = read_json(results / "data_generation.json")["datasets"].get(name, {}).get("speed")
    if recorded:
        hardware = f"{recorded['cores']} CPU cores"
        what = f"{name}: recording {recorded['episodes']:,} episodes"
        note(what, recorded["seconds"], "s", hardware=hardware, **target(name, "data", options))
    family = name.split("-")[0]
    taken = read_json(results / f"training_{family}.json")["planners"][f"{name}/compdiffuser"]
    note(f"{name}: training the planner", taken["seconds"], "s", hardware=taken["device"], target=240)
    memory = taken["peak_memory"] / 2**30
    note(f"{name}: its memory on the GPU", memory, "GiB", hardware=taken["device"])


PARTS = {"data": data, "plan": plan, "episodes": episodes, "made": made}

if __name__ == "__main__":
    main()
