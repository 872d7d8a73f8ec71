"""Denoisers made by hand, whose answers are known, and chains to try them on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.schedule import SamplerConfig, Schedule
from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.diffusion.levels import karras_levels
from compdiffuser.models import DiT1dConfig, UNet1dConfig

HORIZON, OVERLAP, DIM = 10, 4, 2
SMALL = {"dit1d": DiT1dConfig(width=32, depth=2, heads=2, patch=4), "unet1d": UNet1dConfig(width=32, depth=2)}
"""A small network of every architecture."""


def chains_of(*lengths: int, dim: int = DIM, seed: int = 0) -> Chains:
    """Chains with ends of their own, and seeds 0, 1, 2, …"""
    generator = torch.Generator().manual_seed(seed)
    starts, goals = torch.randn(2, len(lengths), dim, generator=generator)
    return Chains.build(starts, goals, torch.tensor(lengths), torch.arange(len(lengths)))


def schedule_of(steps: int = 6, eta: float = 1.0, repeats: int = 1, **options: object) -> Schedule:
    return Schedule.build(karras_levels, SamplerConfig(steps=steps, eta=eta, repeats=repeats, **options), "cpu")


def coupled(x: Tensor, sigma: Tensor, c: Conditions) -> Tensor:
    """Depends on every condition, and on each number of a row in the same way whatever rows are beside it."""

    def shrunk(states: Tensor, level: Tensor) -> Tensor:
        return states / (1 + level * level)[:, None, None]

    out = shrunk(x, sigma)
    overlap = c.left.shape[1]
    late = x.shape[1] - overlap
    begin, middle, end = out[:, :overlap], out[:, overlap:late], out[:, late:]
    begin = begin + 0.4 * c.has_left[:, None, None] * (shrunk(c.left, c.left_sigma) - begin)
    end = end + 0.3 * c.has_right[:, None, None] * (shrunk(c.right, c.right_sigma) - end)
    middle = middle + 0.1 * (c.has_left * c.left[:, 0, 0] + c.has_right * c.right[:, -1, -1])[:, None, None]
    out = torch.cat([begin, middle, end], dim=1)
    pull = 0.5 * c.has_start[:, None] * (c.start - out[:, 0]) - 0.25 * c.has_goal[:, None] * (c.goal - out[:, -1])
    return out + pull[:, None]


@dataclass(frozen=True)
class Gaussian:
    """The exact denoiser of chunks x₀ ~ N(mean, covariance over time), the same for every dimension.

    What it is told are further observations: a neighbour's overlap with noise of its own level, an end state without.
    """

    mean: Tensor
    """[H, D]"""
    covariance: Tensor
    """[H, H]"""

    def __call__(self, x: Tensor, sigma: Tensor, c: Conditions) -> Tensor:
        rows, horizon, _ = x.shape
        overlap = c.left.shape[1]
        exact = 1e8  # precision of what is seen without noise
        seen = torch.zeros(rows, horizon, dtype=torch.float64)  # precision of what is observed at each time
        heard = torch.zeros(x.shape, dtype=torch.float64)  # the observations, weighted by their precision

        def precision_at(level: Tensor) -> Tensor:
            return (level.double() ** -2).clamp(max=exact)

        def observe(where: slice, states: Tensor, precision: Tensor) -> None:
            seen[:, where] += precision[:, None]
            heard[:, where] += precision[:, None, None] * (states.double() - self.mean[where])

        observe(slice(None), x, precision_at(sigma))
        observe(slice(0, overlap), c.left, c.has_left * precision_at(c.left_sigma))
        observe(slice(horizon - overlap, horizon), c.right, c.has_right * precision_at(c.right_sigma))
        observe(slice(0, 1), c.start[:, None], c.has_start.double() * exact)
        observe(slice(horizon - 1, horizon), c.goal[:, None], c.has_goal.double() * exact)
        precision = torch.linalg.inv(self.covariance) + torch.diag_embed(seen)
        return (self.mean + torch.linalg.solve(precision, heard)).to(x.dtype)


def walk(horizon: int, spread: float = 1.0, correlation: float = 0.9, dim: int = 1) -> Gaussian:
    """A stationary Markov process."""
    gap = (torch.arange(horizon)[:, None] - torch.arange(horizon)).abs()
    mean = torch.linspace(-1, 2, horizon * dim, dtype=torch.float64).view(horizon, dim)
    return Gaussian(mean, (spread**2 * correlation**gap).double())


def untold(denoise: Gaussian):
    """The same denoiser, told nothing."""
    return lambda x, sigma, conditions: denoise(x, sigma, conditions.dropped())


def variance_reached(schedule: Schedule, variance: Tensor) -> Tensor:
    """Variance of the samples when x₀ ~ N(0, variance) and the denoiser is exact: every step is a linear map."""
    reached = (1 + schedule.sigma[0] ** 2).expand_as(variance)
    for sigma, keep, noise in zip(schedule.sigma, schedule.keep, schedule.noise, strict=False):
        gain = variance / (variance + sigma**2)  # x₀ = gain·x
        reached = (gain + keep * (1 - gain)) ** 2 * reached + noise**2
    return reached
