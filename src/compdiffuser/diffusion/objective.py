"""The training objective: L_nbr, L_start and L_end of the paper as one masked loss.

A neighbour is an independent noisy copy of the chunk's own first or last O states (the paper's appendix on noisy chunk
conditioning). Its noise level is the row's own half of the time and otherwise lower: at test time a neighbour that has
already been updated is a whole sampling step ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from compdiffuser.checks import between, finite, whole
from compdiffuser.diffusion.conditions import Conditions, Denoise
from compdiffuser.diffusion.formulation import Formulation
from compdiffuser.types import UserError


@dataclass(frozen=True)
class ObjectiveConfig:
    """How the two sides of a training chunk are drawn."""

    overlap: int = 56
    """O, states that a neighbour shows."""
    drop: float = 0.15
    """Probability that a side has no condition."""
    state: float = 0.30
    """Probability that a side is conditioned on its clean end state; otherwise it sees its noisy neighbour."""
    ahead: float = 0.5
    """Probability that a neighbour is less noisy than the row."""
    ahead_ratio: float = 0.5
    """Such a neighbour's σ is the row's times U[ahead_ratio, 1]."""
    positions: float | None = 0.5
    """Share of the loss that is about positions, where postures are planned too: two slow dimensions among many busy
    ones. None: all dimensions count alike."""

    def __post_init__(self) -> None:
        whole(self, "overlap")
        between(self, "ahead", "ahead_ratio", *(["positions"] if self.positions is not None else []))
        finite(self, "drop", "state")
        if self.drop < 0 or self.state < 0 or self.drop + self.state > 1:
            raise UserError(f"drop {self.drop} and state {self.state} are probabilities that may not exceed 1 together")


@dataclass(frozen=True)
class NoisyBatch:
    """One training batch, with every random number already drawn."""

    clean: Tensor
    """[M, H, D]"""
    noisy: Tensor
    """[M, H, D]"""
    sigma: Tensor
    """[M]"""
    conditions: Conditions


def draw(
    clean: Tensor, formulation: Formulation, config: ObjectiveConfig, generator: torch.Generator | None = None
) -> NoisyBatch:
    """Noise a batch of chunks [M, H, D] and choose what each side sees."""
    rows, horizon, _ = clean.shape
    overlap = config.overlap
    uniform = torch.rand(5, rows, device=clean.device, generator=generator)
    sigma = formulation.training_levels(uniform[0])

    def noised(states: Tensor, level: Tensor) -> Tensor:
        noise = torch.randn(states.shape, device=states.device, dtype=states.dtype, generator=generator)
        return states + level[:, None, None] * noise

    def neighbour_level(choice: Tensor) -> Tensor:
        # One uniform number decides whether the neighbour is ahead and, rescaled, by how much.
        ratio = config.ahead_ratio + (1 - config.ahead_ratio) * choice / max(config.ahead, 1e-9)
        return torch.where(choice < config.ahead, sigma * ratio, sigma)

    left_sigma, right_sigma = neighbour_level(uniform[1]), neighbour_level(uniform[2])
    sees_state = [(side >= config.drop) & (side < config.drop + config.state) for side in uniform[3:5]]
    sees_chunk = [side >= config.drop + config.state for side in uniform[3:5]]
    conditions = Conditions(
        left=noised(clean[:, :overlap], left_sigma),
        left_sigma=left_sigma,
        right=noised(clean[:, horizon - overlap :], right_sigma),
        right_sigma=right_sigma,
        start=clean[:, 0],
        goal=clean[:, -1],
        has_left=sees_chunk[0].to(clean.dtype),
        has_right=sees_chunk[1].to(clean.dtype),
        has_start=sees_state[0].to(clean.dtype),
        has_goal=sees_state[1].to(clean.dtype),
    )
    return NoisyBatch(clean, noised(clean, sigma), sigma, conditions)


def loss(denoise: Denoise, batch: NoisyBatch, formulation: Formulation, weights: Tensor | None = None) -> Tensor:
    """λ(σ)·‖D(x, σ) − x₀‖², averaged over the batch; of dimensions with `weights` [D], by these."""
    error = (denoise(batch.noisy, batch.sigma, batch.conditions) - batch.clean).square()
    if weights is not None:
        error = error * weights
    return (formulation.weight(batch.sigma) * error.mean(dim=(1, 2))).mean()
