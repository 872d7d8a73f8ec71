"""What every baseline is to the rest of the library: one contract, kept by classes that share no base but `nn.Module`.

A method is one file with a frozen config and an agent. The agent holds the networks of S seeds, draws its own batches,
gives its loss, and acts. Training, checkpoints, policies and commands know nothing else of it.

No agent has an optimizer of its own: the training loop updates all seeds, many updates per CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from compdiffuser.baselines.goals import Experience
from compdiffuser.training.config import check_schedule
from compdiffuser.types import UserError


class Sizes(NamedTuple):
    """Widths of what a method sees and does."""

    observation: int
    action: int
    goal: int


class Agent(Protocol):
    """Networks of S seeds, an `nn.Module`. Every parameter and buffer has a leading dimension S.

    Two further members are used where an agent has them: `check(data)`, which refuses trajectories it cannot learn
    from before training begins, and `begin(goals)`, which tells an agent with a memory that episodes start. Agents that
    learn how near a goal is tell it by `value(observations, goals)` [S, E], larger for nearer ones.
    """

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts of the loss."""

    @property
    def whole_goals(self) -> bool:
        """Whether goals must be whole observations, even where a dataset's goals are fewer dimensions."""

    def draw(self, experience: Experience, generator: torch.Generator) -> Any:
        """A batch for `loss`, a tuple of tensors [S, B, …], drawn on the device without a word to the host."""

    def loss(self, batch: Any) -> Tensor:
        """[S, parts]; their sum is minimized. Only tensor operations of fixed shapes: it is captured and compiled."""

    def after_update(self) -> None:
        """What follows a step of the optimizer, such as moving target networks."""

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        """Actions [S, E, act] for observations [S, E, obs] and goals [S, E, goal]."""


def _whole(value: Any) -> bool:
    return isinstance(value, int) and value >= 1


COUNTS = (
    "batch", "latent", "component", "representation", "subgoal_steps", "context", "blocks", "width", "heads",
)  # fmt: skip
RULES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (COUNTS, _whole, "is a whole number of at least 1, not"),
    (("warmup",), lambda value: isinstance(value, int) and value >= 0, "is a whole number of at least 0, not"),
    (("discount", "expectile"), lambda value: 0 < value < 1, "lies between 0 and 1, not at"),
    (("target_rate",), lambda value: 0 < value <= 1, "is more than 0 and at most 1, not"),
    (("learning_rate", "margin"), lambda value: value > 0, "is more than 0, not"),
    (("alpha", "weight_decay"), lambda value: value >= 0, "is at least 0, not"),
)
"""Names of settings, what they may be (which NaN never is), and what is said of others."""


def check_settings(config: Any) -> None:
    """Refuse a method's config that nothing can be learned with. Settings that it does not have cannot be wrong."""
    settings = {field.name: getattr(config, field.name) for field in fields(config)}
    for names, allowed, sentence in RULES:
        for name in names:
            if name in settings and not allowed(settings[name]):
                raise UserError(f"{name} {sentence} {settings[name]}")
    check_schedule(settings.get("schedule", "constant"))
    hidden = settings.get("hidden", (1,))
    if not hidden or not all(map(_whole, hidden)):
        raise UserError(f"hidden layers are one or more whole numbers of at least 1, not {list(hidden)}")
