"""A formulation says how a network becomes a denoiser and what training minimizes; the paper's is one of two.

x₀ ≈ c_skip·x + c_out·F(c_in·x, c_noise), with the loss weighted by λ(σ): Karras et al. 2022, table 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from compdiffuser.checks import chosen
from compdiffuser.diffusion.levels import CosineUniform, LogNormal, cosine_below, cosine_levels, karras_levels

SIGMA_DATA = 0.5


class Scaling(NamedTuple):
    """Factors of one noise level, each shaped like σ."""

    skip: Tensor
    out: Tensor
    in_: Tensor


def edm_scaling(sigma: Tensor) -> Scaling:
    """Input and target of unit variance at every σ."""
    total = (sigma**2 + SIGMA_DATA**2).sqrt()
    return Scaling(SIGMA_DATA**2 / total**2, sigma * SIGMA_DATA / total, 1 / total)


def clean_scaling(sigma: Tensor) -> Scaling:
    """The network predicts x₀ itself from the variance-preserving sample x/√(1 + σ²), as the paper's does."""
    return Scaling(sigma * 0, sigma * 0 + 1, 1 / (1 + sigma**2).sqrt())


def edm_weight(sigma: Tensor) -> Tensor:
    return (sigma**2 + SIGMA_DATA**2) / (sigma * SIGMA_DATA) ** 2


def plain_weight(sigma: Tensor) -> Tensor:
    return sigma * 0 + 1


@dataclass(frozen=True)
class Formulation:
    """Preconditioning, loss weight, training levels and sampling levels that belong together."""

    scaling: Callable[[Tensor], Scaling]
    weight: Callable[[Tensor], Tensor]
    training_levels: Callable[[Tensor], Tensor]
    sampling_levels: Callable[[int], Tensor]
    below: Callable[[Tensor], Tensor] | None = None
    """The level one step below σ, where levels are a finite number of steps."""


FORMULATIONS: dict[str, Formulation] = {
    "default": Formulation(edm_scaling, edm_weight, LogNormal(), karras_levels),
    "paper": Formulation(clean_scaling, plain_weight, CosineUniform(), cosine_levels, cosine_below),
}


def formulation(name: str) -> Formulation:
    """Raises UserError for an unknown formulation."""
    return chosen("formulation", name, FORMULATIONS)
