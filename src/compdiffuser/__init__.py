"""CompDiffuser: plan long trajectories from short ones."""

from typing import TYPE_CHECKING

from compdiffuser.types import Episodes, Policy, UserError

if TYPE_CHECKING:
    from compdiffuser.compose.schedule import SamplerConfig
    from compdiffuser.planning.config import PlanConfig
    from compdiffuser.planning.plan import Plan
    from compdiffuser.planning.planner import Planner

__version__ = "0.1.0"
__all__ = ["Episodes", "Plan", "PlanConfig", "Planner", "Policy", "SamplerConfig", "UserError", "__version__"]


def __getattr__(name: str) -> object:
    """The planner brings PyTorch along, which takes a second; it is imported when it is asked for."""
    from importlib import import_module

    homes = {
        "Plan": "compdiffuser.planning.plan",
        "PlanConfig": "compdiffuser.planning.config",
        "Planner": "compdiffuser.planning.planner",
        "SamplerConfig": "compdiffuser.compose.schedule",
    }
    if name not in homes:
        raise AttributeError(f"module 'compdiffuser' has no attribute '{name}'")
    return getattr(import_module(homes[name]), name)
