"""The authors' samplers beside ours, and OGBench's agents beside our baselines, in one run on one machine.

    python benchmarks/against_release.py --release ../comp_diffuser_release --ogbench ../ogbench --hardware "one H200"

The checkouts are devinluo27/comp_diffuser_release and seohongpark/ogbench; what is not given, or cannot be imported, is
left out with a sentence. Samplers have the same K, candidates, denoising steps and guidance. Ours are timed with the
shipped network, and with the one of the paper's preset, which is nearly as large as the authors' (72 and 93 million
parameters). Networks as large as these have random weights here, which changes no time. Agents have an ant's sizes and
batches of 1,024.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import baseline_speed
import numpy as np
import torch
import tyro
from figures import Figures
from planning_speed import NAME, timed
from reproduce import Clock
from strangers import SAMPLERS, OGBench, Release
from torch import Tensor

from compdiffuser import Planner
from compdiffuser.baselines.goals import Experience, Trajectories
from compdiffuser.compose import ORDERS, Chains, Schedule, sample
from compdiffuser.compose.schedule import SamplerConfig
from compdiffuser.models.denoiser import Denoiser
from compdiffuser.models.runner import Runner
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.presets import preset
from compdiffuser.runs import choose_device
from compdiffuser.types import Episodes, UserError

ANT = (29, 8)
"""Numbers of an ant's observation, and of its action."""
SAMPLED, AGENTS = "against release", "against agents"
"""Groups of figures: a table each."""


@dataclass(frozen=True)
class Benchmark:
    out: Path = Path("results/against_release.json")
    hardware: str = "this machine"
    device: str = "auto"
    release: Path | None = None
    """Checkout of the authors' code."""
    ogbench: Path | None = None
    """Checkout of OGBench."""
    chunks: tuple[int, ...] = (3, 6, 9)
    """K."""
    candidates: int = 40
    steps: int = 50
    guidance: float = 2.0
    repeats: int = 3
    """Times of which the best counts."""
    methods: tuple[str, ...] = ("gcivl", "hiql")
    batch: int = 1024
    hidden: tuple[int, ...] | None = None
    """Widths of the agents' layers, for a trial."""
    seconds: float = 3.0
    """Time measured for each agent, at least."""
    threads: int = 1
    """Threads on a CPU."""


def main(options: Benchmark) -> None:
    device = choose_device(options.device)
    torch.set_num_threads(options.threads)
    figures = Figures(options.out, "python benchmarks/against_release.py", options.hardware, SAMPLED, add=True)
    for given, part in ((options.release, samplers), (options.ogbench, agents)):
        if given is None:
            print(f"{part.__name__} of others are left out: no checkout was given", flush=True)
            continue
        try:
            part(given, device, options, figures.note)
        except UserError as error:
            print(f"{part.__name__} of others are left out: {error}", flush=True)


def samplers(folder: Path, device: torch.device, options: Benchmark, note: Callable[..., None]) -> None:
    """Seconds of sampling, by K and order."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        release = Release(folder, device, options.steps, options.guidance)
    shipped = Planner.from_pretrained(NAME, device=str(device)).denoise
    large = Denoiser(recipe_for("paper", preset(NAME)).model).to(device).eval()
    ours = {"shipped network": shipped, "the paper's preset": Runner(large, device)}
    sizes = {"authors": release.parameters} | {
        name: sum(weight.numel() for weight in runner.denoiser.parameters()) for name, runner in ours.items()
    }
    told = f"{options.candidates} candidates, {options.steps} steps, guidance {options.guidance:g}"

    def best(call: Callable[[], object]) -> float:
        with contextlib.redirect_stderr(io.StringIO()):  # the authors' progress bars
            return timed(call, shipped, options.repeats)

    for order in SAMPLERS:
        for k in options.chunks:
            row, size = f"{order}, K = {k}, {told}", {"parameters": sizes["authors"]}
            theirs = best(partial(release.sample, order, k, options.candidates))
            note(f"{row}, the authors' code", theirs, "s", row=row, column="the authors' code, s", **size)
            for name, runner in ours.items():
                seconds = best(partial(draw, runner, order, k, options))
                size = {"parameters": sizes[name]}
                note(f"{row}, ours, {name}", seconds, "s", row=row, column=f"ours, {name}, s", **size)
                note(f"{row}, times faster, {name}", theirs / seconds, "×", row=row, column=f"times faster, {name}")


def draw(runner: Runner, order: str, chunks: int, options: Benchmark) -> Tensor:
    """Chunks by our sampler, with the paper's settings."""
    config = replace(SamplerConfig.paper(), steps=options.steps, guidance=options.guidance)
    model = runner.denoiser.config
    schedule = Schedule.build(runner.denoiser.formulation.sampling_levels, config, runner.device)
    ends = torch.zeros(options.candidates, model.dim, device=runner.device)
    lengths, seeds = torch.full((options.candidates,), chunks), torch.arange(options.candidates)
    chains = Chains.build(ends - 0.5, ends + 0.5, lengths, seeds)
    return sample(
        runner, chains, schedule, ORDERS[order](chains), horizon=model.horizon, overlap=model.overlap,
        guidance=config.guidance, whole=runner.whole,
    )  # fmt: skip


def agents(folder: Path, device: torch.device, options: Benchmark, note: Callable[..., None]) -> None:
    """Updates per second, each in its own loop."""
    data = walks(*ANT)
    ours = baseline_speed.Benchmark(
        batch=options.batch, hidden=options.hidden, seconds=options.seconds, threads=options.threads
    )
    experience = Experience(Trajectories.from_episodes(data, device=device))
    note = partial(note, group=AGENTS)
    widths = {f"{network}_hidden_dims": options.hidden for network in ("actor", "value") if options.hidden}
    settings = {"batch_size": options.batch, **widths}
    for method in options.methods:
        row = f"{method}, batches of {options.batch:,}"
        theirs = loop(OGBench(folder, method, data, settings), options.seconds)
        note(f"{row}, OGBench", theirs, "updates/s", row=row, column="OGBench, updates/s")
        speed, _, _ = baseline_speed.measure(method, 1, experience, device, ours)
        note(f"{row}, ours", speed, "updates/s", row=row, column="ours, updates/s")
        note(f"{row}, times faster", speed / theirs, "×", row=row, column="times faster")


def loop(agent: OGBench, seconds: float) -> float:
    """Updates per second, after some that compile."""
    for _ in range(10):
        agent.update()
    agent.wait()
    clock, done = Clock(), 0
    while clock.seconds < seconds:
        for _ in range(10):
            agent.update()
        done += 10
        agent.wait()
    return done / clock.seconds


def walks(width: int, motors: int, count: int = 1000, length: int = 201) -> Episodes:
    """Random walks with so many numbers in an observation and in an action."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (count * length, motors)).astype(np.float32)
    states = rng.normal(size=(count * length, width)).astype(np.float32)
    return Episodes.from_terminals(states, actions, np.arange(len(states)) % length == length - 1)


if __name__ == "__main__":
    main(tyro.cli(Benchmark))
