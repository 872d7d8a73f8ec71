"""Plans of 2 to 256 chunks through the giant maze: what they take, and whether they hold together.

    python benchmarks/long_chains.py --hardware "one H200"
    python benchmarks/long_chains.py --chunks 2 4 8 16 32 64 --candidates 4 --hardware "two CPU cores" \\
        --out results/long_chains_cpu.json

One plan for each K, from one far corner to another, with all candidates made at once: the sampler's time, the most
memory, and of the best candidate its worst seam and how far it misses its ends, in metres and in steps of the data.
Many more chunks than a way needs only loiter; seams and ends have to hold all the same. Times are of the last call.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from figures import Figures
from reproduce import Clock, command

from compdiffuser import Planner
from compdiffuser.planning.plan import Plan

NAME = "pointmaze-giant-stitch-v0"
START, GOAL = (0.5, 0.3), (52.2, 36.1)


@dataclass(frozen=True)
class Benchmark:
    chunks: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128, 256)
    """K."""
    candidates: int = 16
    """Of each plan; one wave."""
    calls: int = 2
    """Of which the last is timed."""
    out: Path = Path("results/long_chains.json")
    hardware: str = "this machine"
    device: str = "auto"


def main() -> None:
    options = tyro.cli(Benchmark)
    planner = Planner.from_pretrained(NAME, device=options.device)
    planner = planner.with_config(wave=options.candidates, refine=None, scaffold=0.25)
    figures = Figures(
        options.out, command("python benchmarks/long_chains.py", options, ("chunks", "candidates", "calls", "device")),
        options.hardware, "chains", add=True, about={"planner": NAME, "start": START, "goal": GOAL},
    )  # fmt: skip
    step = planner.calibration.step * float(planner.normalizer.units.max())
    for k in options.chunks:
        plan, seconds, memory = planned(planner, k, options)
        seam, end = soundness(plan)
        measured = {
            "time, s": seconds, "memory, MiB": memory, "longest step, m": seam, "missed ends, m": end,
            "longest step, steps of the data": seam / step, "length, m": plan.length,
        }  # fmt: skip
        for column, value in measured.items():
            figures.note(f"K = {k}: {column}", value, "", row=f"K = {k}", column=column)


def planned(planner: Planner, k: int, options: Benchmark) -> tuple[Plan, float, float]:
    """A plan of K chunks, the seconds it took and the MiB that were in use at most."""
    on_gpu = planner.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(options.calls):
        clock = Clock(planner.device)
        plan = planner.plan(START, GOAL, n_chunks=k, n_candidates=options.candidates)
        seconds = clock.seconds
    peak = torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return plan, seconds, peak / 2**20


def soundness(plan: Plan) -> tuple[float, float]:
    """The longest step of a plan, seams included, and how far it misses its ends, in metres."""
    steps = np.linalg.norm(np.diff(plan.states, axis=0), axis=1)
    ends = (plan.states[0] - plan.start, plan.states[-1] - plan.goal)
    return float(steps.max()), float(max(np.linalg.norm(end) for end in ends))


if __name__ == "__main__":
    main()
