"""How many updates per second each baseline makes, with one seed and with eight at once, and how much memory it takes.

    python benchmarks/baseline_speed.py --out results/baseline_speed_h200.json --hardware "one H200"
    python benchmarks/baseline_speed.py --out results/baseline_speed_cpu.json --hardware "two CPU cores"

Batch 1024 and hidden layers 512 × 3, as in OGBench (RvS, DT and DD have their own), on made-up episodes of a point in
two dimensions: speed does not depend on what is learned. Compiling and capturing come before the clock starts. Each
figure is written when it is measured, and takes the place of one of its name: a second call adds to the file.
"""

from __future__ import annotations

import ctypes
import gc
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from figures import Figures
from reproduce import Clock

from compdiffuser.baselines import METHODS, Sizes
from compdiffuser.baselines.decision_diffuser import monolithic
from compdiffuser.baselines.goals import Experience, Trajectories
from compdiffuser.baselines.learner import GoalLearner
from compdiffuser.baselines.policy import GoalPolicy
from compdiffuser.baselines.training import train_config
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.models.denoiser import Denoiser, DenoiserConfig
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.presets import Preset, preset
from compdiffuser.runs import choose_device
from compdiffuser.training.chunks import ChunkLearner
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.loop import WARM_REPLAYS, Learner, Updater
from compdiffuser.types import Episodes

RESET_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Benchmark:
    out: Path = Path("results/baseline_speed.json")
    hardware: str = "this machine"
    device: str = "auto"
    methods: tuple[str, ...] = ("gcivl", "gcbc", "gciql", "qrl", "crl", "hiql", "rvs", "dt", "dd")
    seeds: tuple[int, ...] = (1, 8)
    """Agents side by side; the target for eight is told where one is timed before."""
    batch: int | None = None
    """Transitions per update and seed; by default the method's own."""
    hidden: tuple[int, ...] | None = None
    """Widths of the hidden layers, where a method has them; by default the method's own."""
    threads: int = 2
    """Threads on a CPU."""
    episodes: int = 70
    """Episodes side by side for which actions are timed."""
    seconds: float = 3.0
    """Time measured for each figure, at least."""
    replay: int = 50
    """Updates per CUDA graph."""
    precision: str = "tf32"
    """On a GPU: tf32, float32 or bf16, which is what DD always has."""
    compile: bool = True
    """Compile the losses on a GPU, about half a minute for each figure."""


def main() -> None:
    options = tyro.cli(Benchmark)
    device = choose_device(options.device)
    torch.set_num_threads(options.threads)
    experience = Experience(Trajectories.from_episodes(walks(), device=device))
    note = Figures(options.out, "python benchmarks/baseline_speed.py", options.hardware, "baselines", add=True).note
    on_gpu = device.type == "cuda"
    for method in options.methods:
        aims = {1: 2000} if method == "gcivl" and on_gpu else {}
        precision = "bf16" if method == "dd" else options.precision
        variant = f", {precision}" if on_gpu and precision != "tf32" else ""
        variant += ", not compiled" if on_gpu and not options.compile else ""
        row = f"{method}{variant}"
        for seeds in options.seeds if method != "dd" else (1,):
            speed, memory, preparation = measure(method, seeds, experience, device, options)
            count = f"{seeds} seed{'s' if seeds > 1 else ''}"
            told = f"{method}, {count} at once{variant}"
            target = {"target": aims[seeds], "bound": "at least"} if seeds in aims else {}
            if 1 in aims and seeds == 1:
                aims[8] = round(speed / 2)  # eight at no less than half the speed of one
            compiled = options.compile and on_gpu
            prepared = {"preparation": round(preparation, 1), "compiled": compiled}
            note(told, speed, "updates/s", row=row, column=f"updates/s, {count}", **prepared, **target)
            if memory is not None:
                note(f"{told}, peak memory", memory / 2**30, "GiB", row=row, column=f"GiB, {count}")
        if method == "dd":
            continue  # it plans: see planning_speed.py
        at_once = f"{options.episodes} episodes at once"
        steps = acting(method, device, options)
        note(f"{row}, acting in {at_once}", steps, "steps/s", row=row, column=f"steps/s, {at_once}")


def measure(
    method: str, seeds: int, experience: Experience, device: torch.device, options: Benchmark
) -> tuple[float, int | None, float]:
    """Updates per second, bytes taken at the peak (None where nobody tells), and seconds of preparation."""
    before = memory_at_rest(device)
    learner, training = (
        monolithic_learner(device, options) if method == "dd" else agents(method, seeds, experience, device, options)
    )
    speed, peak, preparation = timed_updates(learner, training, device, options.seconds)
    return speed, None if peak is None else peak - before, preparation


