"""Train shipped planners anew, each as its own config says: the same settings, data and number of updates.

    python benchmarks/retrain.py --only pointmaze-giant-stitch-v0              # one planner
    python benchmarks/retrain.py                                               # all, about an hour on one H200
    python benchmarks/retrain.py --only antmaze-giant-stitch-v0-15d --seed 1 --out out/seed-1

Data that is not there is recorded first. Planners land in OUT/NAME, in as many bits as the shipped ones; one that lies
there already is left alone, and a run that was cut off continues. Same settings do not mean same weights: a GPU adds up
in another order, and ants walk differently on another processor. Whether the data is the same is printed. A planner
that began with the weights of another (`train --begin-with`) is refused.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro
from reproduce import Clock, compdiffuser, named, options_of, ship

from compdiffuser import artifact
from compdiffuser.artifact import CONFIG
from compdiffuser.data import storage
from compdiffuser.diffusion.objective import ObjectiveConfig
from compdiffuser.files import pretrained_folder
from compdiffuser.planning import checkpoint
from compdiffuser.planning.training import train_planner
from compdiffuser.runs import choose_device
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import UserError

SHIPPED = pretrained_folder()


@dataclass(frozen=True)
class Benchmark:
    only: tuple[str, ...] = ()
    """Only planners with one of these names, or whose name contains one of these words."""
    updates: int | None = None
    """Of each; by default as many as the shipped planner had."""
    seed: int | None = None
    """Of the training; by default that of the shipped planner."""
    episodes: int | None = None
    """To record, where there is no data yet; by default as many as the shipped planner was trained on."""
    workers: int | None = None
    """Processes that record."""
    shipped: Path = SHIPPED
    out: Path = Path("out/pretrained")
    runs: Path = Path("runs/again")
    device: str = "auto"


def main() -> None:
    options = tyro.cli(Benchmark)
    planners = [path.parent.name for path in sorted(options.shipped.glob(f"*/{CONFIG}"))]
    wanted = named(planners, options.only)
    try:
        if not wanted:
            raise UserError(f"no planner in '{options.shipped}' is called {' or '.join(options.only) or 'anything'}")
        for name in wanted:
            retrain(name, options)
    except UserError as error:
        sys.exit(f"error: {error}")


def retrain(name: str, options: Benchmark) -> None:
    """Train the planner of that name, unless it lies in `out`."""
    if (options.out / name / CONFIG).exists():
        print(f"{name}: trained before", flush=True)
        return
    shipped, clock = checkpoint.load(options.shipped / name), Clock()
    dataset = shipped.preset
    if before := shipped.record.get("begun_with"):
        raise UserError(f"'{name}' began with the weights of '{before['planner']}', so its own settings are not enough")
    data = shipped.record["data"]
    if not storage.file_of(dataset.name).exists():
        episodes = data["episodes"] if options.episodes is None else options.episodes
        compdiffuser("data", "make", dataset.name, *options_of(episodes=episodes, workers=options.workers))
    manifest = storage.origin_of(dataset.name)[1]
    run = options.runs / name
    made = train_planner(
        storage.load(dataset.name), dataset, run, model=shipped.denoiser.config, config=settings(shipped, options),
        objective=ObjectiveConfig(**shipped.record["objective"]), recipe=shipped.record.get("recipe", "default"),
        device=choose_device(options.device), manifest=manifest, progress=sys.stderr.isatty(),
    )  # fmt: skip
    ship(run, options.out / name, bits_of(options.shipped / name))
    same = manifest is not None and manifest.get("sha256") == data.get("sha256")
    outcome = made.record["outcome"]
    print(
        f"{name}: {outcome['steps']:,} updates, {clock.seconds:.0f} s in all, "
        f"{'the same data as the shipped one' if same else 'other data than the shipped one'}",
        flush=True,
    )


def settings(shipped: checkpoint.Checkpoint, options: Benchmark) -> TrainConfig:
    """What a planner was trained with, but ended by its number of updates instead of by a clock."""
    before: dict[str, Any] = shipped.record["training"]
    updates = shipped.record["outcome"]["steps"] if options.updates is None else options.updates
    config = TrainConfig(**before | {"steps": updates, "time_limit": None})
    return config if options.seed is None else replace(config, seed=options.seed)


def bits_of(folder: Path) -> int:
    """8 where an artifact's network is in eight bits, else 16."""
    return 8 if any(part.dtype.itemsize == 1 for part in artifact.read(folder).parts["model"].values()) else 16


if __name__ == "__main__":
    main()
