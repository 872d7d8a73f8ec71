"""How long datasets take to make, and how good what was made is.

    python benchmarks/data_generation.py --only pointmaze-giant-stitch-v0 antmaze-medium-stitch-v0 --workers 2
    python benchmarks/data_generation.py --only antmaze-medium-stitch-v0 --episodes 200    # time a part …
    python benchmarks/data_generation.py --only antmaze-medium-stitch-v0 --made            # … and describe the whole

Makes each dataset from nothing in a temporary folder and adds its entry to results/data_generation.json; other entries
stay. `--made` describes the datasets that `compdiffuser data make` has made, and leaves their times as they were. Run
it on an idle machine: the load it found when it began is among the figures, and so are the CPU seconds, which other
work on the same cores changes much less.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import tyro
from joblib.externals.loky import get_reusable_executor
from reproduce import Clock, updating

from compdiffuser.data import generate, storage
from compdiffuser.data.statistics import statistics
from compdiffuser.experts.policy import experts_for
from compdiffuser.presets import preset


@dataclass(frozen=True)
class Benchmark:
    only: tuple[str, ...] = ("pointmaze-giant-stitch-v0",)
    """Datasets to make."""
    workers: int = 2
    """Worker processes."""
    episodes: int | None = None
    """Training episodes. Default: all."""
    made: bool = False
    """Make nothing: describe the datasets that are already made."""
    out: Path = Path("results/data_generation.json")
    """Where the figures go."""


def main() -> None:
    options = tyro.cli(Benchmark)
    for name in options.only:
        if options.made:
            entry = description(name, storage.locate(name))
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{name}.npz"
                entry = made(name, path, options.episodes, options.workers) | description(name, path)
        note(options.out, name, entry)


def note(out: Path, name: str, entry: dict[str, Any]) -> None:
    """Add a dataset's entry to the figures; what it does not tell stays as it was."""
    with updating(out) as figures:
        entries = figures.setdefault("datasets", {})
        entries[name] = {**entries.get(name, {}), **entry}
    print(f"{name}: written to {out}", flush=True)


def made(name: str, path: Path, episodes: int | None, workers: int | None) -> dict[str, Any]:
    """Make a dataset: how long that takes, as its entry's `speed`; nothing where it is there, or part of it was."""
    begun = any(path.parent.glob(f".{path.stem}-*.work"))
    before = path.stat().st_mtime_ns if path.exists() else None
    load, cpu, clock = os.getloadavg()[0], cpu_seconds(), Clock()
    generate.make(name, episodes, workers, out=path, steersmen=experts_for(preset(name)))
    seconds = clock.seconds
    get_reusable_executor().shutdown(wait=True)  # the system counts a worker's time once it has ended
    if begun or path.stat().st_mtime_ns == before:
        return {}
    manifests = [storage.manifest_of(path) or {}, storage.manifest_of(storage.validation_of(path)) or {}]
    states = sum(manifest["states"] for manifest in manifests)
    speed = {
        "command": f"python {' '.join(sys.argv)}",
        "workers": workers or joblib.cpu_count(),
        "cores": joblib.cpu_count(),
        "machine": platform.processor() or platform.machine(),
        "load_before": round(load, 2),
        "episodes": sum(manifest["episodes"] for manifest in manifests),
        "states": states,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds() - cpu, 1),
        "steps_per_second": round(states / seconds),
    }
    return {"speed": speed}


def cpu_seconds() -> float:
    """Seconds of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


def description(name: str, path: Path) -> dict[str, Any]:
    """The figures of a made dataset's training episodes, and which file they are of."""
    manifest = storage.manifest_of(path) or {}
    kept = ("source", "recipe", "seed", "episodes", "states", "sha256", "versions")
    return {
        "data": {key: manifest.get(key) for key in kept},
        "statistics": statistics(storage.load(path), preset(name)),
    }


if __name__ == "__main__":
    main()
