"""The paper's ablations, and what each of our additions is worth: one `compdiffuser eval` per cell.

    python benchmarks/ablations.py [--only WORD …] [--preset paper] [--jobs 2] [--dry]

With `--preset default` the shipped planners are evaluated; with another one those in RUNS/PRESET-DATASET, as
`compdiffuser train DATASET --preset paper --out runs/paper-DATASET` leaves them. Cells of planners that are not there
are told of and left out. Other words name weights likewise: planners trained with `--seed 1` into runs/seed-1-DATASET
are those of `--preset seed-1 --only DATASET-ours`.

Each cell writes results/ablations/PRESET-CELL.json, and one that lies there already, made with the same weights and as
many seeds and episodes, is passed over: a run that was cut off continues.

Cells follow plans by time and make one plan per episode, as the paper's ablations do, unless their name says otherwise.
`added` gives the paper's sampler one of our additions at a time; `removed` takes one at a time from our planner.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import tyro
from evaluate_pointmaze import Benchmark as Evaluation
from evaluate_pointmaze import run
from measuring import fingerprint
from planning_speed import timed
from reproduce import named, updating

from compdiffuser.artifact import CONFIG
from compdiffuser.baselines.decision_diffuser import monolithic
from compdiffuser.compose import Chains
from compdiffuser.evaluation.results import provenance
from compdiffuser.files import pretrained_folder, read_json, write_json
from compdiffuser.models import Denoiser, DenoiserConfig
from compdiffuser.models.runner import Runner
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.planning.sampler import Sampler
from compdiffuser.presets import PRESETS
from compdiffuser.reporting.ablations import ADDITIONS, COUNTS, EXPLORE, GIANT, STITCH, TIMED, TIMES
from compdiffuser.runs import choose_device

ONE_PLAN = ("--no-replan",)
BY_TIME = ("--follow", "time")
STAYING_DOWN = ("--no-rise",)
"""Ants that fall, so that what differs is the plan."""
OURS = {
    "resampling": ("--steps", "10", "--eta", "1", "--repeats", "8", "--guidance", "1"),
    "refinement": ("--refine", "1"),
    "reconstruction": ("--score", "reconstruction", "--no-support"),
    "support": ("--score", "reconstruction"),
    "scaffold": ("--scaffold", "0.25"),
    "automatic-k": ("--chunks", "auto"),
    "progress": ("--follow", "progress"),
}
"""What gives the paper's sampler an addition."""
WITHOUT = {
    "resampling": ("--repeats", "1"),
    "refinement": ("--refine", "none"),
    "reconstruction": ("--score", "overlap"),
    "support": ("--no-support",),
    "scaffold": ("--scaffold", "none"),
    "automatic-k": ("--chunks", "{count}"),
    "progress": ("--follow", "time"),
}
"""What takes it from ours."""


@dataclass(frozen=True)
class Benchmark(Evaluation):
    preset: str = "default"
    """Whose planners: default (the shipped ones), paper, authors, or another word that folders begin with."""
    sampler: str = "paper"
    """The paper's sampler, or its authors' own."""
    seeds: int = 3
    runs: Path = Path("runs")
    """Where planners of other presets lie."""
    hardware: str = "this machine"
    """What sampling times say of where they were measured."""
    results: Path = Path("results/ablations")


def cells(sampler: str) -> dict[str, tuple[str, list[str]]]:
    """Every cell that is an evaluation: its dataset, and the options of `compdiffuser eval`."""
    made: dict[str, tuple[str, list[str]]] = {}

    def add(dataset: str, ending: str, *options: str, replan: bool = False, follow: tuple[str, ...] = BY_TIME) -> None:
        down = STAYING_DOWN if dataset.startswith("ant") else ()
        made[f"{dataset}-{ending}"] = dataset, [*options, *follow, *(() if replan else ONE_PLAN), *down]

    for dataset in STITCH:
        for order in ("parallel", "autoregressive"):
            add(dataset, order, "--sampler", sampler, "--order", order)
            add(dataset, f"{order}-replan", "--sampler", sampler, "--order", order, replan=True)
        if dataset.startswith("point"):
            add(dataset, "autoregressive-backward", "--sampler", sampler, "--order", "autoregressive-backward")
    for order in ("autoregressive", "gsc"):
        for count in COUNTS:
            add(GIANT, f"{order}-k{count}", "--sampler", sampler, "--order", order, "--chunks", str(count))
    for dataset in (GIANT, "antmaze-giant-stitch-v0", EXPLORE):
        preset = PRESETS[dataset]
        add(dataset, "ours", follow=())
        for name in ADDITIONS:
            follow = () if name == "progress" else BY_TIME
            add(dataset, f"added-{name}", "--sampler", sampler, *OURS[name], follow=follow)
            without = [option.format(count=preset.chunks.count) for option in WITHOUT[name]]
            if name != "scaffold" or preset.chunks.scaffold is not None:
                add(dataset, f"removed-{name}", *without, follow=())
    return made


