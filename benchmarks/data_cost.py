"""What more data costs: its windows, an update, the recorded segments, the roadmap, calibration.

    python benchmarks/data_cost.py --hardware "one H200"

Parts of one large recording are taken as data, from a sixty-fourth of its episodes to all of them. Nothing is trained
to an end: what each step costs does not depend on the weights. Recording is timed by `data_generation.py`, whole
worlds of several sizes by `growing.py`. Figures go to results/data_cost.json.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
import tyro
from figures import Figures
from reproduce import Clock, command

from compdiffuser.data import storage
from compdiffuser.models import Denoiser
from compdiffuser.models.runner import Runner
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.planning.recorded.calibration import calibrate
from compdiffuser.planning.recorded.support import measure_support
from compdiffuser.planning.roads.carrying import roadmap_of
from compdiffuser.planning.training import in_chunks, normalizer_of, windows_of
from compdiffuser.presets import Preset, preset
from compdiffuser.runs import choose_device
from compdiffuser.training.chunks import ChunkLearner
from compdiffuser.training.updater import Updater
from compdiffuser.types import Episodes


@dataclass(frozen=True)
class Benchmark:
    dataset: str = "pointmaze-48x64-seed-0-stitch"
    """A recording; `compdiffuser data make` makes it."""
    shares: tuple[float, ...] = (1 / 64, 1 / 16, 1 / 4, 1)
    """Of its episodes."""
    updates: int = 50
    """Updates that are timed."""
    batch: int | None = None
    """Windows of an update; by default the recipe's."""
    device: str = "auto"
    hardware: str = "this machine"
    out: Path = Path("results/data_cost.json")


def main() -> None:
    options = tyro.cli(Benchmark)
    dataset, episodes = preset(options.dataset), storage.load(options.dataset)
    asked = command("python benchmarks/data_cost.py", options, ("dataset", "shares", "updates", "batch"))
    figures = Figures(options.out, asked, options.hardware, "data-cost")
    for share in options.shares:
        measure(episodes[: max(round(share * len(episodes)), 1)], dataset, options, figures)


def measure(episodes: Episodes, dataset: Preset, options: Benchmark, figures: Figures) -> None:
    """All figures of so many episodes."""
    device, recipe = choose_device(options.device), recipe_for("default", dataset)
    row = f"{len(episodes.observations):,} states"

    def note(column: str, value: float, unit: str) -> None:
        figures.note(f"{row}: {column}", value, unit, row=row, column=f"{column}, {unit}".rstrip(", "))

    clock = Clock(device)
    normalizer = normalizer_of(episodes, dataset.space)
    if recipe.model.frame == "chunk":
        normalizer = in_chunks(normalizer, windows_of(episodes, dataset, normalizer, torch.device("cpu")))
    windows = windows_of(episodes, dataset, normalizer, device)
    note("windows", clock.seconds, "s")
    kept = (windows.states, windows.starts, windows.lengths, windows.ends)
    note("their memory", sum(each.nbytes for each in kept) / 2**20, "MiB")

    torch.manual_seed(0)
    denoiser = Denoiser(recipe.model).to(device)
    training = replace(recipe.training, batch=options.batch or recipe.training.batch)
    updater = Updater(ChunkLearner(denoiser, windows, recipe.objective, training.batch), training, device)
    for step in range(3):
        updater.update(step, 0.0)
    if device.type == "cuda":
        updater.capture()
    clock = Clock(device)
    for step in range(options.updates):
        updater.update(step, 0.0)
    note("an update", 1000 * clock.seconds / options.updates, "ms")

    clock = Clock(device)
    support = measure_support(windows)
    note("segments", 0 if support is None else len(support.segments), "")
    note("finding them", clock.seconds, "s")
    clock = Clock(device)
    calibration = calibrate(Runner(denoiser, device), windows, dataset.chunks.overlap)
    note("calibration", clock.seconds, "s")
    if support is not None:
        clock = Clock()
        roadmap_of(support.to(torch.device("cpu")), calibration)
        note("roadmap", clock.seconds, "s")


if __name__ == "__main__":
    main()
