"""Offline goal-conditioned baselines, one file each: config, losses, and what the agent does.

`METHODS` is the whole registry: a name, the agent, its config. A new method is a file and a line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from compdiffuser.baselines.agent import Sizes
from compdiffuser.baselines.crl import CRL, CRLConfig
from compdiffuser.baselines.decision_transformer import DecisionTransformer, DTConfig
from compdiffuser.baselines.gcbc import GCBC, GCBCConfig
from compdiffuser.baselines.gciql import GCIQL, GCIQLConfig
from compdiffuser.baselines.gcivl import GCIVL, GCIVLConfig
from compdiffuser.baselines.hiql import HIQL, HIQLConfig
from compdiffuser.baselines.qrl import QRL, QRLConfig
from compdiffuser.baselines.rvs import RvS, RvSConfig
from compdiffuser.checks import unknown

__all__ = ["METHODS", "Method", "Sizes", "method"]


class Method(NamedTuple):
    """A baseline by its two classes, and how often it was changed so that what it learned before is of no use."""

    agent: type[Any]
    """An `Agent`: (config, sizes, seeds) → networks of all seeds."""
    config: type[Any]
    revision: int = 1


METHODS: dict[str, Method] = {
    "gcbc": Method(GCBC, GCBCConfig),
    "gcivl": Method(GCIVL, GCIVLConfig),
    "gciql": Method(GCIQL, GCIQLConfig),
    "qrl": Method(QRL, QRLConfig),
    "crl": Method(CRL, CRLConfig),
    "hiql": Method(HIQL, HIQLConfig, revision=2),
    "rvs": Method(RvS, RvSConfig),
    "dt": Method(DecisionTransformer, DTConfig),
}


def method(name: str, also: Sequence[str] = ()) -> Method:
    """A method by name. Raises UserError with the nearest name, be it here or among those known elsewhere (`also`)."""
    if name in METHODS:
        return METHODS[name]
    raise unknown("method", name, [*also, *METHODS], "methods")
