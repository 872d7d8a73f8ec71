"""Settings per dataset, as OGBench tuned them: α, discount, and where the actor's goals come from."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from compdiffuser.baselines import method
from compdiffuser.baselines.goals import RANDOM_GOALS, GoalMix
from compdiffuser.checks import brief
from compdiffuser.presets import Preset
from compdiffuser.types import UserError

SUBGOAL_STEPS = {"humanoid": 100}
"""How many steps ahead HIQL's subgoals lie, by family, where not 25."""
PLACE_GOALS = ("regions",)
"""Recipes of datasets whose tasks ask for a place alone, whatever the velocity (Ghugare et al.)."""
ALPHA: dict[str, dict[str, float]] = {
    "gcivl": {"point": 10, "ant": 10, "explore": 10, "humanoid": 10, "soccer": 10},
    "gciql": {"point": 0.003, "ant": 0.3, "explore": 0.01, "humanoid": 0.1, "soccer": 0.1},
    "qrl": {"point": 0.0003, "ant": 0.003, "explore": 0.001, "humanoid": 0.001, "soccer": 0.003},
    "crl": {"point": 0.03, "ant": 0.1, "explore": 0.003, "humanoid": 0.1, "soccer": 0.3},
    "hiql": {"point": 3, "ant": 3, "explore": 10, "humanoid": 3, "soccer": 3},
}
"""Temperature of the advantage weights (GCIVL, HIQL), or weight of the cloning term (GCIQL, QRL, CRL)."""


def config_for(name: str, preset: Preset, changes: Mapping[str, Any] | None = None) -> Any:
    """The config of a method for a dataset; `changes` has the last word. Own data counts as point mazes."""
    config = method(name).config()
    family = preset.family
    settings: dict[str, Any] = {
        "alpha": ALPHA.get(name, {}).get(family),
        "discount": 0.995 if preset.domain.long_horizon else 0.99,
        "subgoal_steps": SUBGOAL_STEPS.get(family, 25),
        "actor_goals": RANDOM_GOALS if family == "explore" and name in ALPHA else None,
    }
    known = {field.name for field in fields(config)}
    config = replace(config, **{key: value for key, value in settings.items() if key in known and value is not None})
    return replace(config, **(changes or {}))


def goal_dims(preset: Preset, width: int, whole: bool) -> tuple[int, ...]:
    """Observation dimensions that make a goal: all of them, or the positions where tasks ask for nothing else."""
    if whole or preset.recording is None or preset.recording.recipe not in PLACE_GOALS:
        return tuple(range(width))
    return tuple(preset.space.dims[column] for column in preset.space.columns)


def parse_changes(name: str, texts: Sequence[str]) -> dict[str, Any]:
    """Settings given as "alpha=3", "hidden=[64,64]" or 'actor_goals={"trajectory":0,"random":1}'.

    Of a mixture of goals, shares that are not named stay as the method has them. Raises UserError for a setting that
    the method does not have, or that is given twice.
    """
    config = method(name).config()
    changes: dict[str, Any] = {}
    for text in texts:
        key, _, value = text.partition("=")
        names = [field.name for field in fields(config)]
        if key not in names:
            raise UserError(f"{name} has no setting '{key}'; it has {', '.join(names)}")
        if key in changes:
            raise UserError(f"{key} is given twice by --set, at last as '{brief(value)}'")
        was = getattr(config, key)
        try:
            changes[key] = _read(value, was)
        except UserError:
            raise  # a mixture of goals says itself what is wrong
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise UserError(f"setting '{key}' of {name} cannot be '{brief(value)}'; its default is {was}") from None
    return changes


def _read(text: str, default: Any) -> Any:
    """A setting of its default's type."""
    if isinstance(default, str):
        return text
    value = json.loads(text)
    if isinstance(default, GoalMix):
        return replace(default, **value)
    if isinstance(default, tuple):
        return tuple(value)
    if isinstance(value, bool) is not isinstance(default, bool) or (type(default) is int and int(value) != value):
        raise ValueError
    return type(default)(value)


def config_from(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """A config from the plain values that a JSON file holds."""
    hints = typing.get_type_hints(kind)

    def restored(name: str, value: Any) -> Any:
        if is_dataclass(hints.get(name)):
            return hints[name](**value)
        return tuple(value) if isinstance(value, list) else value

    return kind(**{name: restored(name, value) for name, value in values.items()})
