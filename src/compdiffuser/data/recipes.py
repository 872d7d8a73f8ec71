"""The recipes by name: how each dataset is recorded. A new recipe is a class with `record` and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compdiffuser.data.explore import Explore
from compdiffuser.data.recording import LowLevelPolicy, Recipe
from compdiffuser.data.regions import Regions
from compdiffuser.data.stitch import Stitch
from compdiffuser.presets import Preset
from compdiffuser.types import UserError

RECIPES: dict[str, Callable[[Preset, Any], Recipe]] = {
    "stitch": Stitch,
    "explore": Explore,
    "regions": Regions,
}


def recipe(preset: Preset, policy: LowLevelPolicy | None = None) -> Recipe:
    """The recipe of a dataset; a body other than the point brings its low-level policy."""
    if preset.recipe not in RECIPES:
        known = ", ".join(RECIPES)
        raise UserError(f"dataset '{preset.name}' has recipe '{preset.recipe}', which is not known; known: {known}")
    return RECIPES[preset.recipe](preset, policy)
