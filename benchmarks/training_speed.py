"""How many updates per second the training of a planner makes, and how much memory it takes, by its preset.

    python benchmarks/training_speed.py --out results/training_speed_h200.json --hardware "one H200"

On random walks of a point in the chunks of a dataset: speed does not depend on what is learned. Compiling and capturing
come before the clock starts. Meant for a GPU; an update of the paper's preset takes half a minute on a CPU core.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from baseline_speed import memory_at_rest, timed_updates, walked_windows
from figures import Figures
from reproduce import command

from compdiffuser.models.denoiser import Denoiser
from compdiffuser.planning.recipes import Recipe, recipe_for
from compdiffuser.presets import Preset, preset
from compdiffuser.runs import choose_device
from compdiffuser.training.chunks import ChunkLearner


@dataclass(frozen=True)
class Benchmark:
    presets: tuple[str, ...] = ("default", "paper")
    """Sets of settings, as `compdiffuser train --preset` takes them."""
    dataset: str = "pointmaze-giant-stitch-v0"
    """Whose chunks are trained on; its plans are of x and y."""
    batch: int | None = None
    """Chunks per update; by default the preset's own."""
    width: int | None = None
    """Of the network; by default the preset's own."""
    seconds: float = 5.0
    """Time measured for each figure, at least."""
    compile: bool = True
    device: str = "auto"
    out: Path = Path("results/training_speed.json")
    hardware: str = "this machine"


def main() -> None:
    options = tyro.cli(Benchmark)
    device = choose_device(options.device)
    made = command("python benchmarks/training_speed.py", options, ("presets", "dataset", "batch", "width", "compile"))
    note = Figures(options.out, made, options.hardware, "training", add=True).note
    for name in options.presets:
        dataset = preset(options.dataset)
        sizes = {"batch": options.batch, "width": options.width}
        recipe = recipe_for(name, dataset).changed({key: value for key, value in sizes.items() if value is not None})
        before = memory_at_rest(device)
        learner = learner_of(recipe, dataset, device, options.compile)
        speed, peak, preparation = timed_updates(learner, recipe.training, device, options.seconds)
        about = {"row": f"`{name}`", "batch": recipe.training.batch, "preparation": round(preparation, 1)}
        about["parameters"] = sum(weights.numel() for weights in learner.module.parameters())
        note(f"{name}: updates", speed, "updates/s", column="updates/s", **about)
        if peak is not None:
            note(f"{name}: peak memory", (peak - before) / 2**30, "GiB", column="GiB", **about)


def learner_of(recipe: Recipe, dataset: Preset, device: torch.device, compiled: bool) -> ChunkLearner:
    """What a training of that recipe trains."""
    torch.manual_seed(0)
    denoiser = Denoiser(recipe.model).to(device)
    if compiled and device.type == "cuda":
        denoiser.compile_network()
    return ChunkLearner(denoiser, walked_windows(dataset, device), recipe.objective, recipe.training.batch)


if __name__ == "__main__":
    main()
