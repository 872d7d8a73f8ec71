"""Noise levels σ of x = x₀ + σ·n: the sequences a sampler walks down, and the distributions training draws from.

A variance-preserving process with signal √ᾱ is the same process after dividing by √ᾱ, so the paper's 512-step cosine
DDPM appears here as the levels σ = √(1 − ᾱ)/√ᾱ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from compdiffuser.checks import finite
from compdiffuser.types import UserError

COSINE_STEPS = 512


def karras_levels(n: int, low: float = 0.004, high: float = 80.0, rho: float = 7.0) -> Tensor:
    """N + 1 levels from `high` to `low` and then 0, spaced as in Karras et al. 2022, equation 5. [N + 1]"""
    ramp = torch.linspace(0, 1, n, dtype=torch.float64)
    levels = (high ** (1 / rho) + ramp * (low ** (1 / rho) - high ** (1 / rho))) ** rho
    return torch.cat([levels, levels.new_zeros(1)])


def cosine_table(steps: int = COSINE_STEPS) -> Tensor:
    """σ of every step of the cosine DDPM of Nichol and Dhariwal, least noise first. [steps]"""

    def signal(t: float) -> float:
        return math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2

    betas = [min(1 - signal((i + 1) / steps) / signal(i / steps), 0.999) for i in range(steps)]
    signal_power = torch.cumprod(1 - torch.tensor(betas, dtype=torch.float64), dim=0)
    return ((1 - signal_power) / signal_power).sqrt()


def cosine_levels(n: int) -> Tensor:
    """N + 1 levels: every ⌊512/N⌋-th step of the cosine DDPM from the noisy end, then 0, as in DDIM. [N + 1]

    Raises UserError for more steps than the DDPM has.
    """
    if n > COSINE_STEPS:
        raise UserError(f"formulation paper has {COSINE_STEPS} noise levels, so steps cannot be {n}")
    table = cosine_table()
    chosen = torch.arange(n - 1, -1, -1) * (COSINE_STEPS // n)
    return torch.cat([table[chosen], table.new_zeros(1)])


@dataclass(frozen=True)
class LogNormal:
    """log σ ~ N(mean, std²), drawn by inverse transform so that one uniform number gives one level."""

    mean: float = 0.0
    std: float = 1.6

    def __post_init__(self) -> None:
        finite(self, "mean", "std")

    def __call__(self, uniform: Tensor) -> Tensor:
        quantile = uniform.clamp(1e-6, 1 - 1e-6)
        return (self.mean + self.std * math.sqrt(2.0) * torch.erfinv(2 * quantile - 1)).exp()


@lru_cache(maxsize=8)
def _cosine_table_on(device: torch.device, dtype: torch.dtype) -> Tensor:
    """Copied to a device once: a captured CUDA graph cannot copy from the CPU."""
    return cosine_table().to(device, dtype)


@dataclass(frozen=True)
class CosineUniform:
    """A step of the cosine DDPM, uniformly."""

    def __call__(self, uniform: Tensor) -> Tensor:
        table = _cosine_table_on(uniform.device, uniform.dtype)
        return table[(uniform * COSINE_STEPS).long().clamp(max=COSINE_STEPS - 1)]


def cosine_below(sigma: Tensor) -> Tensor:
    """The level one step of the cosine DDPM below each σ, t − 1 for t; the lowest stays as it is."""
    table = _cosine_table_on(sigma.device, sigma.dtype)
    return table[(torch.searchsorted(table, sigma.contiguous()) - 1).clamp(0, COSINE_STEPS - 1)]
