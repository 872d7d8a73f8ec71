"""What weights in eight bits cost: the same random problems planned with them and with half precision, side by side.

    python benchmarks/fewer_bits.py --names pointmaze-giant-stitch-v0 antmaze-giant-stitch-v0 --problems 100

Certified plans, those of them that touch no wall, and how far the errors of reconstruction move, for each planner as it
is stored and as `train_worlds.py --bits 8` would store it. Each planner's figures are written when they are measured.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from figures import Figures, certificates
from reproduce import ship
from world_speed import ends

from compdiffuser import Planner
from compdiffuser.planning.checkpoint import locate


@dataclass(frozen=True)
class Benchmark:
    names: tuple[str, ...] = ("pointmaze-giant-stitch-v0", "antmaze-giant-stitch-v0")
    problems: int = 100
    candidates: int = 64
    out: Path = Path("results/fewer_bits.json")
    hardware: str = "this machine"
    device: str = "auto"


def main() -> None:
    options = tyro.cli(Benchmark)
    told = "python benchmarks/fewer_bits.py"
    figures = Figures(options.out, told, options.hardware, "bits", add=True)
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            small = Path(folder) / "planner"
            ship(locate(name), small, bits=8)
            for bits, stored in ((16, locate(name)), (8, small)):
                measured = planned(Planner.from_pretrained(str(stored), device=options.device), options)
                for column, value in {"megabytes": megabytes(stored), **measured}.items():
                    row = f"{name}, {bits} bits"
                    figures.note(f"{row}: {column}", value, "", row=row, column=column)


def planned(planner: Planner, options: Benchmark) -> dict[str, float]:
    """What became of the problems: counts, and the mean of the chosen plans' scores."""
    starts, goals = ends(planner.preset, options.problems)
    plans = [
        planner.plan(start, goal, n_candidates=options.candidates, seed=number)
        for number, (start, goal) in enumerate(zip(starts, goals, strict=True))
    ]
    certified, wrong = certificates(plans)
    return {
        "problems": len(plans),
        "certified": certified,
        "certified, but not sound": wrong,
        "score": float(np.mean([plan.score for plan in plans])),
        "metres": float(np.mean([plan.length for plan in plans])),
    }


def megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.glob("*.safetensors")) / 1e6


if __name__ == "__main__":
    main()
