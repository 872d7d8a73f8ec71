"""Which agents lie on the ground, for how long, and what gets them up."""

from __future__ import annotations

import numpy as np

from compdiffuser.domains import Body
from compdiffuser.types import Array, UserError


class Falls:
    """The falls of E agents.

    A body that gets up by itself, as its controller leads it, has fallen only where it stays down for `patience` steps.
    Another one that knows how to get up is told what to do (`rise`), from its fall until it may walk on.
    """

    def __init__(self, body: Body, episodes: int, patience: int, rise: bool) -> None:
        self.body, self.patience = body, patience
        self.rises = rise and not body.gets_up and body.rising(np.zeros(1, int)) is not None
        self.down = np.zeros(episodes, bool)
        """Who lies, or is getting up: neither lost nor stuck."""
        self._steps = np.zeros(episodes, int)
        """For how long."""

    def watch(self, observations: Array, active: Array) -> Array:
        """Look at agents [E, obs], of which some are `active` [E]. Which of them count as fallen from now on."""
        down = self.body.fallen(observations)
        if self.rises:
            down = down | (self.down & ~self.body.risen(observations))
        self.down = down & active
        self._steps = np.where(self.down, self._steps + 1, 0)
        return np.flatnonzero(self._steps == (self.patience if self.body.gets_up else 1))

    def up_again(self, actions: Array) -> Array:
        """Actions [E, act], where those who are getting up do what gets them up. Raises UserError for other motors."""
        if not (self.rises and self.down.any()):
            return actions
        told = np.asarray(self.body.rising(self._steps[self.down] - 1))
        if told.shape[1:] != actions.shape[1:]:
            motors = f"with {told.shape[1]} motors, and its controller moves {actions.shape[1]}"
            raise UserError(f"the body '{self.body.name}' gets up {motors}; give it a `rising` of its own")
        moved = actions.copy()
        moved[self.down] = told
        return moved
