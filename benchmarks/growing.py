"""Worlds of one, two and four times the giant maze's side: data, training, planning and evaluation, from nothing.

    python benchmarks/growing.py --hardware "one H200"             # all sizes
    python benchmarks/growing.py --sides 1 2 --seconds 180 360     # some of them
    python benchmarks/growing.py --only-record --workers 12        # their data, while a GPU does something else

The data of the next size is recorded while the one before trains. Pairs of random places at least half the longest way
apart tell how many plans are certified, how many of these are wrong, and what a plan takes; the world's own tasks tell
success. Run again, it goes on where it was cut off: data, training and finished sizes are kept. Success, times, memory
and data of each size go to results/growing.json.
"""

from __future__ import annotations

import resource
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from figures import Figures, certificates
from reproduce import Clock, compdiffuser, options_of, training_of, updating

from compdiffuser import Planner
from compdiffuser.data import storage
from compdiffuser.domains.generated import longest_way
from compdiffuser.files import read_json
from compdiffuser.presets import Preset, preset
from compdiffuser.types import Array

ROWS, COLS = 12, 16
"""Of the giant maze."""
TARGETS = {2: 98, 4: 90}
"""Success that is aimed at, in per cent."""


@dataclass(frozen=True)
class Benchmark:
    sides: tuple[float, ...] = (1, 2, 4)
    """Times the giant maze's side."""
    seconds: tuple[float, ...] = (180, 360, 720)
    """Training time for each."""
    maze_seed: int = 0
    episodes: int | None = None
    """Episodes to record; by default as many for each free cell as the giant maze has."""
    pairs: int = 50
    """Random problems that are planned one by one."""
    eval_episodes: int = 20
    """Of each task."""
    candidates: int = 256
    """Most fresh candidates of a plan."""
    width: int | None = None
    """Of the network; by default the recipe's."""
    depth: int | None = None
    batch: int | None = None
    runs: Path = Path("runs/growing")
    out: Path = Path("results/growing.json")
    hardware: str = "this machine"
    device: str = "auto"
    workers: int | None = None
    only_record: bool = False
    """Record the data of these sizes and measure nothing else."""


def main() -> None:
    options = tyro.cli(Benchmark)
    if options.only_record:
        for side in options.sides:
            recorded(name_of(side, options.maze_seed), options)
        return
    before = read_json(options.out) if options.out.exists() else {}
    about: dict[str, Any] = {"sizes": before.get("sizes", {})}
    figures = Figures(
        options.out, "python benchmarks/growing.py", options.hardware, "growing", add=True, about=about
    )  # fmt: skip
    wanted = [
        (side, seconds, name)
        for side, seconds in zip(options.sides, options.seconds, strict=True)
        if about["sizes"].get(name := name_of(side, options.maze_seed)) != asked(options, seconds)
    ]
    with ThreadPoolExecutor(1) as maker:
        making = {name: maker.submit(recorded, name, options) for _, _, name in wanted}
        for side, seconds, name in wanted:
            measure(name, side, seconds, options, figures, making[name])
            about["sizes"][name] = asked(options, seconds)
            figures.note(f"{name}: done", 1, "")


def name_of(side: float, seed: int) -> str:
    """The dataset of a maze of so many times the giant's side."""
    return f"pointmaze-{round(ROWS * side)}x{round(COLS * side)}-seed-{seed}-stitch"


def asked(options: Benchmark, seconds: float) -> dict[str, Any]:
    """What a size was measured with: measured again where it differs."""
    kept = ("episodes", "pairs", "eval_episodes", "candidates", "width", "depth", "batch", "hardware")
    return {"seconds": seconds, **{name: value for name, value in asdict(options).items() if name in kept}}


def recorded(name: str, options: Benchmark) -> float | None:
    """Record a dataset, unless it is there; the seconds that took, where they are known."""
    there, clock = storage.file_of(name).exists(), Clock()
    compdiffuser("data", "make", name, *options_of(episodes=options.episodes, workers=options.workers))
    with updating(options.runs / "recording.json") as seconds:
        if not there:
            seconds[name] = clock.seconds
        return seconds.get(name)


