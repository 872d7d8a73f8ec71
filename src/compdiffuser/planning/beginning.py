"""What a training goes on from: the weights of another planner, in the units that they were learned in.

A network of the same architecture, chunks and dimensions can go on learning, on the same data or on other data of the
same world. Its normalizer stays, whatever the new data's limits are; Adam and the learning rate begin anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from compdiffuser import artifact
from compdiffuser.checks import brief, is_finite
from compdiffuser.data.advice import MOSTLY, outside
from compdiffuser.diffusion.objective import ObjectiveConfig
from compdiffuser.domains import Space
from compdiffuser.models.denoiser import Denoiser, DenoiserConfig
from compdiffuser.planning.checkpoint import KIND, Checkpoint, load, locate
from compdiffuser.planning.recipes import RECIPES, Recipe, recipe_for
from compdiffuser.presets import OWN_CHUNKS, Preset
from compdiffuser.types import Episodes, UserError

CUT = ("horizon", "overlap", "stride", "frame")
"""Chunk settings that weights depend on."""


@dataclass(frozen=True)
class Beginning:
    """The planner that a training begins with."""

    name: str
    """A shipped one's, its folder's own, or its id on the hub; of a snapshot, RUN/after-SECONDS."""
    checkpoint: Checkpoint
    folder: Path | None = None
    """Where it lies; None where it was made in this process."""

    @classmethod
    def of(cls, given: Beginning | Checkpoint | str | os.PathLike[str]) -> Beginning:
        """The planner that is named, found as `Planner.from_pretrained` finds it.

        Raises UserError where there is none, where it is damaged, and where its network has no weights.
        """
        if isinstance(given, Beginning):
            return given
        if not isinstance(given, Checkpoint):
            return cls(_name(os.fspath(given)), load(given), locate(given))
        if not isinstance(given.denoiser, Denoiser):
            raise UserError("a training cannot begin with a network in ONNX; name the planner that it was made from")
        return cls(given.preset.label, given)

    @property
    def model(self) -> DenoiserConfig:
        return self.checkpoint.denoiser.config

    @property
    def recipe_name(self) -> str:
        """The recipe that it was trained with; older planners, which do not tell, had the default one."""
        name = self.checkpoint.record.get("recipe")
        return name if isinstance(name, str) and name in RECIPES else "default"

    @property
    def record(self) -> dict[str, Any]:
        """What a planner that begins with it says of that."""
        return {"planner": self.name, **trained_so_far(self.checkpoint.record)}

    @property
    def told(self) -> str:
        """A sentence on what is gone on with."""
        updates, chunks = self.record["updates"], self.checkpoint.preset.chunks
        trained = f" of {updates:,} updates" if isinstance(updates, int) else ""
        cut = f"--horizon {chunks.horizon} --overlap {chunks.overlap} --stride {chunks.stride}"
        dims = dimensions(self.checkpoint.preset.space.dims)
        return f"training begins with '{self.name}'{trained}, which has {cut} --dims {dims}"

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What a training that begins with it cannot choose."""
        mine = self.checkpoint
        method = {"method": mine.record.get("method", "compdiffuser")}
        return method | model_settings(self.model) | chunk_settings(mine.preset)

    @cached_property
    def digest(self) -> str:
        """A hash of its weights, in the half precision they are stored in, and of its units."""
        found = hashlib.sha256(json.dumps(self.checkpoint.normalizer.to_dict()).encode())
        for name, array in sorted(artifact.arrays(self.weights, half=True).items()):
            found.update(name.encode() + array.tobytes())
        return found.hexdigest()

    @property
    def weights(self) -> dict[str, Any]:
        assert isinstance(self.checkpoint.denoiser, Denoiser)
        return self.checkpoint.denoiser.state_dict()

    def preset_for(self, known: Preset) -> Preset:
        """A dataset cut and planned as the planner's own; one of no known world lies in the planner's world.

        Of a dataset that somebody has tuned, padding, numbers of chunks and scaffolds stay.
        """
        mine = self.checkpoint.preset
        if known.domain.make is None and known.domain.maze is None:
            return replace(mine, name=known.name, recording=known.recording)
        chunks = mine.chunks
        if known.chunks != OWN_CHUNKS and chunks.most > 1:
            chunks = replace(known.chunks, **{name: getattr(chunks, name) for name in CUT})
        return replace(known, domain=replace(known.domain, space=mine.space), chunks=chunks)

    def recipe(self, name: str | None, preset: Preset) -> Recipe:
        """Its network, and the training settings of a recipe: the one of that name, else its own with its objective.

        Raises UserError for an unknown name, and for a recipe that is not for such a network.
        """
        usual = recipe_for(name or self.recipe_name, preset)
        objective, recorded = usual.objective, self.checkpoint.record.get("objective")
        if name is not None:
            self.check({"formulation": usual.model.formulation})
        elif isinstance(recorded, Mapping):
            with artifact.describing(self.folder or self.name, KIND):
                objective = ObjectiveConfig(**{**recorded, "overlap": self.model.overlap})
        return Recipe(self.model, objective, usual.training)

    def check(self, asked: Mapping[str, Any]) -> None:
        """Raises UserError for the first setting asked for that contradicts the planner's."""
        for name, was in self.settings.items():
            if name in asked and asked[name] != was:
                raise UserError(
                    f"the training begins with '{self.name}', which has {name} {brief(was)}, not {brief(asked[name])}"
                )

    def check_apart(self, out: Path) -> None:
        """Raises UserError where the planner lies in the folder of the run, which would write over it."""
        own = None if self.folder is None else self.folder.resolve()
        if own is not None and out.resolve() == (own.parent if _is_snapshot(own) else own):
            raise UserError(f"the training begins with '{self.name}', which lies in '{out}'; choose another --out")

    def check_data(self, episodes: Episodes, space: Space) -> None:
        """Raises UserError where most of the data lies outside the planner's limits."""
        share, told = outside(episodes, space, self.checkpoint.normalizer)
        if share > MOSTLY:
            why = f"{share:.0%} of the states lie outside its limits, as where {told}"
            raise UserError(f"'{self.name}' was trained in another place or other units than this data: {why}")


