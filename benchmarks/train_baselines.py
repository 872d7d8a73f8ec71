"""Every figure of the baselines' table: each method on each dataset, several seeds at once, on one GPU.

    python benchmarks/train_baselines.py                                                  # all 24 cells
    python benchmarks/train_baselines.py --datasets pointmaze-medium-stitch-v0            # six of them
    python benchmarks/train_baselines.py --methods qrl --updates 1000000 --runs runs/million
    python benchmarks/train_baselines.py --datasets antsoccer-arena-stitch-v0 --methods gcbc gcivl hiql
    python benchmarks/train_baselines.py --updates 200 --episodes 1 --curve-episodes 1 --results out --runs out  # trial

A cell is one process: it trains, evaluates the agents kept on the way (the success curve), and runs `compdiffuser eval`
on the last ones. Results go to results/DATASET-METHOD.json, times and curves to results/training_baselines.json, each
as soon as its cell is done; `compdiffuser report` makes the tables. Cells that are cut off continue when they are
started again, with the curve's points that were measured. `--no-evaluate` only trains: the same command without it goes
on from there, on another machine as well, to which the folder of runs was copied.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import reproduce
import torch
import tyro
from reproduce import CALM, Clock, Failed, compdiffuser, options_of, share_of_cores, updating

from compdiffuser.baselines.checkpoint import BaselineCheckpoint, load
from compdiffuser.baselines.presets import config_for
from compdiffuser.baselines.training import train_baseline, train_config, whole_replays
from compdiffuser.data import storage
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.rollout import evaluate
from compdiffuser.files import read_json, write_json
from compdiffuser.presets import preset
from compdiffuser.runs import choose_device, end_with
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import UserError

METHODS = ("gcbc", "gcivl", "gciql", "crl", "hiql", "qrl")  # the cheapest come first
DATASETS = (*(f"pointmaze-{size}-stitch-v0" for size in ("medium", "large", "giant")), "antmaze-medium-stitch-v0")
ASKED = ("updates", "seconds", "seeds", "snapshots", "curve_episodes", "episodes", "batch", "hidden", "precision")
ACTS_ON = torch.device("cpu")  # small networks; on the GPU every step would wait for another cell's updates


@dataclass(frozen=True)
class Benchmark:
    methods: tuple[str, ...] = METHODS
    datasets: tuple[str, ...] = DATASETS
    updates: int = 60_000
    """Updates of every agent, rounded up to whole replays."""
    seconds: float | None = None
    """Most seconds of training per cell."""
    seeds: int = 3
    """Agents trained side by side in each cell."""
    snapshots: int = 5
    """Points of the success curve, the last one included."""
    curve_episodes: int = 4
    """Episodes per task and seed at each point of the curve but the last."""
    episodes: int | None = None
    """Episodes per task and seed at the end; by default the benchmark's own number."""
    data_episodes: int | None = None
    """Recorded episodes to learn from, for a trial; by default the dataset's."""
    jobs: int = 2
    """Cells side by side: while one is evaluated on the processor, another trains."""
    batch: int | None = None
    hidden: tuple[int, ...] | None = None
    """Widths of the hidden layers, for a trial."""
    precision: str = "tf32"
    """tf32, float32 or bf16."""
    compile: bool | None = None
    """Compile the losses on a GPU; by default where one cell runs at a time: compilers slow each other down."""
    device: str = "auto"
    runs: Path = Path("runs/baselines")
    results: Path = Path("results")
    keep_snapshots: bool = False
    evaluate: bool = True
    """Evaluate what is trained; else leave that to another call."""
    inside: int | None = None
    """For the script's own use: this process is a cell, and ends with the process of this number."""


def main() -> None:
    options = tyro.cli(Benchmark)
    if options.inside is not None:
        end_with(options.inside)
        try:
            run_cell(options.methods[0], options.datasets[0], options)
        except (UserError, Failed) as error:
            sys.exit(str(error))
        return
    for name in options.datasets:
        compdiffuser("data", "make", name, *options_of(episodes=options.data_episodes))
    sys.exit(0 if run_all(options) else 1)


def run_all(options: Benchmark) -> bool:
    """All cells, several side by side; whether all went well."""
    path = options.results / "training_baselines.json"
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        cells = [(method, dataset) for dataset in options.datasets for method in options.methods]
        running = {pool.submit(start_cell, cell): cell for cell in cells}
        for ended in as_completed(running):
            method, dataset = running[ended]
            if code := ended.result():
                print(f"{dataset}/{method} failed with exit code {code}", flush=True)
                failed += 1
            if code or not options.evaluate:
                continue
            with updating(path) as figures:
                figures["command"] = "python benchmarks/train_baselines.py"
                figures.setdefault("baselines", {})[f"{dataset}/{method}"] = read_json(
                    folder(method, dataset, options) / "cell.json"
                )
    return not failed


def start_cell(cell: tuple[str, str]) -> int:
    """Run a cell as a process of its own, with the options this script was given."""
    method, dataset = cell
    command = [sys.executable, *sys.argv, "--methods", method, "--datasets", dataset, "--inside", str(os.getpid())]
    return subprocess.run(command, env={**os.environ, **CALM}).returncode


def folder(method: str, dataset: str, options: Benchmark) -> Path:
    return options.runs / f"{dataset}-{method}"


def asked(options: Benchmark) -> dict[str, Any]:
    """What makes a cell another one than that of an earlier call."""
    values = asdict(options)
    names = (*ASKED, *(["data_episodes"] if options.data_episodes else []))
    return {name: list(values[name]) if isinstance(values[name], tuple) else values[name] for name in names}


