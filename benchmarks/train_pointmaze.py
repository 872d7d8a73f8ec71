"""Train the PointMaze planners that ship with the project, from nothing, on one GPU.

    python benchmarks/train_pointmaze.py                       # all six, about 16 minutes on one H200
    python benchmarks/train_pointmaze.py --only pointmaze-giant-stitch-v0 --snapshots 20 40 80 160

Data is made while the planner before it trains. Each planner lands in pretrained/ with its config and log;
time, updates and memory go to results/training_pointmaze.json.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tyro
from reproduce import Clock, compdiffuser, ship, training_of

from compdiffuser.baselines.decision_diffuser import monolithic
from compdiffuser.data import storage
from compdiffuser.files import read_json, write_json
from compdiffuser.planning.training import train_planner
from compdiffuser.presets import preset
from compdiffuser.runs import choose_device
from compdiffuser.training.config import TrainConfig

SECONDS = {
    "pointmaze-giant-stitch-v0": 450,
    "pointmaze-large-stitch-v0": 100,
    "pointmaze-medium-stitch-v0": 80,
    "robotics-pointmaze-umaze-v0": 35,
    "robotics-pointmaze-medium-v0": 65,
    "robotics-pointmaze-large-v0": 80,
}


@dataclass(frozen=True)
class Benchmark:
    only: tuple[str, ...] = tuple(SECONDS)
    """Datasets to train on."""
    method: str = "compdiffuser"
    """compdiffuser, or dd for the monolithic planner."""
    seconds: float | None = None
    """Training time of each, where it should differ from the table in this file."""
    snapshots: tuple[float, ...] = ()
    """Also keep the planner as it was after so many seconds."""
    batch: int = 1024
    out: Path = Path("pretrained")
    runs: Path = Path("runs")
    results: Path = Path("results/training_pointmaze.json")
    device: str = "auto"


def main() -> None:
    options = tyro.cli(Benchmark)
    maker = ThreadPoolExecutor(1)
    making = {name: maker.submit(compdiffuser, "data", "make", name) for name in options.only}
    device = choose_device(options.device)
    figures = read_json(options.results) if options.results.exists() else {"planners": {}}
    for name in options.only:
        clock = Clock()
        making[name].result()
        waited = round(clock.seconds, 1)
        record = preset(name) if options.method == "compdiffuser" else monolithic(preset(name))
        config = TrainConfig(
            steps=10_000_000, time_limit=options.seconds or SECONDS[name], batch=options.batch, checkpoint_every=10_000
        )
        run = options.runs / f"{name}-{options.method}"
        train_planner(
            storage.load(name), record, run, config=config, device=device, method=options.method,
            manifest=storage.manifest_of(storage.file_of(name)), progress=False, snapshots=options.snapshots,
        )  # fmt: skip
        ship(run, options.out / name)
        taken = {**training_of(run), "waited_for_data": waited}
        figures["planners"][f"{name}/{options.method}"] = taken
        print(f"{name}: {taken}", flush=True)
        write_json(options.results, {"command": "python benchmarks/train_pointmaze.py", **figures})


if __name__ == "__main__":
    main()
