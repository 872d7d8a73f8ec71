"""Pictures of the poses that a plan of whole states asks of its body."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from compdiffuser.domains import Domain
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.problems import Placement
from compdiffuser.files import replacing
from compdiffuser.planning.plan import Plan
from compdiffuser.types import Array, UserError

POSES = 50


def check_poses(domain: Domain) -> None:
    """Raise UserError where plans of a world cannot be drawn in poses."""
    if domain.make is None:
        raise UserError(f"'{domain.name}' has no simulator whose bodies could be drawn")
    if domain.space.only_places:
        named = ", ".join(domain.space.names)
        raise UserError(f"plans of '{domain.name}' hold {named}, and no posture that could be drawn")


def draw_poses(plan: Plan, domain: Domain, path: str | Path, count: int = POSES) -> None:
    """Write a picture of a plan's poses. Raises UserError where there are none, and where MuJoCo cannot draw."""
    from compdiffuser.plotting.poses import draw_poses as drawn

    check_poses(domain)
    dims = domain.space.dims
    known = {column: domain.body.qpos[dim] for column, dim in enumerate(dims) if dim in domain.body.qpos}
    start, goal = (domain.space.places(state) for state in (plan.start, plan.goal))
    with EnvironmentPool(domain, 0) as pool:
        pool.reset([Placement(start, goal, 0)])
        scene = getattr(pool.worlds[0], "scene", None)
        if scene is None or domain.maze is None:
            raise UserError(f"'{domain.name}' is not simulated by MuJoCo in a maze, so its bodies cannot be drawn")
        model, rest = scene()
        picture = drawn(model, rest, plan.states, chunks_of(plan), known, domain.maze, count)
    with replacing(path) as temporary:
        Image.fromarray(picture).save(temporary, format="png")


def chunks_of(plan: Plan) -> Array:
    """The number [T] of the chunk that each state of a plan belongs to: halfway through an overlap, it changes."""
    step = plan.chunks.shape[1] - plan.overlap
    return np.clip((np.arange(len(plan.states)) - plan.overlap // 2) // step, 0, plan.n_chunks - 1)