def measure(
    name: str, side: float, seconds: float, options: Benchmark, figures: Figures, making: Future[float | None]
) -> None:
    """All figures of one size."""
    dataset, run = preset(name), options.runs / name
    assert dataset.maze is not None
    row = f"{'×'.join(map(str, dataset.maze.walls.shape))} cells"

    def note(column: str, value: float, unit: str, **more: Any) -> None:
        figures.note(f"{name}: {column}", value, unit, row=row, column=f"{column}, {unit}".rstrip(", "), **more)

    note("free cells", len(dataset.maze.free_cells), "")
    recording = making.result()
    note("data", int(storage.load(name).lengths.sum()), "states")
    if recording is not None:
        note("recording", recording, "s")
    sizes = options_of(width=options.width, depth=options.depth, batch=options.batch)
    compdiffuser(
        "train", name, "--out", str(run), "--time-limit", str(seconds), "--steps", "100000000", "--device",
        options.device, *sizes, TORCHINDUCTOR_COMPILE_THREADS="4",
    )  # fmt: skip
    trained = training_of(run)
    note("training", trained["seconds"], "s")
    note("updates", trained["steps"], "")
    for column, value, unit in planned(run, dataset, options):
        note(column, value, unit)
    result = options.runs / f"{name}.json"
    compdiffuser(
        "eval", str(run), "--seeds", "1", "--episodes", str(options.eval_episodes), "--out", str(result), "--device",
        options.device, *options_of(workers=options.workers, candidates=options.candidates),
    )  # fmt: skip
    aim = {"target": TARGETS[int(side)], "bound": "at least"} if side in TARGETS else {}
    note("success", read_json(result)["success"], "%", **aim)


def planned(run: Path, dataset: Preset, options: Benchmark) -> list[tuple[str, float, str]]:
    """What plans between random places take, and what they come to."""
    planner = Planner.from_pretrained(run, device=options.device)
    clock = Clock(planner.device)
    _ = planner.roadmap
    built = clock.seconds
    starts, goals = problems(dataset, options.pairs)
    planner.plan(starts[0], goals[0], n_candidates=options.candidates)  # captures CUDA graphs
    if planner.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    plans, times = [], []
    for number, (start, goal) in enumerate(zip(starts, goals, strict=True)):
        clock = Clock(planner.device)
        plans.append(planner.plan(start, goal, seed=number, n_candidates=options.candidates))
        times.append(clock.seconds)
    on_gpu = planner.device.type == "cuda"
    peak = torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    certified, wrong = certificates(plans)
    return [
        ("roadmap", built, "s"),
        ("chunks of a plan", float(np.median([len(plan.chunks) for plan in plans])), ""),
        ("plan, median", float(np.median(times)), "s"),
        ("plan, 95th percentile", float(np.quantile(times, 0.95)), "s"),
        ("memory of planning", peak / 2**20, "MiB"),
        ("certified", 100 * certified / len(plans), "%"),
        ("certified, and wrong", wrong, ""),
    ]


def problems(dataset: Preset, count: int) -> tuple[Array, Array]:
    """Centres of random free cells, with noise, that lie at least half the longest way apart: [count, 2] each."""
    maze = dataset.maze
    assert maze is not None
    rng = np.random.default_rng(0)
    cells, least = maze.free_cells, longest_way(maze) / 2
    pairs = []
    while len(pairs) < count:
        start = cells[rng.integers(len(cells))]
        steps = maze.distances(start)
        far = [cell for cell in cells if steps[cell] >= least]
        if far:
            pairs.append((start, far[rng.integers(len(far))]))
    places = maze.center(np.array(pairs)) + rng.uniform(-1, 1, (count, 2, 2))
    return places[:, 0], places[:, 1]


if __name__ == "__main__":
    main()
