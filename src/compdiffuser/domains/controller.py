"""What follows a plan: from where agents are and where their plans want them next, to actions."""

from __future__ import annotations

from compdiffuser.domains.body import Body
from compdiffuser.domains.space import Space
from compdiffuser.types import Array


class Controller:
    """A callable that acts, with a few numbers that say how it wants to be led. Subclass it, and set `look_ahead`."""

    look_ahead: float = 0.5
    """Metres between the agent's place on its plan and the target it is given: close enough not to cut corners, far
    enough to keep moving."""
    spacing: float | None = None
    """Metres between the states that are kept of a plan; None: half of the look-ahead."""
    stall: int = 8
    """Steps without progress after which the agent looks further ahead and steps aside, to pass a corner."""
    patience: int = 50
    """Steps without progress after which it counts as stuck."""
    horizon: int | None = None
    """The only number of steps ahead that it was trained for; None: it was not, or for several."""
    steps_ahead: int = 1
    """Environment steps between the agent and its target, where a plan is followed by time."""
    space: Space | None = None
    """What it reads of a planned state; None: whatever is planned."""
    body: Body | None = None
    """The body that it drives; None: any."""
    source: str | None = None
    """Where it was loaded from."""

    def reset(self, observations: Array) -> None:
        """E episodes begin at `observations` [E, obs]; a controller with a memory forgets the ones before."""

    def __call__(self, observations: Array, targets: Array) -> Array:
        """Actions [E, act] that take agents at `observations` [E, obs] towards planned states `targets` [E, D]."""
        raise NotImplementedError