def timed_updates(
    learner: Learner, training: TrainConfig, device: torch.device, at_least: float
) -> tuple[float, int | None, float]:
    """Updates per second over so many seconds, the peak of memory in bytes, and seconds of preparation."""
    on_gpu = device.type == "cuda"
    replay = training.updates_per_replay
    clock = Clock(device)
    updater = Updater(learner, training, device)
    step = 0
    for _ in range(WARM_REPLAYS if on_gpu else 1):
        updater.update(step, 0.0)
        step += replay
    if on_gpu:
        updater.capture()
        updater.update(step, 0.0)
    preparation, clock, done = clock.seconds, Clock(device), 0
    while (seconds := clock.seconds) < at_least:
        for _ in range(10 if on_gpu else 1):
            step += replay
            updater.update(step, 0.0)
            done += replay
    peak = peak_memory(device)
    losses = updater.mean_loss(done)
    if not np.isfinite(losses).all():
        raise RuntimeError(f"{type(learner.module).__name__} diverged: {losses}")
    torch.compiler.reset()
    return done / seconds, peak, preparation


def memory_at_rest(device: torch.device) -> int:
    """Bytes on a GPU that are not a method's own. From now on the peak is counted anew."""
    gc.collect()  # of the last method's networks and graph
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()  # not 0: cuBLAS keeps a workspace of each graph that was captured
    if RESET_PEAK.exists():
        # The allocator keeps what was freed, until it is asked.
        getattr(ctypes.CDLL(None), "malloc_trim", lambda keep: 0)(0)
        RESET_PEAK.write_text("5")
    return 0


def peak_memory(device: torch.device) -> int | None:
    """On a GPU what torch allocated, else all that the process had in memory, where Linux tells."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated()
    if not RESET_PEAK.exists():
        return None
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0])


def agents(
    method: str, seeds: int, experience: Experience, device: torch.device, options: Benchmark
) -> tuple[Learner, TrainConfig]:
    """Agents of a method, side by side."""
    config = config_of(method, options)
    width = experience.data.observations.shape[1]
    agent: Any = METHODS[method].agent(config, Sizes(width, experience.data.actions.shape[1], width), range(seeds))
    on_gpu = device.type == "cuda"
    replay = options.replay if on_gpu else 1
    training = train_config(config, 1_000_000, updates_per_replay=replay, precision=options.precision)
    return GoalLearner(agent.to(device), experience, replay, compiled=on_gpu and options.compile), training


def monolithic_learner(device: torch.device, options: Benchmark) -> tuple[Learner, TrainConfig]:
    """DD on whole plans of Ghugare et al.'s U, with the planner's own settings and batches of 256."""
    whole = monolithic(preset("robotics-pointmaze-umaze-v0"))
    chunks, windows = whole.chunks, walked_windows(whole, device)
    denoiser = Denoiser(DenoiserConfig(chunks.horizon, chunks.overlap, len(whole.space.dims))).to(device)
    if device.type == "cuda" and options.compile:
        denoiser.compile_network()
    training = TrainConfig(batch=options.batch or 256)
    return ChunkLearner(denoiser, windows, recipe_for("default", whole).objective, training.batch), training


def config_of(method: str, options: Benchmark) -> Any:
    """The method's config, with those of the options that it has."""
    kind = METHODS[method].config
    given = {"batch": options.batch, "hidden": options.hidden}
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in given.items() if value and name in known})


def acting(method: str, device: torch.device, options: Benchmark) -> float:
    """Steps of all episodes per second of the clock, from observations on the host to actions on the host."""
    agent: Any = METHODS[method].agent(config_of(method, options), Sizes(2, 2, 2), [0])
    policy = GoalPolicy(agent.to(device).eval(), 2, (0, 1), device)
    observations, active = np.zeros((options.episodes, 2), np.float32), np.ones(options.episodes, bool)
    policy.reset(observations, observations)
    for _ in range(10):
        policy.act(observations, active)
    clock, steps = Clock(), 0
    while (seconds := clock.seconds) < options.seconds / 3:
        policy.act(observations, active)
        steps += options.episodes
    return steps / seconds


def walked_windows(dataset: Preset, device: torch.device) -> Windows:
    """Windows of a dataset's kind from random walks."""
    states, chunks = walks(), dataset.chunks
    return Windows.from_episodes(
        states, dataset.space, Normalizer.from_data(states.observations), chunks.horizon, chunks.front_padding,
        chunks.back_padding, device, chunks.stride,
    )  # fmt: skip


def walks(count: int = 1000, length: int = 201) -> Episodes:
    """Random walks of a point."""
    actions = np.random.default_rng(0).uniform(-1, 1, (count, length, 2)).astype(np.float32)
    terminals = np.zeros((count, length), bool)
    terminals[:, -1] = True
    states = 10 + 0.2 * actions.cumsum(1)
    return Episodes.from_terminals(states.reshape(-1, 2), actions.reshape(-1, 2), terminals.reshape(-1))


if __name__ == "__main__":
    main()
