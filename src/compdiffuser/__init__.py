"""CompDiffuser: plan long trajectories from short ones."""

from compdiffuser.types import Episodes, Policy, UserError

__all__ = ["Episodes", "Policy", "UserError"]
__version__ = "0.1.0"
