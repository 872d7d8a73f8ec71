"""The denoising loop, the only one: every order, schedule, guidance and chain length runs through `sample`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.orders import Order
from compdiffuser.compose.schedule import Schedule
from compdiffuser.diffusion.conditions import Conditions, Denoise

INITIAL = 2**20  # the noise stream's step for initial samples, beyond any schedule


@torch.no_grad()
def sample(
    denoise: Denoise,
    chains: Chains,
    schedule: Schedule,
    order: Order,
    *,
    horizon: int,
    overlap: int,
    guidance: float = 1.0,
    initial: Tensor | None = None,
    watch: Callable[[int, int, Tensor], None] | None = None,
) -> Tensor:
    """Denoise all chunks of all chains together: x₀ [M, H, D].

    `initial` [M, H, D] are samples at level `schedule.sigma[0]`; by default they are pure noise. `watch` is called with
    (round, rounds, estimate of x₀ [M, H, D]) after every round.
    """
    dim = chains.start.shape[-1]
    left, right = chains.left, chains.right
    level = schedule.sigma[:1].expand(len(chains)).clone()
    x = initial
    if x is None:
        # Unit-variance noise of the variance-preserving process, in this scale.
        scale = (1 + schedule.sigma[0] ** 2).sqrt()
        x = scale * gaussian(chains.key, torch.full_like(chains.key, INITIAL), horizon, dim)
    x = _tied(x, chains, overlap) if order.average else x.clone()
    estimate = torch.zeros_like(x)
    rounds = order.rounds(len(schedule))
    for index, (rows, step) in enumerate(rounds):
        conditions = _conditions(x, level, chains, left, right, rows, overlap, told=not order.average)
        clean = guided(denoise, x[rows], schedule.sigma[step], conditions, guidance)
        fresh = gaussian(chains.key[rows], step, horizon, dim)
        if order.average:
            clean, fresh = _averaged(clean, chains, overlap), _tied(fresh, chains, overlap)
        keep, noise = schedule.keep[step][:, None, None], schedule.noise[step][:, None, None]
        x[rows] = clean + keep * (x[rows] - clean) + noise * fresh
        level[rows] = schedule.sigma[step + 1]
        if watch is not None:
            estimate[rows] = clean
            watch(index, len(rounds), estimate)
    return x


def noised(clean: Tensor, chains: Chains, sigma: Tensor | float) -> Tensor:
    """Finished chunks [M, H, D] with noise of level σ, from which `sample` can begin again."""
    return clean + sigma * gaussian(chains.key, torch.full_like(chains.key, INITIAL), *clean.shape[1:])


def guided(denoise: Denoise, x: Tensor, sigma: Tensor, conditions: Conditions, weight: float) -> Tensor:
    """Classifier-free guidance: x₀(nothing) + w·(x₀(conditions) − x₀(nothing))."""
    if weight == 1.0:
        return denoise(x, sigma, conditions)
    both = Conditions.cat([conditions, conditions.dropped()])
    told, untold = denoise(torch.cat([x, x]), torch.cat([sigma, sigma]), both).chunk(2)
    return untold + weight * (told - untold)


def _conditions(
    x: Tensor, level: Tensor, chains: Chains, left: Tensor, right: Tensor, rows: Tensor, overlap: int, told: bool
) -> Conditions:
    """What the moving rows see of their neighbours' present states."""
    has_left, has_right = chains.has_left[rows], chains.has_right[rows]
    before, after = left[rows], right[rows]
    dtype = x.dtype
    return Conditions(
        left=x[before, x.shape[1] - overlap :],
        left_sigma=level[before],
        right=x[after, :overlap],
        right_sigma=level[after],
        start=chains.start[rows],
        goal=chains.goal[rows],
        has_left=has_left.to(dtype) * told,
        has_right=has_right.to(dtype) * told,
        has_start=(~has_left).to(dtype),
        has_goal=(~has_right).to(dtype),
    )


def _averaged(x: Tensor, chains: Chains, overlap: int) -> Tensor:
    """Both sides of every overlap become their mean."""
    after = chains.has_left.nonzero()[:, 0]
    mean = (x[after - 1, x.shape[1] - overlap :] + x[after, :overlap]) / 2
    x = x.clone()
    x[after - 1, x.shape[1] - overlap :] = mean
    x[after, :overlap] = mean
    return x


def _tied(x: Tensor, chains: Chains, overlap: int) -> Tensor:
    """The right side of every overlap takes the left side's values."""
    after = chains.has_left.nonzero()[:, 0]
    x = x.clone()
    x[after, :overlap] = x[after - 1, x.shape[1] - overlap :]
    return x
