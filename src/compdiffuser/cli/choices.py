"""Names that options accept, as help texts list them.

The registries that own them import PyTorch, for which `--help` does not wait. Values are checked against the registries
when a command runs, and a test compares these names with theirs.
"""

from __future__ import annotations

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


def listed(*names: str) -> str:
    """As a help text shows them."""
    return "|".join(names)
