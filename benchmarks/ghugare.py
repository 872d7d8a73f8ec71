"""The paper's first table whole: RvS and DT with and without augmentation, DD and GSC on Ghugare et al.'s PointMaze.

    python benchmarks/ghugare.py                                                    # all 24 cells
    python benchmarks/ghugare.py --only robotics-pointmaze-umaze-v0-rvs             # one cell
    python benchmarks/ghugare.py --only umaze --updates 50 --batch 16 --episodes 1 --seeds 1 --results out    # a trial

A cell is `compdiffuser train`, with all its seeds at once, and `compdiffuser eval`. One or two cells train at a time,
and evaluations, which need the processor, run beside them. GSC takes the planners that ship with the project: it only
evaluates. Each cell writes results/CELL.json, with its training time and speed, as soon as it is done. Started again,
the script passes over the cells that are, and goes on with training where it was cut off. `--dry` prints the commands.
"""

from __future__ import annotations

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reproduce
import tyro
from reproduce import CALM, Clock, Failed, compdiffuser, named, options_of, share_of_cores

from compdiffuser.baselines.training import whole_replays
from compdiffuser.files import read_json, write_json

DATASETS = tuple(f"robotics-pointmaze-{size}-v0" for size in ("umaze", "medium", "large"))
UPDATES = {"dd": 5_000, "dt": 40_000, "rvs": 200_000}
"""Ghugare et al. make a million updates of RvS and 200,000 of DT. Ours are fewer, and each result says how many."""
BATCH = {"dd": 256}


@dataclass(frozen=True)
class Cell:
    dataset: str
    method: str
    augment: str = "none"

    @property
    def name(self) -> str:
        return f"{self.dataset}-{self.method}" + ("" if self.augment == "none" else f"-{self.augment}")

    @property
    def trains(self) -> bool:
        return self.method != "gsc"


# GSC comes first, since it needs no data. Then methods take turns: one that is long to train beside one that is long to
# evaluate.
CELLS = (
    *(Cell(dataset, "gsc") for dataset in reversed(DATASETS)),
    *(Cell(dataset, method, augment) for augment in ("none", "sa", "ga") for dataset in DATASETS
      for method in ("dd", "dt", "rvs") if method != "dd" or augment == "none"),
)  # fmt: skip


@dataclass(frozen=True)
class Benchmark:
    only: tuple[str, ...] = ()
    """Only cells with one of these names, or whose name contains one of these words."""
    jobs: int = 6
    """Evaluations side by side; they share the cores."""
    trainers: int = 2
    """Trainings side by side, beside the evaluations; more than two only slow each other down."""
    updates: int | None = None
    """Updates of every agent; by default 200,000 of RvS, 40,000 of DT and 5,000 of DD."""
    batch: int | None = None
    """Rows per update and seed, where they should differ from the method's own."""
    seeds: int = 5
    """Agents trained side by side, and evaluation seeds. A planner is trained once."""
    episodes: int | None = None
    """Episodes per task and seed; by default the benchmark's own number."""
    device: str = "auto"
    compile: bool = True
    """Compile for training on a GPU. A method's cells have the same shapes: the first one compiles for all."""
    runs: Path = Path("runs/ghugare")
    results: Path = Path("results")
    dry: bool = False


def main() -> None:
    options = tyro.cli(Benchmark)
    chosen = choose(options.only)
    if options.dry:
        for cell in chosen:
            print(" && ".join("compdiffuser " + " ".join(part) for part in commands(cell, options)))
        return
    clock = Clock()
    needed = [cell.dataset for cell in chosen if cell.trains and not finished(cell, options)]
    with (
        ThreadPoolExecutor(1) as maker,
        ThreadPoolExecutor(options.trainers) as trainers,
        ThreadPoolExecutor(options.jobs) as evaluators,
    ):
        making = {name: maker.submit(compdiffuser, "data", "make", name) for name in DATASETS if name in needed}
        training = {
            cell: trainers.submit(train, cell, making.get(cell.dataset), options) for cell in chosen if cell.trains
        }
        done = list(evaluators.map(lambda cell: run(cell, training.get(cell), options), chosen))
    print(f"{sum(done)} of {len(done)} cells done in {clock.seconds:.0f} s", flush=True)
    sys.exit(0 if all(done) else 1)


def choose(words: tuple[str, ...]) -> list[Cell]:
    """The cells that words stand for."""
    known = {cell.name: cell for cell in CELLS}
    return [known[name] for name in named(known, words)]


