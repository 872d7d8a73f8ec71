"""Chunks merged into one trajectory by blending where they overlap (the paper's appendix on trajectory merging)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from compdiffuser.checks import chosen


def exponential(progress: Tensor, beta: float = 2.0) -> Tensor:
    """Weight of the earlier chunk: from 1 to 0, falling fastest at first."""
    return (torch.exp(-beta * progress) - math.exp(-beta)) / (1 - math.exp(-beta))


def cosine(progress: Tensor) -> Tensor:
    return (1 + torch.cos(math.pi * progress)) / 2


def linear(progress: Tensor) -> Tensor:
    return 1 - progress


BLENDINGS: dict[str, Callable[[Tensor], Tensor]] = {"exponential": exponential, "cosine": cosine, "linear": linear}


def merge(chunks: Tensor, overlap: int, blending: str = "exponential") -> Tensor:
    """Chunks [..., K, H, D] to one trajectory [..., T, D] with T = K·H − (K − 1)·O.

    Raises UserError for an unknown blending.
    """
    weight_at = chosen("blending", blending, BLENDINGS)
    count, horizon = chunks.shape[-3:-1]
    weight = weight_at(torch.linspace(0, 1, overlap, device=chunks.device, dtype=chunks.dtype))[:, None]
    other = 1 - weight
    pieces = [chunks[..., 0, : horizon - overlap, :]]
    for k in range(1, count):
        before, after = chunks[..., k - 1, horizon - overlap :, :], chunks[..., k, :overlap, :]
        pieces += [weight * before + other * after, chunks[..., k, overlap : horizon - overlap, :]]
    pieces.append(chunks[..., -1, horizon - overlap :, :])
    return torch.cat(pieces, dim=-2)


def merged_length(count: int, horizon: int, overlap: int) -> int:
    """T, the states of K merged chunks."""
    return count * horizon - (count - 1) * overlap


def split(trajectory: Tensor, count: int, horizon: int, overlap: int) -> Tensor:
    """A trajectory [..., T, D] as its K overlapping chunks [..., K, H, D]."""
    stride = horizon - overlap
    return torch.stack([trajectory[..., k * stride : k * stride + horizon, :] for k in range(count)], dim=-3)
