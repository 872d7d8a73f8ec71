"""The training objective: L_nbr, L_start and L_end of the paper as one masked loss.

A neighbour is an independent noisy copy of the chunk's own first or last O states (the paper's appendix on noisy chunk
conditioning). Its noise level is the row's own half of the time and otherwise lower: at test time a neighbour that has
already been updated is a sampling step ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from compdiffuser.checks import between, brief, finite, whole
from compdiffuser.diffusion.conditions import Conditions, Denoise
from compdiffuser.diffusion.formulation import Formulation
from compdiffuser.types import UserError

Sides = Literal["apart", "losses"]
AheadBy = Literal["uniform", "log-uniform", "step"]


@dataclass(frozen=True)
class ObjectiveConfig:
    """How the two sides of a training chunk are drawn."""

    overlap: int = 56
    """O, states that a neighbour shows."""
    sides: Sides = "apart"
    """Each side is drawn by itself; or a row is one of the paper's three losses, each as often: both neighbours, start
    and right neighbour, left neighbour and goal."""
    nothing: float = 0.0
    """Probability that a row is told nothing at all."""
    drop: float = 0.15
    """Probability that a side has no condition, in the other rows."""
    state: float = 0.30
    """Probability that a side, drawn by itself, is conditioned on its clean end state; otherwise it sees its noisy
    neighbour."""
    ahead: float = 0.5
    """Probability that a neighbour is less noisy than the row."""
    ahead_by: AheadBy = "uniform"
    """Such a neighbour's σ is the row's times a ratio, uniform or log-uniform; or it is one step of the formulation
    below, t − 1 for t."""
    ahead_ratio: float = 0.5
    """The smallest ratio; the largest is 1."""
    positions: float | None = 0.5
    """Share of the loss that is about positions, where postures are planned too: two slow dimensions among many busy
    ones. None: all dimensions count alike."""

    def __post_init__(self) -> None:
        whole(self, "overlap")
        between(self, "nothing", "ahead", "ahead_ratio", *(["positions"] if self.positions is not None else []))
        for name, names in (("sides", get_args(Sides)), ("ahead_by", get_args(AheadBy))):
            if (value := getattr(self, name)) not in names:
                raise UserError(f"{name} must be one of {', '.join(names)}, not {brief(value)}")
        if self.ahead_by == "log-uniform" and self.ahead_ratio == 0:
            raise UserError("ahead_ratio must be positive where ratios are log-uniform, not 0")
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
        lower = _lower(sigma, choice / max(config.ahead, 1e-9), formulation, config)
        return torch.where(choice < config.ahead, lower, sigma)

    left_sigma, right_sigma = neighbour_level(uniform[1]), neighbour_level(uniform[2])
    sees_state, sees_chunk = _seen(uniform[3:5], config, generator)
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


def check_levels(config: ObjectiveConfig, formulation: Formulation) -> None:
    """Raises UserError where neighbours are to be a step ahead, and the formulation has no steps."""
    if config.ahead_by == "step" and formulation.below is None:
        raise UserError("ahead_by step needs the steps of formulation paper; choose uniform or log-uniform")


def _lower(sigma: Tensor, share: Tensor, formulation: Formulation, config: ObjectiveConfig) -> Tensor:
    """Levels of neighbours that are ahead of rows at σ; `share` is uniform in [0, 1). [M]"""
    if config.ahead_by == "step":
        check_levels(config, formulation)
        assert formulation.below is not None
        return formulation.below(sigma)
    least = config.ahead_ratio
    return sigma * (least + (1 - least) * share if config.ahead_by == "uniform" else least ** (1 - share))


def _seen(
    uniform: Tensor, config: ObjectiveConfig, generator: torch.Generator | None
) -> tuple[list[Tensor], list[Tensor]]:
    """Which rows see their end state, and which their neighbour: on the left, on the right. `uniform` is [2, M]."""

    def more() -> Tensor:
        return torch.rand(uniform.shape[1:], device=uniform.device, generator=generator)

    told = [side >= config.drop for side in uniform]
    if config.nothing:
        some = more() >= config.nothing
        told = [side & some for side in told]
    if config.sides == "apart":
        state = [side < config.drop + config.state for side in uniform]
    else:
        choice = more()
        state = [choice < 1 / 3, choice >= 2 / 3]
    return [s & t for s, t in zip(state, told, strict=True)], [~s & t for s, t in zip(state, told, strict=True)]


def loss(denoise: Denoise, batch: NoisyBatch, formulation: Formulation, weights: Tensor | None = None) -> Tensor:
    """λ(σ)·‖D(x, σ) − x₀‖², averaged over the batch; of dimensions with `weights` [D], by these."""
    error = (denoise(batch.noisy, batch.sigma, batch.conditions) - batch.clean).square()
    if weights is not None:
        error = error * weights
    return (formulation.weight(batch.sigma) * error.mean(dim=(1, 2))).mean()