def commands(cell: Cell, options: Benchmark) -> list[list[str]]:
    """What `compdiffuser` is asked to do for a cell: train, where it has to, and evaluate."""
    out = str(options.runs / cell.name)
    # Planners plan on the GPU. The others' networks are small: they act on the processor, and the GPU is left to those
    # who train.
    where = options.device if cell.method in ("dd", "gsc") else "cpu"
    asked: list[list[str]] = []
    if cell.trains:
        updates = updates_of(cell, options)
        training = ["train", cell.dataset, *options_of(method=cell.method, out=out, device=options.device)]
        training += options_of(steps=updates, checkpoint_every=max(updates // 4, 1))
        training += options_of(batch=options.batch or BATCH.get(cell.method))
        if cell.method != "dd":
            training += options_of(seeds_at_once=options.seeds, augment=cell.augment)
        asked.append(training if options.compile else [*training, "--no-compile"])
    how = {
        # One plan per episode: with new plans, a point that is led astray still roams a small maze and finds its goal.
        # One chunk has no overlaps to choose by, so DD's first candidate is its plan.
        "dd": [out, "--method", "dd", "--sampler", "parallel", "--candidates", "1", "--no-replan"],
        "gsc": [cell.dataset, "--sampler", "gsc", "--no-replan"],
    }
    evaluate = ["eval", *how.get(cell.method, [out, "--method", cell.method]), "--no-compile"]
    evaluate += options_of(
        seeds=options.seeds, workers=share_of_cores(options.jobs), device=where, out=result_of(cell, options),
        episodes=options.episodes,
    )  # fmt: skip
    return [*asked, evaluate]


def updates_of(cell: Cell, options: Benchmark) -> int:
    updates = options.updates or UPDATES[cell.method]
    return updates if cell.method == "dd" else whole_replays(updates)


def result_of(cell: Cell, options: Benchmark) -> Path:
    """Where a cell's evaluation lands, before the training's figures join it."""
    return options.runs / cell.name / "result.json"


def finished(cell: Cell, options: Benchmark) -> bool:
    """Whether a result is there, of as many updates and seeds as are asked for."""
    path = options.results / f"{cell.name}.json"
    if not path.exists():
        return False
    result = read_json(path)
    enough = len(result["seeds"]) == options.seeds and options.episodes in (None, result["episodes_per_task"])
    return enough and (not cell.trains or result.get("training", {}).get("steps") == updates_of(cell, options))


def train(cell: Cell, data: Future[str] | None, options: Benchmark) -> dict[str, float]:
    """Train a cell when its data is there, unless that was done before; the seconds it took."""
    if finished(cell, options) or already_trained(options.runs / cell.name, updates_of(cell, options)):
        return {}
    if data is not None:
        data.result()
    clock = Clock()
    compdiffuser(*commands(cell, options)[0], **CALM)
    return {"train": round(clock.seconds, 1)}


def run(cell: Cell, training: Future[dict[str, float]] | None, options: Benchmark) -> bool:
    """Evaluate a cell when it is trained, and write its result; what went wrong is told, and other cells go on."""
    if finished(cell, options):
        print(f"{cell.name}: done before", flush=True)
        return True
    folder = options.runs / cell.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        seconds = training.result() if training is not None else {}
        clock = Clock()
        compdiffuser(*commands(cell, options)[-1], **CALM)
        seconds["eval"] = round(clock.seconds, 1)
    except Failed as error:
        (folder / "error.txt").write_text(error.said)
        print(f"{cell.name}: {error}", flush=True)
        return False
    result = read_json(result_of(cell, options))
    result |= {"training": training_of(folder)} if cell.trains else {}
    write_json(
        options.results / f"{cell.name}.json", {**result, "command": told(cell, options), "wall_seconds": seconds}
    )
    print(f"{cell.name}: {result['success']:.0f} ± {result['std']:.0f} %, {seconds}", flush=True)
    return True


def told(cell: Cell, options: Benchmark) -> str:
    """The command that makes this cell alone."""
    names = ("updates", "batch", "seeds", "episodes", "device")
    return reproduce.command(f"python benchmarks/ghugare.py --only {cell.name}", options, names)


def already_trained(folder: Path, updates: int) -> bool:
    path = folder / "config.json"
    return path.exists() and read_json(path)["record"].get("outcome", {}).get("steps") == updates


def training_of(folder: Path) -> dict[str, Any]:
    """Time, speed and size of a training run."""
    trained = reproduce.training_of(folder)
    return {
        **trained,
        "updates_per_second": round(trained["steps"] / max(trained["seconds"], 1e-9), 1),
        "seeds_at_once": len(read_json(folder / "config.json").get("seeds", [0])),
    }


if __name__ == "__main__":
    main()
