"""Everything that AntMaze needs, from nothing, on one GPU: data, planners and controllers.

    python benchmarks/train_antmaze.py                                        # all five datasets
    python benchmarks/train_antmaze.py --only antmaze-giant-stitch-v0 --horizons 8 12 16 20 24 28

The expert comes first: `compdiffuser data expert ant`, or the shipped one. Data of the next dataset is made while the
one before it trains. Planners land in pretrained/NAME, controllers in pretrained/controllers/NAME, controllers of one
horizon in runs/NAME-controller-HORIZON.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tyro

SECONDS = {
    "antmaze-medium-stitch-v0": 60,
    "antmaze-large-stitch-v0": 80,
    "antmaze-giant-stitch-v0": 150,
    "antmaze-medium-explore-v0": 90,
    "antmaze-large-explore-v0": 150,
}
"""The point's planner for the giant maze is good after 50 s (results/training_curve.json)."""


@dataclass(frozen=True)
class Benchmark:
    only: tuple[str, ...] = tuple(SECONDS)
    """Datasets to train on."""
    seconds: float | None = None
    """Training time of each planner, where it should differ from the table in this file."""
    controller_steps: int = 50_000
    """Updates of each controller."""
    horizons: tuple[int, ...] = ()
    """Also train controllers of one horizon."""
    expert: Path | None = None
    """Folder of the expert that walks; by default the shipped one."""
    out: Path = Path("pretrained")
    runs: Path = Path("runs")


def main() -> None:
    options = tyro.cli(Benchmark)
    given = ["--expert", str(options.expert)] if options.expert else []
    maker = ThreadPoolExecutor(1)
    making = {name: maker.submit(call, "data", "make", name, *given) for name in options.only}
    for name in options.only:
        making[name].result()
        planner, controller = options.runs / f"{name}-compdiffuser", options.runs / f"{name}-controller"
        call("train", name, "--time-limit", str(options.seconds or SECONDS[name]), "--out", str(planner))
        ship(planner, options.out / name)
        steps = ["--steps", str(options.controller_steps)]
        call("train-controller", name, *steps, "--out", str(controller))
        ship(controller, options.out / "controllers" / name)
        for horizon in options.horizons:
            out = ["--out", str(options.runs / f"{name}-controller-{horizon}")]
            call("train-controller", name, *steps, "--horizon", str(horizon), *out)


def call(*arguments: str) -> None:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "compdiffuser", *arguments], check=True)
    print(f"compdiffuser {' '.join(arguments)}: {time.perf_counter() - began:.0f} s", flush=True)


def ship(run: Path, target: Path) -> None:
    """Copy what a checkpoint is made of, and its log; not the state that a run resumes from."""
    target.mkdir(parents=True, exist_ok=True)
    for file in (*run.glob("*.safetensors"), run / "config.json", run / "log.csv"):
        shutil.copy(file, target / file.name)


if __name__ == "__main__":
    main()
