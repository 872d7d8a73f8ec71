"""Why an episode failed: the simulation, the plan, a fall, a thing that was to be taken along, the controller, time.

A *thing* is a position group beyond the agent's, such as a ball. That it was never reached, or was lost on the way, is
asked of positions alone, so that every world with things tells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compdiffuser.domains import Body, Space
from compdiffuser.domains.body import Pace
from compdiffuser.domains.space import apart
from compdiffuser.types import Array

UNSTABLE = "unstable simulation"
INFEASIBLE = "infeasible plan"
FALLEN = "fallen"
LOST = "controller lost"
TIME_OUT = "time out"
CAUSES = (INFEASIBLE, FALLEN, LOST, TIME_OUT, UNSTABLE)
"""Why an episode can fail in any world; every failure has exactly one cause."""
MOVED = 0.5
"""Metres: a thing that stayed nearer to where it lay was never reached."""
APART = 2.0
"""Metres: a thing that is further from the agent at the end was lost."""

_MEANINGS = {
    INFEASIBLE: "the plan it followed passes through a wall or jumps",
    FALLEN: "it fell and did not get up",
    LOST: "it left the plan, and no new one was allowed or possible",
    TIME_OUT: "it ran out of steps on a sound plan",
    UNSTABLE: "the simulation became unstable",
}


@dataclass(frozen=True)
class Ending:
    """What is known of a failed episode when it is over."""

    unstable: bool = False
    """Whether the simulation blew up."""
    fallen: bool = False
    """Whether the body lay on the ground, and not just for a moment."""
    decisions: Sequence[Any] = ()
    """What the policy decided on the way, where it tells."""
    path: Array | None = None
    """[n, P], the positions of all groups on the way."""


def cause_of(ending: Ending, space: Space) -> str:
    """The first thing that explains a failure."""
    if ending.unstable:
        return UNSTABLE
    last = ending.decisions[-1] if ending.decisions else None
    if getattr(last, "fault", None):
        return INFEASIBLE
    if ending.fallen:
        return FALLEN
    if ending.path is not None and (about := _about_things(ending.path, space)) is not None:
        return about
    reason = getattr(last, "reason", None)
    # A body that fell and got up again follows its plan.
    if last is None or getattr(last, "planned", True) or reason == FALLEN:
        return TIME_OUT
    return reason if reason in causes_in(space) else LOST


def causes_in(space: Space) -> tuple[str, ...]:
    """All causes of failure in a world with these position groups."""
    things = [name for name, _ in space.positions[1:]]
    return (*CAUSES, *(cause for name in things for cause in (never_reached(name), lost(name))))


def never_reached(thing: str) -> str:
    return f"{thing} never reached"


def lost(thing: str) -> str:
    return f"{thing} lost"


def meaning(cause: str) -> str:
    """A cause as the end of a sentence about the agent."""
    if cause in _MEANINGS:
        return _MEANINGS[cause]
    thing = cause.removesuffix(never_reached("")).removesuffix(lost(""))
    how = "it never moved the" if cause == never_reached(thing) else "it moved, and then lost, the"
    return f"{how} {thing}"


def lies(body: Body, steps_down: Array) -> Array:
    """[E] bool: which bodies have fallen, that have been down for `steps_down` [E] steps.

    One that gets up by itself has fallen only where it stays down for as long as it may make no progress.
    """
    return steps_down >= ((body.pace or Pace()).patience if body.gets_up else 1)


def _about_things(path: Array, space: Space) -> str | None:
    """What happened to the first thing that was not reached, or was lost, on a path [n, P]."""
    ends = np.cumsum([len(columns) for _, columns in space.positions])
    agent, *things = np.split(path, ends[:-1], axis=1)
    for (name, _), places in zip(space.positions[1:], things, strict=True):
        if np.linalg.norm(places - places[0], axis=1).max() <= MOVED:
            return never_reached(name)
        if apart(places[-1], agent[-1]) > APART:
            return lost(name)
    return None
