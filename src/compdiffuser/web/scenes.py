"""A body in three dimensions: what MuJoCo knows of its limbs, small enough for a page to draw it at any qpos.

The page turns joints by itself. Any world that has a `scene()` can be drawn; nothing here knows a body by name.
"""

from __future__ import annotations

from typing import Any

from compdiffuser.domains import Domain, World
from compdiffuser.types import UserError
from compdiffuser.web.models import Limb, SceneReply

KINDS = {2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box"}
"""MuJoCo's numbers for the shapes that a page draws; floors are drawn from the map, and meshes are left out."""
JOINTS = {0: "free", 1: "ball", 2: "slide", 3: "hinge"}
SHOWN_GROUPS = 3  # MuJoCo draws geoms of the groups 0 to 2 unless asked otherwise
MOST = 400
"""Limbs and shapes that a page can draw in time."""


def describe(domain: Domain, world: World) -> SceneReply:
    """The limbs of a world that has begun an episode, and how they stand. Raises UserError where it cannot be drawn."""
    scene = getattr(world, "scene", None)
    if scene is None:
        raise UserError(f"the world '{domain.name}' says nothing about how its bodies look")
    model, qpos = scene()
    if model.nbody > MOST or model.ngeom > MOST * MOST:
        raise UserError(f"the world '{domain.name}' has {model.nbody} limbs, at most {MOST} can be drawn here")
    known = domain.body.qpos
    dims = enumerate(domain.space.dims)
    return SceneReply(
        limbs=[_limb(model, number) for number in range(1, model.nbody)],
        qpos=_numbers(qpos),
        pose=[[column, known[dim]] for column, dim in dims if known.get(dim, model.nq) < model.nq],
    )


def _limb(model: Any, number: int) -> Limb:
    first, count = int(model.body_jntadr[number]), int(model.body_jntnum[number])
    geoms = [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] == number][:MOST]
    return Limb(
        parent=int(model.body_parentid[number]) - 1,
        pos=_numbers(model.body_pos[number]),
        quat=_numbers(model.body_quat[number]),
        joints=[_joint(model, joint) for joint in range(first, first + count)],
        shapes=[
            {
                "kind": KINDS[int(model.geom_type[geom])], "size": _numbers(model.geom_size[geom]),
                "pos": _numbers(model.geom_pos[geom]), "quat": _numbers(model.geom_quat[geom]),
                "rgba": _numbers(_colour(model, geom)),
            }
            for geom in geoms
            if int(model.geom_type[geom]) in KINDS and int(model.geom_group[geom]) < SHOWN_GROUPS
        ],
    )  # fmt: skip


def _joint(model: Any, joint: int) -> dict[str, Any]:
    at = int(model.jnt_qposadr[joint])
    kind = JOINTS[int(model.jnt_type[joint])]
    return {
        "kind": kind, "at": at, "axis": _numbers(model.jnt_axis[joint]), "pos": _numbers(model.jnt_pos[joint]),
        "zero": float(model.qpos0[at]),
    }  # fmt: skip


def _colour(model: Any, geom: int) -> Any:
    material = int(model.geom_matid[geom])
    return model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]


def _numbers(values: Any) -> list[float]:
    return [round(float(value), 4) for value in values]
