"""Everything that a world with a learned controller needs, on one GPU: data, controllers, planners and ceilings.

    python benchmarks/train_worlds.py                                          # every humanoid maze, and soccer
    python benchmarks/train_worlds.py --datasets antsoccer-arena-stitch-v0 --stages record controller planner
    python benchmarks/train_worlds.py --datasets antsoccer-arena-stitch-v0 --stages planner --dims 17

The experts come first; the shipped ones will do. What is finished is not done again: data is known by its manifest, a
training by its folder, a figure by what made it. Several of these scripts may run side by side, for other datasets or
other stages. Planners land in OUT/NAME, those of the first 17 numbers of an observation in OUT/NAME-17d, controllers in
OUT/controllers/NAME with their heading estimator, where the body needs one, in `heading`; times of recording in
RESULTS/data_generation.json, those of training in RESULTS/training_WORLD.json. Figures of the *ceilings* in
`ceilings.py` go to RESULTS/NAME-CELL.json; `evaluate_worlds.py` measures the planners.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tyro
from reproduce import Clock, Failed, compdiffuser, options_of, ship, training_of, updating

from compdiffuser.artifact import CONFIG
from compdiffuser.cli.train import dimensions
from compdiffuser.data import storage
from compdiffuser.presets import PRESETS, Preset, preset
from compdiffuser.types import UserError

if TYPE_CHECKING:
    from measuring import Cell

FAMILIES = ("humanoid", "soccer")
"""Worlds of the default datasets; `train_antmaze.py` makes the ants'."""
STAGES = ("record", "controller", "planner", "evaluate")
CELLS = ("perfect", "perfect-true-heading", "experts", "recorded")
OWN = "own"


@dataclass(frozen=True)
class Benchmark:
    datasets: tuple[str, ...] = tuple(name for name, known in PRESETS.items() if known.domain.family in FAMILIES)
    """Datasets, one after the other."""
    stages: tuple[str, ...] = STAGES
    """What to do, of: record, controller, planner, evaluate."""
    episodes: int | None = None
    """Episodes to record; by default the dataset's."""
    dims: tuple[str, ...] = (OWN,)
    """Planners and controllers to train: `own` for the dataset's own dimensions, a number for so many first ones of an
    observation."""
    planner_seconds: float = 150
    """Training time of each planner."""
    heading_seconds: float = 40
    """Training time of each heading estimator."""
    controller_seconds: float = 120
    """Training time of each controller."""
    controller_batch: int = 4096
    """Transitions per update."""
    cells: tuple[str, ...] = CELLS
    """What to evaluate, of: perfect, perfect-true-heading, experts, recorded. Those that a world does not have are left
    out."""
    eval_episodes: int = 20
    """Episodes per task; of recorded plans, five times as many in all."""
    seeds: int = 1
    look_ahead: float | None = None
    """Metres of the plan that the controller keeps before the body; by default the body's."""
    step_limit: int | None = None
    """Steps of an episode; by default the paper's, and for recorded plans twice the episode's."""
    workers: int | None = None
    """Processes that record and simulate; by default one for each core."""
    bits: Literal[8, 16] = 16
    """Of a planner's shipped weights."""
    planner_options: str = ""
    """Passed on to `compdiffuser train`, as in --planner-options="--width 32 --depth 2"."""
    controller_options: str = ""
    """Passed on to `compdiffuser train-controller`."""
    device: str = "auto"
    runs: Path = Path("runs")
    out: Path = Path("pretrained")
    results: Path = Path("results")


def main() -> None:
    options = tyro.cli(Benchmark)
    do = {"record": record, "controller": controllers, "planner": planners, "evaluate": figures}
    try:
        checked(options)
        for name in options.datasets:
            for stage in (stage for stage in STAGES if stage in options.stages):
                clock = Clock()
                do[stage](options, preset(name))
                print(f"{name} {stage}: {clock.seconds:.0f} s", flush=True)
    except (UserError, Failed) as error:
        sys.exit(str(error))


