"""The recipes by name: how each dataset is recorded. A new recipe is a class with `record` and a line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compdiffuser.data.demonstrations import Demonstrations
from compdiffuser.data.explore import Explore
from compdiffuser.data.recording import Recipe, Steersman
from compdiffuser.data.regions import Regions
from compdiffuser.data.soccer import Soccer
from compdiffuser.data.stitch import Stitch
from compdiffuser.data.walking import recorded
from compdiffuser.presets import Preset
from compdiffuser.types import UserError

MakeRecipe = Callable[[Preset, Any], Recipe]
"""Makes a recipe of a dataset and the steersmen that walk its body."""

RECIPES: dict[str, MakeRecipe] = {
    "stitch": Stitch,
    "explore": Explore,
    "soccer": Soccer,
    "regions": Regions,
    "demonstrations": Demonstrations,
}


def recipe(preset: Preset, steersmen: Sequence[Steersman] = ()) -> Recipe:
    """The recipe of a dataset; bodies with legs bring their steersmen. Raises UserError for an unknown name."""
    return recipe_of(preset)(preset, steersmen)


def recipe_of(preset: Preset) -> MakeRecipe:
    """What makes the recipe of a dataset. Raises UserError for an unknown name."""
    name = recorded(preset).recipe
    if name not in RECIPES:
        known = ", ".join(RECIPES)
        raise UserError(f"dataset '{preset.name}' has recipe '{name}', which is not known; known: {known}")
    return RECIPES[name]
