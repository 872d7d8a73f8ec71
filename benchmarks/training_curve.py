"""Success in the giant maze, one plan per episode, against the time that its planner was trained for.

    python benchmarks/train_pointmaze.py --only pointmaze-giant-stitch-v0 --seconds 160 --snapshots 10 20 40 80 \
        --out runs/curve --runs runs/curve-run --results out/curve.json
    python benchmarks/training_curve.py --run runs/curve-run/pointmaze-giant-stitch-v0-compdiffuser

Evaluates the planner in `--run` and those kept on its way, and writes results/training_curve.json; its last point is
the shipped planner, whose evaluation lies there already. Started again, the script passes over points that were
measured. A point that fails is told of and left out; the exit code is then 1.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from reproduce import compdiffuser, options_of, share_of_cores

from compdiffuser.evaluation.results import provenance
from compdiffuser.files import read_json, write_json

NAME = "pointmaze-giant-stitch-v0"


@dataclass(frozen=True)
class Benchmark:
    run: Path = Path("runs/curve-run") / f"{NAME}-compdiffuser"
    """Folder of a training with snapshots."""
    shipped: Path = Path("pretrained") / NAME
    """A planner trained for longer, the last point of the curve."""
    measured: Path = Path("results") / f"{NAME}-no-replan.json"
    """The shipped planner's evaluation."""
    seeds: int = 3
    episodes: int | None = None
    """Episodes per task; by default the benchmark's own number."""
    jobs: int = 1
    """Planners evaluated side by side."""
    device: str = "auto"
    plans: Path | None = None
    """Folder of plans that were made before, as `compdiffuser eval --plans` keeps them."""
    out: Path = Path("results/training_curve.json")


def main() -> None:
    options = tyro.cli(Benchmark)
    points: list[dict[str, Any]] = [curve_point(options.shipped, read_json(options.measured))]
    if options.out.exists():
        points += [entry for entry in read_json(options.out)["curve"] if entry["seconds"] != points[0]["seconds"]]
    known = {entry["seconds"] for entry in points}
    planners = [folder for folder in (options.run, *options.run.glob("after-*")) if trained_for(folder) not in known]
    planners.sort(key=trained_for, reverse=True)  # the better a planner, the sooner it is evaluated
    failed = False
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(point, folder, options): folder for folder in planners}
        for done in as_completed(running):
            try:
                points.append(done.result())
            except Exception as error:  # whatever it was, the other points are worth having
                print(f"{running[done]} failed: {error}", file=sys.stderr, flush=True)
                failed = True
                continue
            points.sort(key=lambda entry: float(entry["seconds"]))
            write_json(options.out, {"curve": points, **provenance("python benchmarks/training_curve.py")})
    sys.exit(1 if failed else 0)


def point(folder: Path, options: Benchmark) -> dict[str, Any]:
    """Seconds of training and success of one planner."""
    asked = options_of(
        device=options.device, seeds=options.seeds, workers=share_of_cores(options.jobs), episodes=options.episodes,
        plans=options.plans,
    )  # fmt: skip
    together = ["--no-compile"] if options.jobs > 1 else []
    summary = json.loads(compdiffuser("eval", str(folder), "--no-replan", "--json", *asked, *together))
    made = curve_point(folder, summary)
    told = f"{made['success']:.1f} ± {made['std']:.1f}"
    print(f"{made['seconds']:.0f} s ({made['training']}): {told}", file=sys.stderr, flush=True)
    return made


def curve_point(folder: Path, summary: dict[str, Any]) -> dict[str, Any]:
    """A point of the curve: how long the planner in `folder` was trained, and its evaluation."""
    trained = read_json(folder / "config.json")["record"]
    finished = trained["outcome"]["seconds"]
    kind = f"on the way to {finished:.0f} s" if folder.name.startswith("after-") else "finished"
    success = {name: summary[name] for name in ("success", "std", "per_task", "failures", "episodes", "seeds")}
    return {"seconds": trained_for(folder), "training": kind, "device": trained["device"], **success}


def trained_for(folder: Path) -> float:
    """Seconds of training behind a planner, finished or kept on the way."""
    _, _, kept = folder.name.partition("after-")
    return float(kept or read_json(folder / "config.json")["record"]["outcome"]["seconds"])


if __name__ == "__main__":
    main()
