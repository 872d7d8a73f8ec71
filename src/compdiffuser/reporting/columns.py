"""Columns that several tables of success have: published figures, and ours with one plan or with new ones."""

from __future__ import annotations

from compdiffuser.reporting.grid import ANY, Result

PUBLISHED: Result = {"origin": "published"}
MEASURED: Result = {"origin": "measured", "recipe": (None, "default")}
OURS: Result = {**MEASURED, "method": "compdiffuser", "cell": None, "heading": (None, "estimated")}
"""A planner's own figures; a *cell* names a ceiling, and a true heading is for comparison."""
PLACES: Result = {"controller_dims": (None, 2, 4)}
"""Followed by a controller that is told the places of a plan, of an ant or of an ant and a ball."""
RISING: Result = {"settings.rise": (None, True)}
"""Ants that fall get up, or were measured before they could."""
DEFAULT: Result = {**OURS, **PLACES, **RISING, "sampler": "default", "controller_horizon": None}

GSC = ("GSC (published)", {**PUBLISHED, "method": "gsc"})
PAPER = (
    "CompDiffuser (published)",
    {**PUBLISHED, "method": "compdiffuser", "replan": True, "controller_horizon": None},
)  # fmt: skip
BEST_RL = ("best RL (published)", {**PUBLISHED, "method": "best-rl", "dims": ANY})
BEST = ("best (published)", {**PUBLISHED, "method": "best"})
ONE_PLAN = ("ours, one plan", {**DEFAULT, "replan": False})
STAYING_DOWN = ("ours, one plan, staying down", {**ONE_PLAN[1], "settings.rise": False})
FROM_NOISE = ("ours, from pure noise", {**ONE_PLAN[1], "sampler": "noise"})
REPLANNING = ("ours, replanning", {**DEFAULT, "replan": True})
