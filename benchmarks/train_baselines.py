"""Every figure of the baselines' table: each method on each PointMaze dataset, several seeds at once, on one GPU.

    python benchmarks/train_baselines.py                                  # all 18 cells
    python benchmarks/train_baselines.py --methods qrl --datasets pointmaze-giant-stitch-v0 --updates 1000000
    python benchmarks/train_baselines.py --updates 200 --episodes 1 --curve-episodes 1 --results out      # a trial

A cell is one process: it trains, evaluates the agents kept on the way (the success curve), and runs `compdiffuser eval`
on the last ones. Results go to results/DATASET-METHOD.json, times and curves to results/training_baselines.json;
`compdiffuser report` makes the tables. Cells that are cut off continue when they are started again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from compdiffuser.baselines.checkpoint import BaselineCheckpoint, load
from compdiffuser.baselines.presets import config_for
from compdiffuser.baselines.training import train_baseline, train_config
from compdiffuser.data import storage
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.rollout import evaluate
from compdiffuser.files import read_json, write_json
from compdiffuser.planning.checkpoint import choose_device
from compdiffuser.presets import preset

METHODS = ("gcbc", "gcivl", "gciql", "qrl", "crl", "hiql")
DATASETS = tuple(f"pointmaze-{size}-stitch-v0" for size in ("medium", "large", "giant"))


@dataclass(frozen=True)
class Benchmark:
    methods: tuple[str, ...] = METHODS
    datasets: tuple[str, ...] = DATASETS
    updates: int = 200_000
    """Updates of every agent."""
    seconds: float | None = None
    """Most seconds of training per cell."""
    seeds: int = 4
    """Agents trained side by side in each cell."""
    snapshots: int = 5
    """Points of the success curve, the last one included."""
    curve_episodes: int = 4
    """Episodes per task and seed at each point of the curve but the last."""
    episodes: int | None = None
    """Episodes per task and seed at the end; by default the benchmark's own number."""
    jobs: int = 2
    """Cells side by side: while one is evaluated on the processor, another trains."""
    batch: int | None = None
    hidden: tuple[int, ...] | None = None
    """Widths of the hidden layers, for a trial."""
    precision: str = "tf32"
    """tf32, float32 or bf16."""
    compile: bool = True
    device: str = "auto"
    runs: Path = Path("runs/baselines")
    results: Path = Path("results")
    keep_snapshots: bool = False
    inside: bool = False
    """For the script's own use: this process is a cell."""


def main() -> None:
    options = tyro.cli(Benchmark)
    if options.inside:
        run_cell(options.methods[0], options.datasets[0], options)
        return
    for name in options.datasets:
        subprocess.run([sys.executable, "-m", "compdiffuser", "data", "make", name], check=True, capture_output=True)
    path = options.results / "training_baselines.json"
    cells = [(method, dataset) for dataset in options.datasets for method in options.methods]
    with ThreadPoolExecutor(options.jobs) as pool:
        for (method, dataset), code in zip(cells, pool.map(start_cell, cells), strict=True):
            if code == 0:
                figures = read_json(path)["baselines"] if path.exists() else {}
                figures[f"{dataset}/{method}"] = read_json(folder(method, dataset, options) / "cell.json")
                write_json(path, {"command": "python benchmarks/train_baselines.py", "baselines": figures})
            else:
                print(f"{dataset}/{method} failed with exit code {code}", flush=True)


def start_cell(cell: tuple[str, str]) -> int:
    """Run a cell as a process of its own, with the options this script was given."""
    method, dataset = cell
    command = [sys.executable, *sys.argv, "--methods", method, "--datasets", dataset, "--inside"]
    return subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode


def folder(method: str, dataset: str, options: Benchmark) -> Path:
    return options.runs / f"{dataset}-{method}"


def run_cell(method: str, dataset: str, options: Benchmark) -> None:
    torch.set_num_threads(1)
    out, device = folder(method, dataset, options), choose_device(options.device)
    if (out / "cell.json").exists() and read_json(out / "cell.json")["steps"] == options.updates:
        print(f"{dataset}/{method}: done before", flush=True)
        return
    given = {"batch": options.batch, "hidden": options.hidden}
    config = config_for(method, preset(dataset), {name: value for name, value in given.items() if value})
    every = max(options.updates // options.snapshots, 1)
    training = train_config(
        config, options.updates, time_limit=options.seconds, precision=options.precision,
        checkpoint_every=every, log_every=max(every // 20, 1),
    )  # fmt: skip
    points = tuple(range(every, options.updates, every))
    trained = train_baseline(
        method, storage.load(dataset), preset(dataset), out, config=config, training=training, seeds=options.seeds,
        device=device, manifest=storage.manifest_of(storage.file_of(dataset)), progress=False, snapshots=points,
        compiled=None if options.compile else False,
    )  # fmt: skip
    outcome = trained.record["outcome"]
    print(f"{dataset}/{method}: {outcome['steps']} updates in {outcome['seconds']:.0f} s", flush=True)
    began = time.perf_counter()
    workers = max((os.cpu_count() or 1) // options.jobs, 1)
    curve = []
    with EnvironmentPool(preset(dataset), workers) as pool:
        for updates in points:
            if (younger := out / f"after-{updates}").is_dir():
                curve.append({"updates": updates, **point(load(younger, method), pool, options.curve_episodes, device)})
    result = final(out, method, dataset, workers, options)
    curve.append({"updates": outcome["steps"], "success": result["success"], "by_seed": result["success_by_seed"]})
    print(f"{dataset}/{method}: {[c['success'] for c in curve]}", flush=True)
    write_json(
        out / "cell.json",
        {
            **outcome,
            "seeds": options.seeds,
            "updates_per_second": round(outcome["steps"] / outcome["seconds"], 1),
            "parameters": trained.record["parameters"],
            "batch": config.batch,
            "precision": options.precision,
            "compiled": trained.record["compiled"],
            "device": trained.record["device"],
            "evaluation_seconds": round(time.perf_counter() - began, 1),
            "curve_episodes_per_task": options.curve_episodes,
            "curve": curve,
        },
    )
    if not options.keep_snapshots:
        for younger in out.glob("after-*"):
            shutil.rmtree(younger)


def point(checkpoint: BaselineCheckpoint, pool: EnvironmentPool, episodes: int, device: torch.device) -> dict[str, Any]:
    """Success of all seeds, over a few episodes."""
    by_seed = []
    for seed in range(len(checkpoint.seeds)):
        ended = evaluate(
            checkpoint.policy(seed, device), checkpoint.preset, episodes=episodes, seed=1000 + seed, pool=pool
        )
        by_seed.append(round(100.0 * float(np.mean([episode.success for episode in ended])), 2))
    return {"success": round(float(np.mean(by_seed)), 2), "by_seed": by_seed}


def final(out: Path, method: str, dataset: str, workers: int, options: Benchmark) -> dict[str, Any]:
    """The last agents through the command that anyone would use."""
    target = options.results / f"{dataset}-{method}.json"
    command = [
        sys.executable, "-m", "compdiffuser", "eval", str(out), "--method", method, "--seeds", str(options.seeds),
        "--workers", str(workers), "--device", options.device, "--out", str(target),
    ]  # fmt: skip
    if options.episodes:
        command += ["--episodes", str(options.episodes)]
    subprocess.run(command, check=True, capture_output=True)
    return read_json(target)


if __name__ == "__main__":
    main()
