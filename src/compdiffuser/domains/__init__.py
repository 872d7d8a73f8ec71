"""Worlds: one record per environment, its body, and what the planned numbers mean."""

from compdiffuser.domains.body import BODIES, Body
from compdiffuser.domains.controller import Controller
from compdiffuser.domains.domain import DOMAINS, Domain, Stepped, World, domain
from compdiffuser.domains.ogbench import OGBENCH
from compdiffuser.domains.robotics import ROBOTICS
from compdiffuser.domains.space import PLANE, Group, Space

DOMAINS.update({each.name: each for each in (*OGBENCH, *ROBOTICS)})

__all__ = [
    "BODIES", "DOMAINS", "PLANE", "Body", "Controller", "Domain", "Group", "Space", "Stepped", "World", "domain",
]  # fmt: skip
