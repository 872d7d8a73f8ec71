"""How long planning through the giant maze takes, on the machine it runs on.

    python benchmarks/planning_speed.py --out results/planning_speed_h200.json --hardware "one H200"
    python benchmarks/planning_speed.py --out results/planning_speed_cpu.json --hardware "two CPU cores"

Times are of the second call with the same shapes, as a server or a replanning agent would see; the first call, which
captures CUDA graphs, is listed too. Problems are random cells at least ten steps apart, not the benchmark's tasks.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from figures import Figures, certificates
from reproduce import Clock
from torch import Tensor

from compdiffuser import Plan, Planner
from compdiffuser.compose import ORDERS, Chains, Schedule, sample
from compdiffuser.compose.sample import Whole
from compdiffuser.compose.schedule import SamplerConfig
from compdiffuser.models.runner import Runner
from compdiffuser.planning.judge import Judge
from compdiffuser.planning.sampler import Sampler
from compdiffuser.presets import preset
from compdiffuser.types import Array

NAME = "pointmaze-giant-stitch-v0"
COMPILED = ", compiled network"


@dataclass(frozen=True)
class Benchmark:
    out: Path = Path("results/planning_speed.json")
    hardware: str = "this machine"
    device: str = "auto"
    problems: int = 100
    """Problems planned one by one."""
    batch: int = 100
    """Problems planned in one batch; 0 leaves that out."""
    chunks: tuple[int, ...] = (2, 3, 4, 6, 8, 9, 12, 16, 24, 32)
    """K whose sampling is timed."""
    candidates: int = 40
    """Candidates of the timed sampling."""


def main() -> None:
    options = tyro.cli(Benchmark)
    planner = Planner.from_pretrained(NAME, device=options.device)
    note = Figures(options.out, "python benchmarks/planning_speed.py", options.hardware).note
    starts, goals = problems(max(options.problems, options.batch))
    one_by_one(planner, starts, goals, options, note)
    for part, seconds in parts(planner, starts[: options.problems], goals[: options.problems]).items():
        note(f"one plan, automatic K, mean: {part}", seconds, "s")
    if options.batch:
        whole = timed(lambda: planner.plan_batch(starts[: options.batch], goals[: options.batch]), planner, repeats=1)
        note(
            f"{options.batch} problems in one batch, automatic K",
            whole,
            "s",
            **({"target": 2} if on_gpu(planner) else {}),
        )
    sampling(planner, options, note)
    if on_gpu(planner):
        sampling(Planner.from_pretrained(NAME, device=options.device, compiled=True), options, note, COMPILED)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    note("peak memory of the process", peak, "MiB")


def one_by_one(planner: Planner, starts: Array, goals: Array, options: Benchmark, note: Callable[..., None]) -> None:
    """One plan at a time, with automatic K."""
    clock = Clock()
    planner.plan(starts[0], goals[0])
    note("one plan, automatic K, first call", clock.seconds, "s", **({"target": 1.5} if on_gpu(planner) else {}))
    seconds, plans = second_calls(planner, starts[: options.problems], goals[: options.problems])
    note("one plan, automatic K, median", float(np.median(seconds)), "s", target=0.05 if on_gpu(planner) else 1.2)
    late = float(np.percentile(seconds, 95))
    note("one plan, automatic K, 95th percentile", late, "s", target=0.12 if on_gpu(planner) else 5)
    note("one plan, automatic K, slowest", max(seconds), "s")
    certified, wrong = certificates(plans)
    note("share of these plans certified", certified / len(plans), "")
    note("certified plans that pass through a wall", wrong, "")


def second_calls(planner: Planner, starts: Array, goals: Array, candidates: int = 64) -> tuple[list[float], list[Plan]]:
    """Seconds of planning each problem alone, for the second time, and the plans."""
    seconds, plans = [], []
    for start, goal in zip(starts, goals, strict=True):
        planner.plan(start, goal, n_candidates=candidates)  # captures this problem's shapes
        clock = Clock()
        plans.append(planner.plan(start, goal, n_candidates=candidates))
        seconds.append(clock.seconds)
    return seconds, plans


def parts(planner: Planner, starts: Array, goals: Array) -> dict[str, float]:
    """Mean seconds of the parts of planning each problem alone, for the second time."""
    sums = dict.fromkeys(("ways and scaffolds", "denoising", "judging", "all else"), 0.0)
    for start, goal in zip(starts, goals, strict=True):
        planner.plan(start, goal)
        with counted(Sampler, planner) as denoising, counted(Judge, planner) as judging:
            clock = Clock(planner.device)
            search = planner.search(start, goal)
            laid = clock.seconds
            while not search.done:
                planner.advance([search])
            planner.result(search)
            known = {"ways and scaffolds": laid, "denoising": sum(denoising), "judging": sum(judging)}
            known["all else"] = clock.seconds - sum(known.values())
        for part, seconds in known.items():
            sums[part] += seconds / len(starts)
    return sums


@contextmanager
def counted(kind: Any, planner: Planner) -> Iterator[list[float]]:
    """The seconds of every call of a class's objects, with the device's work for it."""
    usual, seconds = kind.__call__, []

    def call(*arguments: Any, **options: Any) -> Any:
        clock = Clock(planner.device)
        made = usual(*arguments, **options)
        seconds.append(clock.seconds)
        return made

    kind.__call__ = call
    try:
        yield seconds
    finally:
        kind.__call__ = usual


def sampling(planner: Planner, options: Benchmark, note: Callable[..., None], kind: str = "") -> None:
    """The paper's sampler (50 deterministic steps, guidance 2) against K, and the wavefront against the sequence.

    `kind` ends the names of what is noted.
    """
    config = SamplerConfig.paper()
    schedule = Schedule.build(planner.denoise.denoiser.formulation.sampling_levels, config, planner.device)
    for k in options.chunks:
        ends = torch.zeros(options.candidates, planner.model.dim, device=planner.device)
        lengths, seeds = torch.full((options.candidates,), k), torch.arange(options.candidates)
        chains = Chains.build(ends - 0.5, ends + 0.5, lengths, seeds)

        def draw(order: str, chains: Chains = chains, whole: Whole | None = planner.denoise.whole) -> Tensor:
            return sample(
                planner.denoise, chains, schedule, ORDERS[order](chains),
                horizon=planner.model.horizon, overlap=planner.model.overlap, guidance=config.guidance, whole=whole,
            )  # fmt: skip

        for order in ("autoregressive", "parallel", *(("sequential",) if k in (3, 6, 9) else ())):
            target = {"target": 0.1} if (order, k) == ("autoregressive", 9) and on_gpu(planner) else {}
            name = f"{order}, {options.candidates} candidates, 50 steps, guidance 2, K = {k}{kind}"
            note(name, timed(partial(draw, order), planner), "s", **target)
        if k in (3, 6, 9):
            gap = (draw("sequential") - draw("autoregressive")).abs().max()
            note(f"largest difference between wavefront and sequence, K = {k}{kind}", float(gap), "")
            if on_gpu(planner):
                gap = (draw("autoregressive", whole=None) - draw("autoregressive")).abs().max()
                note(f"largest difference between one graph and its rounds, K = {k}{kind}", float(gap), "")


def on_gpu(planner: Planner | Runner) -> bool:
    return planner.device.type == "cuda"


def timed(call: Callable[[], object], planner: Planner | Runner, repeats: int = 3) -> float:
    """Best of `repeats`, after one call that is not counted."""
    best = float("inf")
    for attempt in range(repeats + 1):
        clock = Clock(planner.device)
        call()
        if attempt or not on_gpu(planner):
            best = min(best, clock.seconds)
    return best


def problems(count: int) -> tuple[Array, Array]:
    """Random starts and goals [P, 2] at least ten cells apart."""
    layout = preset(NAME).maze
    assert layout is not None
    rng = np.random.default_rng(0)
    cells = layout.free_cells
    pairs: list[tuple[Array, Array]] = []
    while len(pairs) < count:
        start, goal = (cells[rng.integers(len(cells))] for _ in range(2))
        if layout.distances(goal)[start] >= 10:
            pairs.append((layout.center(start) + rng.uniform(-1, 1, 2), layout.center(goal) + rng.uniform(-1, 1, 2)))
    return np.array([s for s, _ in pairs], np.float32), np.array([g for _, g in pairs], np.float32)


if __name__ == "__main__":
    main()
