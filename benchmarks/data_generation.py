"""How long a dataset takes to make, and whether what was made follows its recipe.

    python benchmarks/data_generation.py --name pointmaze-giant-stitch-v0 --workers 2

Makes the dataset from nothing in a temporary folder and writes results/data_generation.json. Run it on an idle
machine: the load it found when it began is among the figures, and so are the CPU seconds, which other work on the same
cores changes much less.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import tyro
from joblib.externals.loky import get_reusable_executor

from compdiffuser.data import generate, storage
from compdiffuser.data.mazes import Maze, maze
from compdiffuser.data.walking import uprightness
from compdiffuser.experts.policy import expert_for
from compdiffuser.files import write_json
from compdiffuser.presets import preset
from compdiffuser.types import Episodes


@dataclass(frozen=True)
class Benchmark:
    name: str = "pointmaze-giant-stitch-v0"
    """Dataset to make."""
    workers: int = 2
    """Worker processes."""
    episodes: int | None = None
    """Training episodes. Default: all."""
    out: Path = Path("results/data_generation.json")
    """Where the figures go."""


def main() -> None:
    options = tyro.cli(Benchmark)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{options.name}.npz"
        load, began = os.getloadavg()[0], time.perf_counter()
        policy = expert_for(preset(options.name))
        generate.make(options.name, options.episodes, options.workers, out=path, policy=policy)
        seconds = time.perf_counter() - began
        get_reusable_executor().shutdown(wait=True)  # the system counts a worker's time once it has ended
        train, validation = storage.load(path), storage.load(path, split="val")
        manifest = storage.manifest_of(path) or {}
    states = int(train.lengths.sum() + validation.lengths.sum())
    figures = {
        "command": f"python {' '.join(sys.argv)}",
        "name": options.name,
        "workers": options.workers,
        "cores": joblib.cpu_count(),
        "machine": platform.processor() or platform.machine(),
        "load_before": round(load, 2),
        "episodes": len(train) + len(validation),
        "states": states,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(os.times()[:4]), 1),
        "steps_per_second": round(states / seconds),
        "statistics": statistics(train, maze(preset(options.name).maze), legs=bool(preset(options.name).expert)),
        "sha256": manifest.get("sha256"),
        "versions": manifest.get("versions"),
    }
    write_json(options.out, figures)
    print(f"{figures['episodes']} episodes in {seconds:.1f} s; written to {options.out}")


def statistics(episodes: Episodes, layout: Maze, legs: bool) -> dict[str, Any]:
    """Step lengths, cells travelled, states in walls, when an episode comes within a metre of the centre of its last
    cell, and, of bodies with legs, the share of episodes that end on them.
    """
    positions = [episodes.observations[s : s + n, :2] for s, n in zip(episodes.starts, episodes.lengths, strict=True)]
    steps = np.concatenate([np.linalg.norm(np.diff(path, axis=0), axis=1) for path in positions])
    goals = [layout.center(layout.cell(path[-1])) for path in positions]
    near = [np.linalg.norm(path - goal, axis=1) <= layout.unit / 4 for path, goal in zip(positions, goals, strict=True)]
    travelled = [len(np.unique(layout.cells(path), axis=0)) - 1 for path in positions]
    ends = episodes.observations[episodes.starts + episodes.lengths - 1]
    return {
        "mean_cells_travelled": round(float(np.mean(travelled)), 2),
        "upright_episodes": round(float((uprightness(ends[:, 3:7]) > 0).mean()), 4) if legs else None,
        "mean_step": round(float(steps.mean()), 4),
        "largest_step": round(float(steps.max()), 4),
        "states_in_walls": int(layout.in_wall(episodes.observations[:, :2]).sum()),
        "median_steps_to_goal": float(np.median([int(flags.argmax()) for flags in near if flags.any()])),
    }


if __name__ == "__main__":
    main()
