"""Worlds: one record per environment, its body, and what the planned numbers mean."""

from compdiffuser.domains.body import BODIES, Body
from compdiffuser.domains.controller import Controller
from compdiffuser.domains.domain import DOMAINS, Catalogue, Domain, Stepped, World, domain
from compdiffuser.domains.floorplan import FloorPlan, rectangle
from compdiffuser.domains.growing import GROWN, grown
from compdiffuser.domains.ogbench import OGBENCH
from compdiffuser.domains.robotics import ROBOTICS
from compdiffuser.domains.space import PLANE, Group, Space

DOMAINS.update({each.name: each for each in (*OGBENCH, *ROBOTICS)})
DOMAINS.families[GROWN] = grown

__all__ = [
    "BODIES", "DOMAINS", "PLANE", "Body", "Catalogue", "Controller", "Domain", "FloorPlan", "Group", "Space", "Stepped",
    "World", "domain", "rectangle",
]  # fmt: skip
