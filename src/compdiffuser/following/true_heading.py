"""Worlds that tell where the body faces, for comparison: what would a controller do that need not estimate it?

No result of a benchmark is made this way: its observations do not hold the heading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from compdiffuser.domains import Controller
from compdiffuser.domains.body import true_heading
from compdiffuser.domains.domain import Domain, Stepped, World
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError

if TYPE_CHECKING:  # worker processes open these worlds, and need no PyTorch
    from compdiffuser.following.inverse_dynamics import InverseController


class TellingWorld:
    """A world whose observations end with one more number: the true heading in radians."""

    def __init__(self, make: Callable[[], World]) -> None:
        self.world: Any = make()

    def reset(self, task: int, seed: int) -> tuple[Array, Array]:
        observation, goal = self.world.reset(task, seed)
        return self._told(observation), goal

    def place(self, start: Array, goal: Array, seed: int) -> tuple[Array, Array]:
        observation, observed = self.world.place(start, goal, seed)
        return self._told(observation), observed

    def step(self, action: Array) -> Stepped:
        stepped = self.world.step(action)
        return stepped._replace(observation=self._told(stepped.observation))

    def scene(self) -> tuple[Any, Array]:
        return self.world.scene()

    def close(self) -> None:
        self.world.close()

    def _told(self, observation: Array) -> Array:
        return np.append(observation, true_heading(self.world.scene()[1]))


def telling(preset: Preset) -> Preset:
    """The same dataset in a world that tells the heading. Raises UserError where there is no simulator."""
    world: Domain = preset.domain
    if world.make is None:
        raise UserError(f"'{world.name}' has no simulator that could tell the true heading")
    return replace(preset, domain=replace(world, make=partial(TellingWorld, world.make)))


def told(controller: InverseController) -> InverseController:
    """The same controller, for worlds that tell the heading."""
    return replace(controller, told=True)


def heading_of(controller: Controller) -> Literal["true", "estimated"] | None:
    """Where a controller's heading comes from; None where it needs none, or observations hold it."""
    if getattr(controller, "told", False):
        return "true"
    return None if getattr(controller, "estimator", None) is None else "estimated"


def told_truly(preset: Preset, controller: Controller) -> tuple[Preset, Controller]:
    """The dataset and the controller with the simulator's heading instead of an estimate.

    Raises UserError where there is no estimate to replace.
    """
    if heading_of(controller) != "estimated":
        body = preset.domain.body.name
        raise UserError(
            f"a true heading replaces an estimate, and the controller of '{preset.name}' needs none: "
            f"the body '{body}' observes its heading, or is not steered by it"
        )
    return telling(preset), told(cast("InverseController", controller))
