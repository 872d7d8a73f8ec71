"""Starts and goals as people give them: the places of what moves, without a posture that nobody can point at.

A start may be its places alone: the simulator says in which posture its body waits there. A goal may be what its world
asks for alone, such as the ball's place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compdiffuser.domains import Domain
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.problems import Placement, Problem
from compdiffuser.planning.roads.goals import check_room, whole_goals
from compdiffuser.types import Array, UserError


def start_columns(domain: Domain) -> list[int]:
    """Columns of a planned state that a start has to name: the places, and all where no simulator adds the rest."""
    space = domain.space
    return space.columns if domain.make is not None else list(range(len(space.dims)))


def goal_columns(domain: Domain) -> list[int]:
    """Columns of a planned state that a goal has to name."""
    return [column for group in domain.asked for column in group.columns]


def lacks_posture(domain: Domain, start: Sequence[float]) -> bool:
    """Whether a start names places alone, and a simulator can add the rest."""
    return len(start) == len(start_columns(domain)) < len(domain.space.dims)


def whole(domain: Domain, start: Sequence[float], goal: Sequence[float]) -> tuple[Array, Array]:
    """Start [D] and goal [D]; postures that nobody named are 0. Raises UserError for other numbers of dimensions."""
    dim = len(domain.space.dims)
    begin = np.asarray(start, float)
    if lacks_posture(domain, start):
        begin = np.zeros(dim)
        begin[start_columns(domain)] = start
    (end,) = whole_goals([list(goal)], begin[None], domain.space, domain.asked)
    for what, given in (("start", begin), ("goal", end)):
        if len(given) != dim:
            raise UserError(f"a {what} has {dim} dimensions here ({', '.join(domain.space.names)}), not {len(given)}")
    return begin, np.asarray(end, float)


def check(domain: Domain, start: Sequence[float], goal: Sequence[float]) -> None:
    """Refuse ends without room for an agent, where the maze is known. Others say what else is wrong."""
    if domain.maze is not None:
        given = whole(domain, start, goal)[0] if lacks_posture(domain, start) else start
        check_room(domain, list(given), goal, domain.maze.clearance)


def between(domain: Domain, start: Sequence[float], goal: Sequence[float]) -> Placement:
    """The problem of getting from one end to the other, of which places count."""
    begin, end = (domain.space.places(state) for state in whole(domain, start, goal))
    return Placement(begin, end, 0)


def begun(domain: Domain, problem: Problem) -> tuple[Array, Array]:
    """Where an episode begins and what it asks for, as planned states [D]. Raises UserError without a simulator."""
    with EnvironmentPool(domain, 0) as pool:
        (observed,), (asked,) = pool.reset([problem])
    return domain.space.planned(observed), domain.space.planned(asked)


def completed(domain: Domain, start: Sequence[float], goal: Sequence[float]) -> list[float]:
    """A start that names places alone, with the posture in which the simulator's body waits there."""
    if not lacks_posture(domain, start):
        return list(start)
    return [float(number) for number in begun(domain, between(domain, start, goal))[0]]