def main() -> None:
    options = tyro.cli(Benchmark)
    known = cells(options.sampler)
    asked = [*known, *(f"{dataset}-time-{what}" for dataset in TIMES for what in TIMED)]

    def measure(cell: str) -> bool:
        if cell not in known:
            return time_cell(cell, options)
        return evaluate_cell(cell, *known[cell], options)

    with ThreadPoolExecutor(options.jobs) as pool:
        done = list(pool.map(measure, named(asked, options.only)))
    sys.exit(0 if all(done) else 1)


def planner_of(dataset: str, options: Benchmark) -> Path:
    """The folder of a dataset's planner."""
    if options.preset == "default":
        return pretrained_folder() / dataset
    return options.runs / f"{options.preset}-{dataset}"


def evaluate_cell(cell: str, dataset: str, evaluation: list[str], options: Benchmark) -> bool:
    """Evaluate a cell unless its figure lies there; whether all is well."""
    folder, name = planner_of(dataset, options), f"{options.preset}-{cell}"
    if not (folder / CONFIG).exists():
        print(f"{name}: left out, there is no planner at '{folder}'", flush=True)
        return True
    about = {"weights": options.preset, "cell": cell, "made_of": fingerprint(folder), "asked": evaluation}
    path = options.results / f"{name}.json"
    if path.exists():
        before = read_json(path)
        same = all(before.get(key) == value for key, value in about.items())
        episodes = options.episodes or PRESETS[dataset].evaluation.episodes
        enough = len(before["seeds"]) >= options.seeds and before["episodes_per_task"] >= episodes
        if same and before.get("complete") and enough:
            print(f"{name}: measured before, {before['success']}%", flush=True)
            return True
    planner = dataset if options.preset == "default" else str(folder)
    if not run(name, [planner, *evaluation], options):
        return False
    if not options.dry:
        with updating(path) as result:
            result |= about
    return True


def time_cell(cell: str, options: Benchmark) -> bool:
    """Time the paper's sampler on networks of the preset's size; how long it takes does not depend on the weights."""
    dataset, what = cell.split("-time-")
    name = f"{options.preset}-{cell}"
    path = options.results / f"{name}.json"
    if options.dry or path.exists():
        print(f"{name}: {'timed here' if options.dry else 'measured before'}", flush=True)
        return True
    seconds, model, count = sampling_time(dataset, what, options)
    entry = {
        "weights": options.preset, "cell": cell, "dataset": dataset, "what": what, "seconds": round(seconds, 4),
        "chunks": count, "horizon": model.config.horizon, "candidates": 40,
        "parameters": sum(weights.numel() for weights in model.parameters()), "hardware": options.hardware,
    }  # fmt: skip
    write_json(path, {**entry, **provenance("python benchmarks/ablations.py")})
    print(f"{name}: {seconds:.3f} s", flush=True)
    return True


def sampling_time(dataset: str, what: str, options: Benchmark) -> tuple[float, Denoiser, int]:
    """Seconds for 40 candidates by the paper's 50 steps, the network, and its number of chunks."""
    preset, count = PRESETS[dataset], TIMES[dataset]
    if what == "dd":
        preset = monolithic(replace(preset, chunks=replace(preset.chunks, count=count)))
        count = 1
    model: DenoiserConfig = recipe_for(options.preset, preset).model
    device = choose_device(options.device)
    torch.manual_seed(0)
    denoiser = Denoiser(model)
    config = PlanConfig.paper("parallel" if what == "dd" else what)
    sampler = Sampler(Runner(denoiser, device), config.sampler)
    ends = torch.zeros(40, model.dim, device=device)
    chains = Chains.build(ends - 0.5, ends + 0.5, torch.full((40,), count), torch.arange(40))
    return timed(lambda: sampler(chains), sampler.denoise), denoiser, count


if __name__ == "__main__":
    main()