def told(method: str, dataset: str, options: Benchmark, compiled: bool) -> str:
    """The command that makes this cell alone; it has the GPU to itself then, which matters where time is limited."""
    start = f"python benchmarks/train_baselines.py --methods {method} --datasets {dataset}"
    return reproduce.command(start, options, (*ASKED, "data_episodes"), **({"compile": True} if compiled else {}))


def done(out: Path, options: Benchmark) -> bool:
    path = out / "cell.json"
    return path.exists() and read_json(path).get("asked") == asked(options)


def snapshots(options: Benchmark) -> range:
    """The updates after which agents are kept: whole replays, so that a checkpoint falls on each."""
    updates = whole_replays(options.updates)
    every = whole_replays(math.ceil(updates / options.snapshots))
    return range(every, updates, every)


def run_cell(method: str, dataset: str, options: Benchmark) -> None:
    torch.set_num_threads(1)
    out = folder(method, dataset, options)
    if done(out, options):
        print(f"{dataset}/{method}: done before", flush=True)
        return
    given = {"batch": options.batch, "hidden": options.hidden}
    config = config_for(method, preset(dataset), {name: value for name, value in given.items() if value})
    points = snapshots(options)
    training = train_config(
        config, options.updates, time_limit=options.seconds, precision=options.precision,
        checkpoint_every=points.step, log_every=max(points.step // 20, 1),
    )  # fmt: skip
    if not trained(out, method, config, training, options.seeds):
        device = choose_device(options.device)
        train_baseline(
            method, storage.load(dataset), preset(dataset), out, config=config, training=training, seeds=options.seeds,
            device=device, manifest=storage.manifest_of(storage.file_of(dataset)), progress=False, snapshots=points,
            compiled=device.type == "cuda" and (options.jobs == 1 if options.compile is None else options.compile),
        )  # fmt: skip
    if options.evaluate:
        measure(out, method, dataset, options)


def trained(out: Path, method: str, config: Any, training: TrainConfig, seeds: int) -> bool:
    """Whether agents lie there that were trained to the end, with these settings."""
    if not (out / "config.json").exists():
        return False
    found = load(out, method)
    same = (found.config, len(found.seeds), found.record["training"]) == (config, seeds, training.to_dict())
    return same and "outcome" in found.record


def measure(out: Path, method: str, dataset: str, options: Benchmark) -> None:
    """Evaluate agents and those kept on their way, and write down the cell."""
    checkpoint = load(out, method)
    record, outcome = checkpoint.record, checkpoint.record["outcome"]
    print(f"{dataset}/{method}: {outcome['steps']} updates in {outcome['seconds']:.0f} s", flush=True)
    clock = Clock()
    workers = share_of_cores(options.jobs)
    curve = []
    with EnvironmentPool(preset(dataset).domain, workers) as pool:
        for updates in snapshots(options):
            if (younger := out / f"after-{updates}").is_dir():
                curve.append({"updates": updates, **point(younger, method, pool, options.curve_episodes)})
    result = final(out, method, dataset, workers, options)
    curve.append({"updates": outcome["steps"], "success": result["success"], "by_seed": result["success_by_seed"]})
    print(f"{dataset}/{method}: {[c['success'] for c in curve]}", flush=True)
    write_json(
        out / "cell.json",
        {
            **outcome,
            "command": told(method, dataset, options, record["compiled"]),
            "asked": asked(options),
            "seeds": options.seeds,
            "updates_per_second": round(outcome["steps"] / outcome["seconds"], 1),
            "parameters": record["parameters"],
            "batch": checkpoint.config.batch,
            "precision": options.precision,
            "compiled": record["compiled"],
            "device": record["device"],
            "evaluation_seconds": round(clock.seconds, 1),
            "curve_episodes_per_task": options.curve_episodes,
            "curve": curve,
        },
    )
    if not options.keep_snapshots:
        for younger in out.glob("after-*"):
            shutil.rmtree(younger)


def point(younger: Path, method: str, pool: EnvironmentPool, episodes: int) -> dict[str, Any]:
    """Success of all seeds, over a few episodes; kept beside the agents, for a cell that is cut off."""
    path = younger / f"success-{episodes}.json"
    if not path.exists():
        write_json(path, measured(load(younger, method), pool, episodes))
    return read_json(path)


def measured(checkpoint: BaselineCheckpoint, pool: EnvironmentPool, episodes: int) -> dict[str, Any]:
    by_seed = []
    for seed in range(len(checkpoint.seeds)):
        policy = checkpoint.policy(seed, ACTS_ON)
        ended = evaluate(policy, checkpoint.preset, episodes=episodes, seed=1000 + seed, pool=pool)
        by_seed.append(round(100.0 * float(np.mean([episode.success for episode in ended])), 2))
    return {"success": round(float(np.mean(by_seed)), 2), "by_seed": by_seed}


def final(out: Path, method: str, dataset: str, workers: int, options: Benchmark) -> dict[str, Any]:
    """The last agents through the command that anyone would use; half an evaluation stays in the run's folder."""
    path = out / "result.json"
    asked = options_of(
        method=method, seeds=options.seeds, workers=workers, device=ACTS_ON.type, out=path, episodes=options.episodes
    )  # fmt: skip
    compdiffuser("eval", str(out), "--no-compile", *asked)
    result: dict[str, Any] = read_json(path)
    write_json(options.results / f"{dataset}-{method}.json", result)
    return result


if __name__ == "__main__":
    main()
