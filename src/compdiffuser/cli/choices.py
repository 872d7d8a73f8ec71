"""Names that options accept, as help texts list them.

The registries that own them import PyTorch, for which `--help` does not wait. Values are checked against the registries
when a command runs, and a test compares these names with theirs.
"""

from __future__ import annotations

from typing import Any

ORDERS = ("parallel", "autoregressive", "autoregressive-backward", "sequential", "gsc")
"""Keys of `compose.ORDERS`."""
RULES = ("euler", "heun")
"""Keys of `compose.STEPS`."""
SCORES = ("reconstruction", "overlap")
"""Keys of `planning.search.SCORES`."""
BLENDINGS = ("exponential", "cosine", "linear")
"""Keys of `compose.BLENDINGS`."""
PLANNERS = ("compdiffuser", "dd")
"""Methods that plan."""
BASELINES = ("gcbc", "gcivl", "gciql", "qrl", "crl", "hiql", "rvs", "dt")
"""Keys of `baselines.METHODS`."""
ARCHITECTURES = ("dit1d", "unet1d")
"""Keys of `models.ARCHITECTURES`."""


RECIPES = ("default", "paper", "authors")
"""Keys of `planning.recipes.RECIPES`."""
SAMPLERS = ("default", "paper", "authors")
"""Samplers with a name of their own; `eval` takes orders besides, each with the paper's."""
LEVELS = ("refine", "scaffold")
"""Options that are a level of noise, "none", or "auto": as the sampler says."""
CANDIDATES = {"plan": 64, "eval": 256, "paper": 40}
"""Most fresh candidates: with our sampler, by the command, and with the paper's."""


def usual_candidates(command: str, sampler: str) -> int:
    """Most fresh candidates, where nothing else was asked for."""
    return CANDIDATES[command if sampler == "default" else "paper"]


def given_options(options: object, *names: str) -> dict[str, Any]:
    """Those of a command's options on how to plan that were given."""
    values = {name: value for name in names if (value := getattr(options, name)) is not None}
    for name in values.keys() & LEVELS:
        if values[name] == "auto":
            del values[name]
        elif values[name] == "none":
            values[name] = None
    return values


def listed(*names: str) -> str:
    """As a help text shows them."""
    return "|".join(names)
