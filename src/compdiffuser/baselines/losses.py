"""The few formulas that several methods share, each per seed: batches [S, B] come in, and [S, B] or [S] goes out."""

from __future__ import annotations

import torch
from torch import Tensor

from compdiffuser.baselines.networks import log_probability

MAX_WEIGHT = 100.0


def expectile_loss(advantage: Tensor, difference: Tensor, expectile: float) -> Tensor:
    """|τ − 1(A < 0)|·δ²: differences where the advantage is negative count less (τ > ½)."""
    return torch.where(advantage >= 0, expectile, 1 - expectile) * difference.square()


def bootstrapped_regression(
    values: Tensor, now: Tensor, then: Tensor, reached: Tensor, discount: float, expectile: float
) -> Tensor:
    """Values V(s, g) to one step and the targets behind it, by expectiles; GCIVL has the equation → [S].

    `now` and `then` are the targets V⁻(s, g) and V⁻(s′, g); they and the values come in two copies, [S, 2, B].
    """
    bootstrapped = (1 - reached)[:, None] * (discount * then - 1)
    advantage = bootstrapped.amin(1) - now.mean(1)
    return expectile_loss(advantage[:, None], bootstrapped - values, expectile).mean(-1).sum(1)


def advantage_weights(advantage: Tensor, alpha: float) -> Tensor:
    """min(exp(α·A), 100), as constants."""
    return (alpha * advantage.detach()).exp().clamp(max=MAX_WEIGHT)


def weighted_cloning(mean: Tensor, actions: Tensor, weights: Tensor) -> Tensor:
    """Advantage-weighted regression (AWR): −E[w · log π(a | s, g)] → [S]."""
    return -(weights * log_probability(mean, actions)).mean(-1)


def climb_and_clone(q: Tensor, mean: Tensor, actions: Tensor, alpha: float) -> Tensor:
    """DDPG+BC: −E[Q(s, μ, g)] / E|Q| − α·E[log π(a | s, g)] → [S]. The scale of Q is taken out."""
    climbing = -q.mean(-1) / (q.detach().abs().mean(-1) + 1e-6)
    return climbing - alpha * log_probability(mean, actions).mean(-1)