def model_settings(model: DenoiserConfig) -> dict[str, Any]:
    """All settings of a model by name, the architecture first."""
    plain = model.to_dict()
    return {**plain.pop("network"), **plain}


def chunk_settings(preset: Preset) -> dict[str, Any]:
    """Settings of a dataset that a planner's weights depend on."""
    cut = {name: getattr(preset.chunks, name) for name in ("horizon", "overlap", "stride")}
    groups = [list(group) for group in preset.space.positions]
    return {**cut, "dims": dimensions(preset.space.dims), "position groups": groups}


def dimensions(dims: Sequence[int]) -> str:
    """Planned dimensions as --dims takes them."""
    return ",".join(map(str, dims))


def trained_so_far(record: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds and updates behind a planner, with those of the planners before it; None where a record does not tell."""
    outcome, before = record.get("outcome"), record.get("begun_with")
    made = outcome if isinstance(outcome, Mapping) else {}
    own = {"seconds": made.get("seconds"), "updates": made.get("steps")}
    if "after_seconds" in record:
        own = {"seconds": record["after_seconds"], "updates": record.get("after_updates")}
    if not isinstance(before, Mapping):
        return own
    both = {name: (value, before.get(name)) for name, value in own.items()}
    return {name: sum(parts) if all(map(is_finite, parts)) else None for name, parts in both.items()}


def _name(given: str) -> str:
    """How a record names a planner: no path of this machine."""
    if not artifact.is_folder(given):
        return given
    folder = Path(given).resolve()
    return f"{folder.parent.name}/{folder.name}" if _is_snapshot(folder) else folder.name


def _is_snapshot(folder: Path) -> bool:
    return folder.name.startswith("after-")