def checked(options: Benchmark) -> None:
    """Raise UserError for a dataset, a stage, a cell or a dimension that there is not, before anything is done."""
    for what, given, known in (("stage", options.stages, STAGES), ("cell", options.cells, CELLS)):
        for name in given:
            if name not in known:
                raise UserError(f"unknown {what} '{name}'; known: {', '.join(known)}")
    for name in options.datasets:
        preset(name)
    for dims in options.dims:
        if dims != OWN and not (dims.isdigit() and int(dims) > 1):
            raise UserError(f"dims are '{OWN}' or how many first numbers of an observation are planned, not '{dims}'")


def record(options: Benchmark, dataset: Preset) -> None:
    """The data; a file that was made the same way is left alone."""
    from data_generation import description, made, note

    path = storage.file_of(dataset.name)
    speed = made(dataset.name, path, options.episodes, options.workers)
    if speed:
        note(options.results / "data_generation.json", dataset.name, speed | description(dataset.name, path))


def controllers(options: Benchmark, dataset: Preset) -> None:
    for dims in options.dims:
        controller(options, dataset, dims)


def named(dataset: Preset, dims: str) -> tuple[str, str | None]:
    """The name of what plans or follows so many dimensions, and the option that asks for them."""
    return (dataset.name, None) if dims == OWN else (dataset.planning(dimensions(dims)).label, dims)


def controller(options: Benchmark, dataset: Preset, dims: str) -> None:
    """The controller, and the estimator of its heading where observations do not hold it."""
    name, planned = named(dataset, dims)
    run, target = options.runs / f"{name}-controller", options.out / "controllers" / name
    body = dataset.domain.body
    estimated = body.has_legs and body.heading(np.zeros((1, body.width or 2))) is None
    heading = {"heading_steps": 1_000_000, "heading_time_limit": options.heading_seconds} if estimated else {}
    if not (target / CONFIG).exists():
        compdiffuser(
            "train-controller", dataset.name, "--json",
            *options_of(
                out=run, device=options.device, steps=1_000_000, time_limit=options.controller_seconds,
                batch=options.controller_batch, learning_rate=5e-4, dims=planned, **heading,
            ),
            *options.controller_options.split(),
        )  # fmt: skip
        if (run / "heading" / CONFIG).exists():
            ship(run / "heading", target / "heading")
        ship(run, target)
    note_training(options, dataset, "controllers", name, training_of(target))


def planners(options: Benchmark, dataset: Preset) -> None:
    for dims in options.dims:
        planner(options, dataset, dims)


def planner(options: Benchmark, dataset: Preset, dims: str) -> None:
    """The planner of the dataset's own dimensions, or of so many first ones."""
    name, planned = named(dataset, dims)
    run, target = options.runs / f"{name}-compdiffuser", options.out / name
    if not (target / CONFIG).exists():
        compdiffuser(
            "train", dataset.name, "--json",
            *options_of(out=run, device=options.device, time_limit=options.planner_seconds, dims=planned),
            *options.planner_options.split(),
        )  # fmt: skip
        ship(run, target, options.bits)
    note_training(options, dataset, "planners", f"{name}/compdiffuser", training_of(target))


def note_training(options: Benchmark, dataset: Preset, kind: str, name: str, took: dict[str, Any]) -> None:
    """Add what a training took to the file of its world: training_humanoidmaze.json, training_antsoccer.json."""
    with updating(options.results / f"training_{dataset.name.split('-')[0]}.json") as content:
        content.setdefault("command", "python benchmarks/train_worlds.py --stages controller planner")
        content.setdefault(kind, {})[name] = took


def figures(options: Benchmark, dataset: Preset) -> None:
    """One file for each cell that a world has; all episodes of a seed side by side."""
    import torch
    from measuring import cells_of, measure

    torch.set_num_threads(os.cpu_count() or 1)  # simulators rest while the controller thinks
    found: list[Cell] = cells_of(options, dataset)
    for cell in found:
        measure(cell, options)


if __name__ == "__main__":
    main()
