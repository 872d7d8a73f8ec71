"""Every PointMaze figure of README and docs: one `compdiffuser eval` per cell, several side by side.

    python benchmarks/evaluate_pointmaze.py [--only WORD …] [--jobs 4] [--dry]

Each cell writes results/NAME.json; `compdiffuser report` turns those files into tables. `--dry` prints the commands.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tyro

from compdiffuser.presets import PRESETS

GIANT = "pointmaze-giant-stitch-v0"
CELLS: dict[str, list[str]] = {}
for name in (name for name in PRESETS if "pointmaze" in name):
    CELLS[f"{name}-replan"] = [name]
    CELLS[f"{name}-no-replan"] = [name, "--no-replan"]
for sampler in ("autoregressive", "autoregressive-backward", "parallel", "gsc"):
    CELLS[f"{GIANT}-{sampler}"] = [GIANT, "--sampler", sampler, "--no-replan"]
CELLS[f"{GIANT}-dd"] = ["{runs}/" + GIANT, "--method", "dd", "--sampler", "parallel", "--no-replan"]


@dataclass(frozen=True)
class Benchmark:
    only: tuple[str, ...] = ()
    """Only cells whose name contains one of these words."""
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
    chosen = [cell for cell in cells if not options.only or any(word in cell for word in options.only)]
    with ThreadPoolExecutor(options.jobs) as pool:
        codes = list(pool.map(lambda cell: run(cell, cells[cell], options), chosen))
    sys.exit(max(codes, default=0))


def run(cell: str, evaluation: list[str], options: Benchmark) -> int:
    arguments = [part.replace("{runs}", str(options.monolithic)) for part in evaluation]
    workers = max((os.cpu_count() or 1) // options.jobs, 1)
    command = [
        sys.executable, "-m", "compdiffuser", "eval", *arguments, "--seeds", str(options.seeds),
        "--workers", str(workers), "--device", options.device, "--out", str(options.results / f"{cell}.json"),
    ]  # fmt: skip
    if options.jobs > 1:
        command.append("--no-compile")  # compiling in many processes at once takes longer than it saves
    if options.episodes:
        command += ["--episodes", str(options.episodes)]
    if options.dry:
        print("compdiffuser", *command[3:])
        return 0
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    last = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    print(f"{cell}: {last[0] if done.returncode == 0 else last[-1:]} ({time.perf_counter() - began:.0f} s)", flush=True)
    return done.returncode


if __name__ == "__main__":
    main(CELLS)
