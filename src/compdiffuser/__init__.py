"""CompDiffuser: plan long trajectories from short ones."""

from typing import TYPE_CHECKING

from compdiffuser.types import Episodes, Policy, UserError

if TYPE_CHECKING:
    from compdiffuser.compose.schedule import SamplerConfig
    from compdiffuser.domains import Domain
    from compdiffuser.planning.config import PlanConfig
    from compdiffuser.planning.plan import Plan
    from compdiffuser.planning.planner import Planner
    from compdiffuser.planning.steering.regions import Box, Disc, Grown, Outside, Polygon
    from compdiffuser.planning.steering.steering import Steering, Waypoint
    from compdiffuser.planning.steering.walls import Walls
    from compdiffuser.presets import Preset
    from compdiffuser.registering import register

__version__ = "0.1.0"
__all__ = [
    "Box", "Disc", "Domain", "Episodes", "Grown", "Outside", "Plan", "PlanConfig", "Planner", "Policy", "Polygon",
    "Preset", "SamplerConfig", "Steering", "UserError", "Walls", "Waypoint", "__version__", "register",
]  # fmt: skip

_HOMES = {
    **dict.fromkeys(("Box", "Disc", "Grown", "Outside", "Polygon"), "compdiffuser.planning.steering.regions"),
    **dict.fromkeys(("Steering", "Waypoint"), "compdiffuser.planning.steering.steering"),
    "Walls": "compdiffuser.planning.steering.walls",
    "Domain": "compdiffuser.domains",
    "Plan": "compdiffuser.planning.plan",
    "PlanConfig": "compdiffuser.planning.config",
    "Planner": "compdiffuser.planning.planner",
    "Preset": "compdiffuser.presets",
    "SamplerConfig": "compdiffuser.compose.schedule",
    "register": "compdiffuser.registering",
}


def __getattr__(name: str) -> object:
    """The planner brings PyTorch along, which takes a second; it is imported when it is asked for."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'compdiffuser' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
