"""How long a planner takes with its network in onnxruntime, beside torch, and how far their plans differ.

    python benchmarks/onnx_speed.py --hardware "two CPU cores"

Both plan the same random recorded pairs with the same seeds, in turns, each with a fixed number of candidates in one
wave; the fastest of all times counts, since whatever else a machine does only adds to it. Writes
results/onnx_speed.json.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from figures import Figures

from compdiffuser import PlanConfig, Planner
from compdiffuser.planning.checkpoint import load
from compdiffuser.planning.sharing.exporting import export_onnx
from compdiffuser.planning.sharing.publishing import stored_pairs


@dataclass(frozen=True)
class Benchmark:
    model: str = "pointmaze-medium-stitch-v0"
    problems: int = 4
    times: int = 3
    """Times that each problem is planned by each."""
    chunks: int = 3
    candidates: int = 8
    results: Path = Path("results")
    hardware: str = "this machine"


def main(options: Benchmark) -> None:
    checkpoint = load(options.model)
    ends = stored_pairs(checkpoint, options.problems)
    assert ends is not None, f"{options.model} keeps no recorded states"
    config = PlanConfig(refine=None, wave=options.candidates)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        export_onnx(checkpoint, folder)
        exporting = time.perf_counter() - begun
        planners = {"torch": Planner(checkpoint, "cpu", config), "onnxruntime": Planner.from_onnx(folder, config)}
    taken: dict[str, list[list[float]]] = {name: [[] for _ in ends[0]] for name in planners}
    apart = 0.0
    for _ in range(options.times):
        for problem, (start, goal) in enumerate(zip(*ends, strict=True)):
            states = {}
            for name, planner in planners.items():
                begun = time.perf_counter()
                plan = planner.plan(
                    start, goal, n_chunks=options.chunks, n_candidates=options.candidates, seed=problem
                )  # fmt: skip
                taken[name][problem].append(time.perf_counter() - begun)
                states[name] = plan.states
            apart = max(apart, float(np.abs(states["torch"] - states["onnxruntime"]).max()))
    told = "python benchmarks/onnx_speed.py"
    about = {"model": options.model, "threads": torch.get_num_threads(), "seconds": taken}
    note = Figures(options.results / "onnx_speed.json", told, options.hardware, "onnx", about=about).note
    what = f"{options.candidates} candidates of {options.chunks} chunks"
    for name in planners:
        note(f"{what}, {name}", float(np.mean([min(each) for each in taken[name]])), "s")
    note("largest difference between both plans", 1e6 * apart, "µm", target=100)
    note("exporting the planner", exporting, "s")


if __name__ == "__main__":
    main(tyro.cli(Benchmark))
