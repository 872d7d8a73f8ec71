"""Step rules: how rows move from their level σ to a lower one along the probability-flow ODE dx/dσ = (x − x₀)/σ.

A rule gives the deterministic part of a step, to level keep·σ; fresh noise is added by the loop in `sample`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from compdiffuser.checks import chosen

Estimate = Callable[[Tensor, Tensor, Tensor], Tensor]
"""`estimate(x [M, H, D], level [M], rows [m]) -> x₀ [m, H, D]`: chosen rows, conditioned on their neighbours in x."""

StepRule = Callable[[Estimate, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""`rule(estimate, x [M, H, D], level [M], rows [m], keep [m]) -> (x₀, x at level keep·σ)`, both [m, H, D]."""


def euler(estimate: Estimate, x: Tensor, level: Tensor, rows: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """x₀ + keep·(x − x₀): first order, one call of the denoiser."""
    clean = estimate(x, level, rows)
    return clean, clean + keep[:, None, None] * (x[rows] - clean)


def heun(estimate: Estimate, x: Tensor, level: Tensor, rows: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Karras et al. 2022, algorithm 1: second order, two calls of the denoiser, and one where a row arrives at σ = 0.

    Rows that move together see each other's Euler steps in the second call, so the whole chain is integrated to second
    order. A neighbour that moves in another round is seen as it is, which is exact to first order only.
    """
    # Euler step.
    clean, moved = euler(estimate, x, level, rows, keep)
    lower = keep * level[rows]
    short = (lower > 0).nonzero()[:, 0]
    if len(short) == 0:
        return clean, moved
    # 2nd order correction: the mean slope of both ends, for rows that stop short of σ = 0.
    ahead, ahead_level = x.index_copy(0, rows, moved), level.index_copy(0, rows, lower)
    again = estimate(ahead, ahead_level, rows[short])
    sigma, lower = level[rows][short, None, None], lower[short, None, None]
    slope = (x[rows][short] - clean[short]) / sigma
    slope_ahead = (moved[short] - again) / lower
    return clean, moved.index_add(0, short, (lower - sigma) / 2 * (slope_ahead - slope))


STEPS: dict[str, StepRule] = {"euler": euler, "heun": heun}


def step_rule(name: str) -> StepRule:
    """Raises UserError for an unknown step rule."""
    return chosen("step rule", name, STEPS)
