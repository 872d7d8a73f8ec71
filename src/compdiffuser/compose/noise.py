"""Gaussian noise as a function of (row key, step): no hidden state, so no order of drawing.

A plan's noise is the same whether its chunks are denoised one after another or together, alone or in a batch of a
hundred problems. That makes the wavefront equal to the sequential sampler and a ragged batch equal to its parts.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

MASK = 0xFFFFFFFF


def gaussian(key: Tensor, step: Tensor, horizon: int, dim: int) -> Tensor:
    """Standard normal numbers [M, H, D] for row keys [M] and steps [M], by hashing a counter and Box-Muller."""
    pairs = (horizon * dim + 1) // 2
    counter = torch.arange(pairs, device=key.device)
    stream = _hash(_hash((key & MASK) ^ _hash(key >> 32)) + step * 0x9E3779B9)
    first = _hash(stream[:, None] + counter * 0x85EBCA6B)
    second = _hash(first ^ (counter * 0xC2B2AE35 + 0x27D4EB2F))
    radius = (-2.0 * ((first.float() + 0.5) * 2.0**-32).clamp(max=1.0).log()).sqrt()
    angle = second.float() * (2.0 * math.pi * 2.0**-32)
    numbers = torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)[:, : horizon * dim]
    return numbers.view(len(key), horizon, dim)


def _hash(x: Tensor) -> Tensor:
    """A 32-bit avalanche hash (the constants are Wellons' lowbias32), in int64 so that shifts fill with zeros."""
    x = x & MASK
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & MASK
    x = ((x ^ (x >> 15)) * 0x846CA68B) & MASK
    return x ^ (x >> 16)
