"""The paper's denoiser for x-y plans: the conditional temporal U-Net of Decision Diffuser (Ajay et al. 2022).

Residual blocks of two 5-wide convolutions over time, each shifted and scaled by the row's features; every level halves
the length and doubles the channels. The paper's sizes are width 128 and depth 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from compdiffuser.checks import whole
from compdiffuser.models.convolutions import Convolution, Doubling
from compdiffuser.models.network import MOST_WIDTH, Network, NetworkConfig, padded
from compdiffuser.types import UserError

GROUPS = 8  # of channels that are normalized together
MOST_LEVELS = 12  # each halves the chunk


@dataclass(frozen=True)
class UNet1dConfig(NetworkConfig):
    """Sizes of the U-Net."""

    architecture: ClassVar[str] = "unet1d"

    width: int = 64
    """Channels of the first level."""
    depth: int = 4
    """Levels, each twice as wide as the one before."""

    def __post_init__(self) -> None:
        whole(self, "width", most=MOST_WIDTH)
        whole(self, "depth", most=MOST_LEVELS)
        if self.width % GROUPS:
            raise UserError(f"width {self.width} is not a multiple of {GROUPS}, which unet1d needs")

    @property
    def grain(self) -> int:
        return 2 ** (self.depth - 1)

    def build(self, channels: int, dim: int, features: int, horizon: int) -> UNet1d:
        return UNet1d(channels, dim, features, self.width, self.depth)


class UNet1d(Network):
    """inputs [M, H, C], features [M, F] -> [M, H, D]"""

    any_rows = False

    def __init__(self, channels: int, dim: int, features: int, width: int, depth: int) -> None:
        super().__init__()
        sizes = [width * 2**level for level in range(depth)]
        self.condition = nn.Sequential(
            nn.Linear(features, 4 * width), nn.SiLU(), nn.Linear(4 * width, width), nn.SiLU()
        )
        self.first = Convolution(channels, width, 5, padding=2)
        self.down = nn.ModuleList()
        for size, wider in pairwise([width, *sizes]):
            self.down.append(Blocks([Residual(size, wider, width), Residual(wider, wider, width)]))
        self.shrink = nn.ModuleList(Convolution(size, size, 3, stride=2, padding=1) for size in sizes[:-1])
        self.middle = Blocks([Residual(sizes[-1], sizes[-1], width) for _ in range(2)])
        self.up = nn.ModuleList()
        for size, wider in zip(reversed(sizes[:-1]), reversed(sizes[1:]), strict=True):
            self.up.append(Blocks([Residual(wider + size, size, width), Residual(size, size, width)]))
        self.grow = nn.ModuleList(Doubling(size) for size in reversed(sizes[1:]))
        self.out = Convolution(width, dim, 1)

    def forward(self, inputs: Tensor, features: Tensor) -> Tensor:
        condition = self.condition(padded(features))
        x = self.first(inputs.transpose(1, 2))
        skips = []
        for level, blocks in enumerate(self.down):
            x = blocks(x, condition)
            if level < len(self.shrink):
                skips.append(x)
                x = self.shrink[level](x)
        x = self.middle(x, condition)
        for grow, blocks in zip(self.grow, self.up, strict=True):
            x = blocks(torch.cat([grow(x), skips.pop()], dim=1), condition)
        # A network that predicts x₀ itself needs more digits in its answer than bfloat16 has.
        with torch.autocast(x.device.type, enabled=False):
            return self.out(x.to(self.out.weight.dtype)).transpose(1, 2)


class Residual(nn.Module):
    """Two convolutions over time around a feature-wise shift and scale. [M, C, L] -> [M, C', L]"""

    def __init__(self, channels: int, wider: int, condition: int) -> None:
        super().__init__()
        self.first = nn.Sequential(Convolution(channels, wider, 5, padding=2), nn.GroupNorm(GROUPS, wider), nn.SiLU())
        self.film = nn.Linear(condition, 2 * wider)
        self.second = nn.Sequential(Convolution(wider, wider, 5, padding=2), nn.GroupNorm(GROUPS, wider), nn.SiLU())
        self.skip = Convolution(channels, wider, 1) if channels != wider else nn.Identity()

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift, scale = self.film(condition)[: x.shape[0], :, None].chunk(2, dim=1)
        return self.second(self.first(x) * (1 + scale) + shift) + self.skip(x)


class Blocks(nn.ModuleList):
    """Residual blocks one after another, under the same features."""

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        for block in self:
            x = block(x, condition)
        return x
