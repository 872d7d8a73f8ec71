"""What the settings of several methods have in common: each is written down, and checked, once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from compdiffuser.baselines.goals import ACTOR_GOALS, LATER, VALUE_GOALS, GoalMix
from compdiffuser.checks import brief, typed, widths
from compdiffuser.training.config import Schedule, check_schedule
from compdiffuser.types import UserError


def _whole(value: Any) -> bool:
    return type(value) is int and value >= 1


COUNTS = (
    "batch", "latent", "component", "representation", "subgoal_steps", "context", "blocks", "width", "heads",
)  # fmt: skip
WIDTHS, MOST_WIDTH = ("latent", "component", "representation", "context", "blocks", "width", "heads"), 16_384
RULES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (COUNTS, _whole, "is a whole number of at least 1, not"),
    (("warmup",), lambda value: isinstance(value, int) and value >= 0, "is a whole number of at least 0, not"),
    (("discount", "expectile"), lambda value: 0 < value < 1, "lies between 0 and 1, not at"),
    (("target_rate",), lambda value: 0 < value <= 1, "is more than 0 and at most 1, not"),
    (("learning_rate", "margin"), lambda value: 0 < value < math.inf, "is more than 0, not"),
    (("alpha", "weight_decay"), lambda value: 0 <= value < math.inf, "is at least 0, not"),
)
"""Names of settings, what they may be (which NaN never is), and what is said of others."""


@dataclass(frozen=True)
class AgentConfig:
    """Settings that every method has; the defaults are OGBench's."""

    learning_rate: float = 3e-4
    """Adam's rate after the warm-up."""
    schedule: Schedule = "constant"
    """constant: the same rate to the end; cosine: it falls to 0 over the run."""
    warmup: int = 0
    """Updates of linear warm-up."""
    weight_decay: float = 0.0
    """Adam's decay, of all weights."""
    batch: int = 1024
    """Transitions (of a transformer, contexts) per update and seed."""
    discount: float = 0.99
    """γ, for geometrically drawn goals, and for the values of methods that have them."""
    actor_goals: GoalMix = LATER
    """Where the actor's goals come from; of a hierarchy, the high-level actor's."""

    def __post_init__(self) -> None:
        """Raises UserError for settings that nothing can be learned with."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        for names, allowed, sentence in RULES:
            for name in names:
                if name in settings and not allowed(settings[name]):
                    raise UserError(f"{name} {sentence} {brief(settings[name])}")
        for name in WIDTHS:
            if settings.get(name, 0) > MOST_WIDTH:
                raise UserError(f"{name} is at most {MOST_WIDTH}, not {brief(settings[name])}")
        check_schedule(self.schedule)
        typed(self)


@dataclass(frozen=True)
class PerceptronConfig(AgentConfig):
    """Settings of methods whose networks are multilayer perceptrons."""

    hidden: tuple[int, ...] = (512, 512, 512)
    """Widths of the hidden layers, in all networks of a method."""

    def __post_init__(self) -> None:
        super().__post_init__()
        widths(self, "hidden")


@dataclass(frozen=True)
class ValueConfig(PerceptronConfig):
    """Settings of methods that learn how near a goal is, and an actor by it."""

    actor_goals: GoalMix = ACTOR_GOALS
    value_goals: GoalMix = VALUE_GOALS
    """Where the goals of values and critics come from."""
    alpha: float = 1.0
    """Inverse temperature of the actor's weights (GCIVL, HIQL), or weight of its cloning term (GCIQL, QRL, CRL)."""


@dataclass(frozen=True)
class BootstrappedConfig(ValueConfig):
    """Settings of methods whose values are learned from target networks, by expectiles."""

    target_rate: float = 0.005
    """Share of the way that target weights go after each update."""
    expectile: float = 0.9
    """τ of the value's regression."""
