"""Recipes: network, objective and training of a planner as one thing with a name.

`default` is ours. `paper` is the paper's table of hyper-parameters and its algorithm 1; what it does not state is taken
from its authors' code. `authors` is that code where it does something else than the paper says or lets one think.
docs/reproduction.md lists every field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from compdiffuser.checks import chosen
from compdiffuser.diffusion.formulation import formulation
from compdiffuser.diffusion.objective import ObjectiveConfig, check_levels
from compdiffuser.models.architectures import architecture
from compdiffuser.models.denoiser import DenoiserConfig
from compdiffuser.models.dit1d import DiT1dConfig
from compdiffuser.models.network import NetworkConfig
from compdiffuser.models.unet1d import UNet1dConfig
from compdiffuser.presets import Preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import UserError

CHUNKS = ("horizon", "overlap", "dim", "network")
"""Fields of a model that follow from the dataset and its chunks, or are configs themselves."""


@dataclass(frozen=True)
class Recipe:
    """All that a planner's training depends on besides its data."""

    model: DenoiserConfig
    objective: ObjectiveConfig
    training: TrainConfig

    def __post_init__(self) -> None:
        check_levels(self.objective, formulation(self.model.formulation))

    def changed(self, changes: Mapping[str, Any]) -> Recipe:
        """The recipe with other values of some fields, whichever part they belong to.

        Another `architecture` comes with its own sizes. Raises UserError for an unknown name.
        """
        changes = dict(changes)
        network = self.model.network
        name = changes.pop("architecture", network.architecture)
        if name != network.architecture:
            network = default_network(name)
        settings = known_fields(network)
        for field in changes:
            if field not in settings:
                raise UserError(f"a planner has no setting '{field}'; it has {', '.join(sorted(settings))}")

        def part(config: Any) -> Any:
            own = {field.name for field in fields(config)} & settings.keys()
            return replace(config, **{field: value for field, value in changes.items() if field in own})

        model = replace(part(self.model), network=part(network))
        return Recipe(model, part(self.objective), part(self.training))


def default_network(name: str) -> NetworkConfig:
    """An architecture in its usual sizes. Raises UserError for an unknown one."""
    config: Callable[[], NetworkConfig] = architecture(name)
    return config()


def known_fields(network: NetworkConfig) -> dict[str, Any]:
    """Names of all fields that `Recipe.changed` takes, with the types' defaults."""
    configs = (DenoiserConfig(), network, ObjectiveConfig(), TrainConfig())
    found = {field.name: getattr(config, field.name) for config in configs for field in fields(config)}
    return {name: value for name, value in found.items() if name not in CHUNKS}


def default(preset: Preset) -> Recipe:
    """Ours. Where plans are single chunks, start and goal are told more often."""
    chunks = preset.chunks
    objective = ObjectiveConfig(overlap=chunks.overlap)
    if chunks.most == 1:
        objective = replace(objective, state=0.85)
    return Recipe(chunked(DenoiserConfig(frame=chunks.frame), preset), objective, TrainConfig())


def paper(preset: Preset) -> Recipe:
    """The paper's: a U-Net for positions on a plane, a transformer for whole states."""
    chunks = preset.chunks
    plane = len(preset.space.dims) == 2
    network: NetworkConfig = UNet1dConfig(width=128, depth=4)
    if not plane:
        network = DiT1dConfig(width=768, depth=16, heads=12, patch=4, expansion=4.0)
    model = DenoiserConfig(formulation="paper", neighbours="encoder", ends="inpaint", network=network)
    objective = ObjectiveConfig(
        overlap=chunks.overlap, sides="losses", nothing=0.2, drop=0.0, ahead_by="step", positions=None
    )
    if chunks.most == 1:  # a single chunk has no neighbours
        objective = replace(objective, sides="apart", state=1.0)
    training = TrainConfig(
        steps=1_200_000, batch=128, learning_rate=2e-4, schedule="constant", warmup=0, weight_decay=0.0, beta2=0.999,
        clip=None, ema=0.995, ema_every=10 if plane else 1, checkpoint_every=10_000,
    )  # fmt: skip
    return Recipe(chunked(model, preset), objective, training)


def authors(preset: Preset) -> Recipe:
    """The authors' code: each side is dropped by itself, else it is a neighbour or an end state, each as often."""
    recipe = paper(preset)
    if preset.chunks.most == 1:
        return recipe
    return replace(recipe, objective=replace(recipe.objective, sides="apart", nothing=0.0, drop=0.2, state=0.4))


RECIPES: dict[str, Callable[[Preset], Recipe]] = {"default": default, "paper": paper, "authors": authors}


def recipe_for(name: str, preset: Preset) -> Recipe:
    """A recipe for a dataset. Raises UserError for an unknown name."""
    return chosen("preset", name, RECIPES)(preset)


def chunked(model: DenoiserConfig, preset: Preset) -> DenoiserConfig:
    """The model with the horizon, overlap and dimensions of a dataset."""
    chunks = preset.chunks
    return replace(model, horizon=chunks.horizon, overlap=chunks.overlap, dim=len(preset.space.dims))
