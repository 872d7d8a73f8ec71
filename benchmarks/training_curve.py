"""Success in the giant maze, one plan per episode, against the time that its planner was trained for.

    python benchmarks/train_pointmaze.py --only pointmaze-giant-stitch-v0 --seconds 160 --snapshots 10 20 40 80 \
        --out runs/curve --runs runs/curve-run --results out/curve.json
    python benchmarks/training_curve.py --run runs/curve-run/pointmaze-giant-stitch-v0-compdiffuser

Evaluates the planner in `--run`, those kept on its way, and the shipped one, and writes results/training_curve.json.
A point that fails is told of and left out; the exit code is then 1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from compdiffuser.evaluation.results import provenance
from compdiffuser.files import read_json, write_json

NAME = "pointmaze-giant-stitch-v0"


@dataclass(frozen=True)
class Benchmark:
    run: Path = Path("runs/curve-run") / f"{NAME}-compdiffuser"
    """Folder of a training with snapshots."""
    shipped: Path = Path("pretrained") / NAME
    """A planner trained for longer, the last point of the curve."""
    seeds: int = 3
    episodes: int | None = None
    """Episodes per task; by default the benchmark's own number."""
    jobs: int = 1
    """Planners evaluated side by side."""
    device: str = "auto"
    out: Path = Path("results/training_curve.json")


def main() -> None:
    options = tyro.cli(Benchmark)
    planners = [*options.run.glob("after-*"), options.run, options.shipped]
    points: list[dict[str, Any]] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(point, folder, options): folder for folder in planners}
        for done in as_completed(running):
            try:
                points.append(done.result())
            except Exception as error:  # whatever it was, the other points are worth having
                told = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
                print(f"{running[done]} failed: {told}", file=sys.stderr, flush=True)
                continue
            points.sort(key=lambda entry: float(entry["seconds"]))
            write_json(options.out, {"curve": points, **provenance()})
    sys.exit(0 if len(points) == len(planners) else 1)


def point(folder: Path, options: Benchmark) -> dict[str, Any]:
    """Seconds of training and success of one planner."""
    workers = max((os.cpu_count() or 1) // options.jobs, 1)
    command = [
        sys.executable, "-m", "compdiffuser", "eval", str(folder), "--no-replan", "--json", "--device", options.device,
        "--seeds", str(options.seeds), "--workers", str(workers), *(["--no-compile"] if options.jobs > 1 else []),
        *(["--episodes", str(options.episodes)] if options.episodes else []),
    ]  # fmt: skip
    summary = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    trained = read_json(folder / "config.json")["record"]
    outcome = trained["outcome"]
    _, _, kept = folder.name.partition("after-")
    seconds = float(kept or outcome["seconds"])
    kind = f"on the way to {outcome['seconds']:.0f} s" if kept else "finished"
    success = {name: summary[name] for name in ("success", "std", "per_task", "failures", "episodes", "seeds")}
    print(f"{seconds:.0f} s ({kind}): {summary['success']:.1f} ± {summary['std']:.1f}", file=sys.stderr, flush=True)
    return {"seconds": seconds, "training": kind, "device": trained["device"], **success}


if __name__ == "__main__":
    main()
