"""What an episode is asked to solve: a task that its world numbers, or a start and a goal anywhere."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from compdiffuser.domains import Domain, World
from compdiffuser.types import Array, UserError


class Problem(Protocol):
    """A start and a goal; the same problem gives the same episode."""

    def check(self, domain: Domain) -> None:
        """Raise UserError where a domain does not have this problem."""

    def begin(self, world: World) -> tuple[Array, Array]:
        """Start an episode: observation [obs] and goal [obs]."""


class Task(NamedTuple):
    """One of the tasks that a world numbers from 1."""

    number: int
    seed: int

    def check(self, domain: Domain) -> None:
        if not 1 <= self.number <= domain.tasks:
            known = f"tasks 1 to {domain.tasks}" if domain.tasks else "no numbered tasks"
            raise UserError(f"unknown task {self.number}; {domain.name} has {known}")

    def begin(self, world: World) -> tuple[Array, Array]:
        return world.reset(self.number, self.seed)


class Placement(NamedTuple):
    """From any place to any other."""

    start: Array
    """[P], positions of all groups of the domain's space."""
    goal: Array
    """[P]"""
    seed: int

    def check(self, domain: Domain) -> None:
        wanted = len(domain.space.columns)
        for what, place in (("start", self.start), ("goal", self.goal)):
            if np.shape(place) != (wanted,) or not np.isfinite(place).all():
                raise UserError(f"a {what} in {domain.name} is {wanted} finite numbers, not {np.asarray(place)}")

    def begin(self, world: World) -> tuple[Array, Array]:
        return world.place(np.asarray(self.start, float), np.asarray(self.goal, float), self.seed)
