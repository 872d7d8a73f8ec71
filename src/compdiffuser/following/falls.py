"""Which agents lie on the ground, for how long, and what gets them up."""

from __future__ import annotations

import numpy as np

from compdiffuser.domains import Body
from compdiffuser.types import Array


class Falls:
    """The falls of E agents.

    A body that gets up by itself, as its controller leads it, has fallen only where it stays down for `patience` steps.
    Another one that knows how to get up is told what to do (`rise`), from its fall until it may walk on.
    """

    def __init__(self, body: Body, episodes: int, patience: int, rise: bool) -> None:
        self.body, self.patience = body, patience
        self.rises = rise and body.rising(np.zeros(1, int)) is not None
        self.down = np.zeros(episodes, bool)
        """Who lies, or is getting up: neither lost nor stuck."""
        self._lain, self._rising = np.zeros((2, episodes), int)
        """Steps that each has lain, and has been getting up."""

    def watch(self, observations: Array, active: Array) -> Array:
        """Look at agents [E, obs], of which some are `active` [E]. Which of them count as fallen from now on."""
        lying = self.body.fallen(observations) & active
        self._lain = np.where(lying, self._lain + 1, 0)
        getting_up = (self._rising > 0) & ~self.body.risen(observations) & active
        self._rising = np.where(self.rises & (lying | getting_up), self._rising + 1, 0)
        self.down = lying | (self._rising > 0)
        return np.flatnonzero(self._lain == (self.patience if self.body.gets_up else 1))

    def up_again(self, actions: Array) -> Array:
        """Actions [E, act], where those who are getting up do what gets them up."""
        rising = self._rising > 0
        if not rising.any():
            return actions
        moved = actions.copy()
        moved[rising] = self.body.rising(self._rising[rising] - 1)
        return moved
