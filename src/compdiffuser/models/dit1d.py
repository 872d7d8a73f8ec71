"""A transformer on patches of consecutive states, modulated by the row's features (adaLN, Peebles and Xie 2023).

One projection makes the modulation of all blocks, each adding a learned offset of its own (PixArt-α's adaLN-single):
a third of the parameters go where they help more. Normalized queries and keys keep attention stable at high rates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compdiffuser.checks import finite, whole
from compdiffuser.models.network import MOST_DEPTH, MOST_WIDTH, Network, NetworkConfig, padded
from compdiffuser.types import UserError


@dataclass(frozen=True)
class DiT1dConfig(NetworkConfig):
    """Sizes of the transformer."""

    architecture: ClassVar[str] = "dit1d"

    width: int = 256
    """Numbers per token."""
    depth: int = 6
    """Blocks."""
    heads: int = 4
    """Attention heads."""
    patch: int = 8
    """States per token."""
    expansion: float = 3.25
    """Hidden size of the feed-forward layers over the width."""

    def __post_init__(self) -> None:
        whole(self, "width", "heads", most=MOST_WIDTH)
        whole(self, "depth", most=MOST_DEPTH)
        whole(self, "patch")
        finite(self, "expansion", most=64)
        if self.width % (2 * self.heads):
            raise UserError(f"width {self.width} does not divide into {self.heads} heads of even size")
        if self.width * self.expansion < 1:
            raise UserError(f"expansion {self.expansion} leaves no hidden unit at width {self.width}")

    @property
    def grain(self) -> int:
        return self.patch

    def build(self, channels: int, dim: int, features: int, horizon: int) -> DiT1d:
        return DiT1d(
            horizon, channels, dim, features, self.width, self.depth, self.heads, self.patch, self.expansion
        )  # fmt: skip


class DiT1d(Network):
    """inputs [M, H, C], features [M, F] -> [M, H, D]"""

    def __init__(
        self, horizon: int, channels: int, dim: int, features: int,
        width: int, depth: int, heads: int, patch: int, expansion: float,
    ) -> None:  # fmt: skip
        super().__init__()
        self.patch = patch
        self.dim = dim
        self.embed = nn.Linear(channels * patch, width)
        self.position = nn.Parameter(torch.randn(horizon // patch, width) * 0.02)
        self.condition = nn.Sequential(nn.Linear(features, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.modulation = nn.Linear(width, 6 * width)
        self.blocks = nn.ModuleList(Block(width, heads, expansion) for _ in range(depth))
        self.last_modulation = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, dim * patch)
        # Every block starts as the identity and the output as zero.
        for layer in (self.modulation, self.last_modulation, self.out):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def compiled_parts(self) -> Iterable[nn.Module]:
        return self.blocks

    def forward(self, inputs: Tensor, features: Tensor) -> Tensor:
        rows, horizon, channels = inputs.shape
        tokens = self.embed(inputs.reshape(rows, horizon // self.patch, self.patch * channels)) + self.position
        condition = self.condition(padded(features))
        modulation = self.modulation(condition)[:rows]
        for block in self.blocks:
            tokens = block(tokens, modulation)
        shift, scale = self.last_modulation(condition)[:rows, None].chunk(2, dim=-1)
        return self.out(modulate(tokens, shift, scale)).reshape(rows, horizon, self.dim)


class Block(nn.Module):
    """Attention and a feed-forward layer, each shifted, scaled and gated by the row's modulation."""

    def __init__(self, width: int, heads: int, expansion: float) -> None:
        super().__init__()
        self.heads = heads
        hidden = int(width * expansion)
        self.offset = nn.Parameter(torch.zeros(6 * width))
        self.qkv = nn.Linear(width, 3 * width)
        self.query_scale = nn.Parameter(torch.ones(width // heads))
        self.key_scale = nn.Parameter(torch.ones(width // heads))
        self.project = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(approximate="tanh"), nn.Linear(hidden, width)
        )

    def forward(self, tokens: Tensor, modulation: Tensor) -> Tensor:
        """tokens [M, H / patch, W], modulation [M, 6·W]"""
        shift, scale, gate, shift2, scale2, gate2 = (modulation + self.offset)[:, None].chunk(6, dim=-1)
        tokens = tokens + gate * self._attention(modulate(tokens, shift, scale))
        return tokens + gate2 * self.feed_forward(modulate(tokens, shift2, scale2))

    def _attention(self, tokens: Tensor) -> Tensor:
        rows, length, width = tokens.shape
        qkv = self.qkv(tokens).view(rows, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = (
            (F.rms_norm(each, each.shape[-1:]) * scale).to(v.dtype)
            for each, scale in ((q, self.query_scale), (k, self.key_scale))
        )
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.project(mixed.transpose(1, 2).reshape(rows, length, width))


def modulate(tokens: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return F.layer_norm(tokens, tokens.shape[-1:]) * (1 + scale) + shift
