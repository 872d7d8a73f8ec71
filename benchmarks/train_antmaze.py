"""Everything that AntMaze needs, from nothing, on one GPU: data, planners and controllers.

    python benchmarks/train_antmaze.py                                        # all five datasets
    python benchmarks/train_antmaze.py --only antmaze-giant-stitch-v0 --horizons 8 12 16 20 24 28

The expert comes first: `compdiffuser data expert ant`, or the shipped one. Data of the next dataset is made while the
one before it trains. Planners land in pretrained/NAME, controllers in pretrained/controllers/NAME, controllers of one
horizon in runs/NAME-controller-HORIZON; what planners took in results/training_antmaze.json. `--collect` writes that
file from the records of the shipped planners, and trains nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tyro
from reproduce import Clock, compdiffuser, options_of, ship, training_of, updating

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
    given = options_of(expert=options.expert)
    maker = ThreadPoolExecutor(1)
    making = {name: maker.submit(call, "data", "make", name, *given) for name in options.only}
    for name in options.only:
        clock = Clock()
        making[name].result()
        waited[name] = clock.seconds
        planner, controller = options.runs / f"{name}-compdiffuser", options.runs / f"{name}-controller"
        call("train", name, *options_of(time_limit=options.seconds or SECONDS[name], out=planner))
        ship(planner, options.out / name)
        collect(options, waited)
        steps = options.controller_steps
        asked = options_of(steps=steps, batch=4096, learning_rate=5e-4, frame="heading", out=controller)
        call("train-controller", name, *asked)
        ship(controller, options.out / "controllers" / name)
        for horizon in options.horizons:
            out = options.runs / f"{name}-controller-{horizon}"
            call("train-controller", name, *options_of(steps=steps, horizon=horizon, out=out))


def collect(options: Benchmark, waited: Mapping[str, float]) -> None:
    """Write what the planners that are there took to train, and how long they waited for data, where that is known."""
    with updating(options.results) as content:
        content["command"] = "python benchmarks/train_antmaze.py" + " --collect" * options.collect
        planners = content.setdefault("planners", {})
        for name in options.only:
            if (options.out / name / "config.json").exists():
                given = {"waited_for_data": round(waited[name], 1)} if name in waited else {}
                planners[f"{name}/compdiffuser"] = {**training_of(options.out / name), **given}


def call(*arguments: str) -> None:
    clock = Clock()
    compdiffuser(*arguments)
    print(f"compdiffuser {' '.join(arguments)}: {clock.seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
