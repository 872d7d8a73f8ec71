"""`compdiffuser train FILE`, where nobody has tuned anything: what is proposed, and how long it will take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from compdiffuser.cli.parsing import dimensions
from compdiffuser.data import storage
from compdiffuser.data.proposal import ON_CPU, Proposal, propose, sized
from compdiffuser.models.denoiser import Denoiser
from compdiffuser.planning.beginning import Beginning
from compdiffuser.planning.recipes import Recipe
from compdiffuser.planning.training import normalizer_of, windows_of
from compdiffuser.presets import OWN_CHUNKS, Preset
from compdiffuser.training.chunks import ChunkLearner
from compdiffuser.types import Episodes

if TYPE_CHECKING:
    from compdiffuser.cli.train import Train

TRIALS = 4


def untuned(preset: Preset) -> bool:
    """Whether a preset's chunks are the usual ones of data that nobody has looked at."""
    return preset.chunks == OWN_CHUNKS


def proposed(options: Train, preset: Preset, on_gpu: bool, begun: Beginning | None = None) -> Proposal:
    """The proposal for the data that is to be trained on. What was given on the command line is not proposed again, nor
    what a planner settles that the training begins with.
    """
    if begun is not None:
        settled = {"width", "depth"} if (options.preset or begun.recipe_name) == "default" else set(ON_CPU)
        sizes, reasons = sized(on_gpu, _sizes_given(options) | settled)
        return Proposal(begun.preset_for(preset), {n: sizes[n] for n in ("batch", "steps")}, tuple(reasons))
    if options.dims is not None:
        preset = preset.planning(dimensions(options.dims))
    return propose(
        storage.load(options.dataset), preset, on_gpu, dims_given=options.dims is not None, horizon=options.horizon,
        overlap=options.overlap, stride=options.stride, sizes_given=_sizes_given(options),
    )  # fmt: skip


def _sizes_given(options: Train) -> set[str]:
    """Which of width, depth, batch and steps are not for us to propose."""
    if options.preset not in (None, "default"):
        return set(ON_CPU)
    given = {name for name in ON_CPU if getattr(options, name) is not None}
    given |= {setting.partition("=")[0].strip() for setting in options.set}
    if options.architecture is not None:
        given |= {"width", "depth"}
    return given if options.time_limit is None else given | {"steps"}


def how_long(episodes: Episodes, preset: Preset, recipe: Recipe, device: torch.device) -> str:
    """A sentence on the time that training will take, by a few updates of the same size."""
    config = recipe.training
    if config.time_limit is not None:
        return f"training takes {told(config.time_limit)}, as asked"
    windows = windows_of(episodes, preset, normalizer_of(episodes, preset.space), device)
    denoiser = Denoiser(recipe.model).to(device)
    learner = ChunkLearner(denoiser, windows, recipe.objective, config.batch)
    generator = torch.Generator(device).manual_seed(0)
    seconds = []
    for _ in range(TRIALS):
        begun = time.perf_counter()
        learner.loss(denoiser, generator).sum().backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    longest = "at most about" if device.type == "cuda" else "about"  # a GPU's updates are compiled later
    return f"training takes {longest} {told(1.2 * min(seconds) * config.steps)}; --time-limit SECONDS sets another end"


def told(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
