"""What a planner's training is, settled before it begins: the parts of its recipe, and what makes a run this one."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from compdiffuser.diffusion.objective import ObjectiveConfig
from compdiffuser.models.denoiser import DenoiserConfig
from compdiffuser.planning.beginning import Beginning, chunk_settings, model_settings
from compdiffuser.planning.recipes import Recipe, chunked, recipe_for
from compdiffuser.presets import Preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import Episodes


def settled(
    preset: Preset,
    name: str | None,
    begun: Beginning | None,
    model: DenoiserConfig | None = None,
    objective: ObjectiveConfig | None = None,
    training: TrainConfig | None = None,
) -> tuple[str, Recipe]:
    """A recipe's name and the recipe, with the parts that are given in the place of its own.

    Without a name it is the default one, or that of the planner which the training begins with. Raises UserError for
    an unknown name, for parts that do not go together, and where they or the chunks contradict that planner.
    """
    if begun is not None:
        begun.check(chunk_settings(preset))
    usual = recipe_for(name or "default", preset) if begun is None else begun.recipe(name, preset)
    name = name or ("default" if begun is None else begun.recipe_name)
    model = chunked(model or usual.model, preset)
    if begun is not None:
        begun.check(model_settings(model))
    aims = replace(objective or usual.objective, overlap=model.overlap)
    return name, Recipe(model, aims, training or usual.training)


def identity(
    episodes: Episodes, preset: Preset, method: str, recipe: Recipe, begun: Beginning | None
) -> dict[str, Any]:
    """What makes a run this one, in plain values: one with others does not continue it."""
    chunks = preset.chunks
    return {
        "method": method, "dataset": preset.name, "data": episodes.digest(), "dimensions": list(preset.space.dims),
        "stride": chunks.stride, "padding": [chunks.front_padding, chunks.back_padding], **recipe.model.to_dict(),
        **asdict(recipe.objective), "begin_with": None if begun is None else begun.digest,
    }  # fmt: skip
