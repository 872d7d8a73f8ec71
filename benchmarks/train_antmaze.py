"""Everything that AntMaze needs, from nothing, on one GPU: data, planners and controllers.

    python benchmarks/train_antmaze.py                                        # all five datasets
    python benchmarks/train_antmaze.py --only antmaze-giant-stitch-v0 --horizons 8 12 16 20 24 28

The expert comes first: `compdiffuser data expert ant`, or the shipped one. Data of the next dataset is made while the
one before it trains. Planners land in pretrained/NAME, controllers in pretrained/controllers/NAME, controllers of one
horizon in runs/NAME-controller-HORIZON; what planners took in results/training_antmaze.json. `--collect` writes that
file from the records of the shipped planners, and trains nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tyro

from compdiffuser.files import read_json, write_json

SECONDS = {
    "antmaze-medium-stitch-v0": 60,
    "antmaze-large-stitch-v0": 80,
    "antmaze-giant-stitch-v0": 150,
    "antmaze-medium-explore-v0": 100,
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
    collect: bool = False
    """Only gather what the planners in --out took."""
    out: Path = Path("pretrained")
    runs: Path = Path("runs")
    results: Path = Path("results/training_antmaze.json")


def main() -> None:
    options = tyro.cli(Benchmark)
    if options.collect:
        return collect(options, {})
    waited: dict[str, float] = {}
    given = ["--expert", str(options.expert)] if options.expert else []
    maker = ThreadPoolExecutor(1)
    making = {name: maker.submit(call, "data", "make", name, *given) for name in options.only}
    for name in options.only:
        began = time.perf_counter()
        making[name].result()
        waited[name] = time.perf_counter() - began
        planner, controller = options.runs / f"{name}-compdiffuser", options.runs / f"{name}-controller"
        call("train", name, "--time-limit", str(options.seconds or SECONDS[name]), "--out", str(planner))
        ship(planner, options.out / name)
        collect(options, waited)
        steps = ["--steps", str(options.controller_steps)]
        call("train-controller", name, *steps, "--out", str(controller))
        ship(controller, options.out / "controllers" / name)
        for horizon in options.horizons:
            out = ["--out", str(options.runs / f"{name}-controller-{horizon}")]
            call("train-controller", name, *steps, "--horizon", str(horizon), *out)


def collect(options: Benchmark, waited: Mapping[str, float]) -> None:
    """Write what the planners that are there took to train, and how long they waited for data, where that is known."""
    planners = read_json(options.results)["planners"] if options.results.exists() else {}
    for name in options.only:
        if (file := options.out / name / "config.json").exists():
            record = read_json(file)["record"]
            figures = {**record["outcome"], "parameters": record["parameters"], "batch": record["training"]["batch"]}
            given = {"waited_for_data": round(waited[name], 1)} if name in waited else {}
            planners[f"{name}/compdiffuser"] = {**figures, **given, "device": record["device"]}
    command = "python benchmarks/train_antmaze.py" + " --collect" * options.collect
    write_json(options.results, {"command": command, "planners": planners})


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
