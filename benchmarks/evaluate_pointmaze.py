"""Every PointMaze figure of README and docs: one `compdiffuser eval` per cell, several side by side.

    python benchmarks/evaluate_pointmaze.py [--only WORD …] [--jobs 4] [--dry]

Each cell writes results/NAME.json; `compdiffuser report` turns those files into tables. `evaluation` in each says how
long it took, and how much memory. `--dry` prints the commands.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tyro
from reproduce import Failed, measured, named, options_of, share_of_cores, updating

from compdiffuser.presets import PRESETS

GIANT = "pointmaze-giant-stitch-v0"
CELLS: dict[str, list[str]] = {}
for name in (name for name, record in PRESETS.items() if record.domain.family == "point"):
    CELLS[f"{name}-replan"] = [name]
    CELLS[f"{name}-no-replan"] = [name, "--no-replan"]
    CELLS[f"{name}-noise"] = [name, "--scaffold", "none", "--no-replan"]
for sampler in ("autoregressive", "autoregressive-backward", "parallel", "gsc"):
    CELLS[f"{GIANT}-{sampler}"] = [GIANT, "--sampler", sampler, "--no-replan"]
CELLS[f"{GIANT}-dd"] = ["{runs}/" + GIANT, "--method", "dd", "--sampler", "parallel", "--no-replan"]


@dataclass(frozen=True)
class Benchmark:
    only: tuple[str, ...] = ()
    """Only cells with one of these names, or whose name contains one of these words."""
    jobs: int = 1
    """Cells evaluated side by side."""
    seeds: int = 5
    episodes: int | None = None
    """Episodes per task; by default the benchmark's own number."""
    device: str = "auto"
    monolithic: Path = Path("runs/dd")
    """Where `train_pointmaze.py --method dd --out` left the monolithic planner."""
    results: Path = Path("results")
    dry: bool = False


def main(cells: dict[str, list[str]]) -> None:
    """Evaluate the cells that were asked for; each is a name and what follows `compdiffuser eval`."""
    options = tyro.cli(Benchmark)
    with ThreadPoolExecutor(options.jobs) as pool:
        done = list(pool.map(lambda cell: run(cell, cells[cell], options), named(cells, options.only)))
    sys.exit(0 if all(done) else 1)


def run(cell: str, evaluation: list[str], options: Benchmark) -> bool:
    """Evaluate a cell and tell what came of it; whether that went well."""
    arguments = ["eval", *(part.replace("{runs}", str(options.monolithic)) for part in evaluation)]
    arguments += options_of(
        seeds=options.seeds, workers=share_of_cores(options.jobs), device=options.device, episodes=options.episodes,
        out=options.results / f"{cell}.json",
    )  # fmt: skip
    if options.jobs > 1:
        arguments.append("--no-compile")  # compiling in many processes at once takes longer than it saves
    if options.dry:
        print("compdiffuser", *arguments)
        return True
    try:
        told, took = measured(*arguments)
    except Failed as error:
        print(f"{cell}: {error}", flush=True)
        return False
    with updating(options.results / f"{cell}.json") as result:
        result["evaluation"] = {**took, "side_by_side": options.jobs}
    print(f"{cell}: {told.strip().splitlines()[0]} ({took['seconds']:.0f} s)", flush=True)
    return True


if __name__ == "__main__":
    main(CELLS)
