"""A network made a denoiser: preconditioning around it, conditions in front of it.

Neighbour states enter as extra input channels at the positions they overlap; the paper's alternative, an encoder that
squeezes each neighbour into one vector, is an option. Noise levels and masks enter as features of the whole row.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.diffusion.formulation import formulation
from compdiffuser.models.dit1d import DiT1d
from compdiffuser.models.unet1d import GROUPS, UNet1d
from compdiffuser.types import UserError

FREQUENCIES = 32  # per noise level, as sines and cosines


@dataclass(frozen=True)
class DenoiserConfig:
    """Everything needed to build a denoiser again."""

    horizon: int = 160
    """H, states per chunk."""
    overlap: int = 56
    """O, states shared with a neighbour."""
    dim: int = 2
    """D, planned dimensions."""
    architecture: Literal["dit1d", "unet1d"] = "dit1d"
    """Transformer on patches of states, or the paper's convolutional U-Net."""
    preset: Literal["default", "paper"] = "default"
    """Noise formulation."""
    neighbours: Literal["channels", "encoder"] = "channels"
    """How neighbours enter: aligned in time, or squeezed into a vector as in the paper."""
    width: int = 256
    """Transformer width, or channels of the U-Net's first level."""
    depth: int = 6
    """Transformer blocks, or levels of the U-Net (each twice as wide as the one before)."""
    heads: int = 4
    """Attention heads (transformer only)."""
    patch: int = 8
    """States per token (transformer only)."""
    expansion: float = 3.25
    """Hidden size of the transformer's feed-forward layers over its width."""

    def __post_init__(self) -> None:
        for name, choices in (("architecture", ("dit1d", "unet1d")), ("neighbours", ("channels", "encoder"))):
            if getattr(self, name) not in choices:
                raise UserError(f"unknown {name} '{getattr(self, name)}'; choose one of {', '.join(choices)}")
        formulation(self.preset)
        for name in ("dim", "width", "depth", "heads", "patch"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.overlap < 1 or 2 * self.overlap > self.horizon:
            raise UserError(
                f"an overlap of {self.overlap} must be at least 1 and at most half the horizon {self.horizon}"
            )
        grain = self.patch if self.architecture == "dit1d" else 2 ** (self.depth - 1)
        if self.horizon % grain:
            raise UserError(
                f"horizon {self.horizon} is not a multiple of {grain}, which {self.architecture} needs here"
            )
        if self.architecture == "dit1d" and self.width % (2 * self.heads):
            raise UserError(f"width {self.width} does not divide into {self.heads} heads of even size")
        if self.architecture == "unet1d" and self.width % GROUPS:
            raise UserError(f"width {self.width} is not a multiple of {GROUPS}, which unet1d needs")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Denoiser(nn.Module):
    """x₀ from a noisy chunk and its conditions."""

    frequencies: Tensor

    def __init__(self, config: DenoiserConfig) -> None:
        super().__init__()
        self.config = config
        self.formulation = formulation(config.preset)
        self.compute = torch.float32
        encoded = config.neighbours == "encoder"
        channels = config.dim + 2 * (config.dim + 1) + (0 if encoded else 2 * (config.dim + 1))
        features = 3 * 2 * FREQUENCIES + 4
        if encoded:
            self.encoder = NeighbourEncoder(config.overlap, config.dim, config.width)
            features += 2 * config.width
        self.register_buffer("frequencies", torch.exp(torch.linspace(-1.5, 3.5, FREQUENCIES)), persistent=False)
        if config.architecture == "dit1d":
            self.network: nn.Module = DiT1d(
                config.horizon, channels, config.dim, features,
                config.width, config.depth, config.heads, config.patch, config.expansion,
            )  # fmt: skip
        else:
            self.network = UNet1d(channels, config.dim, features, config.width, config.depth)

    def forward(self, x: Tensor, sigma: Tensor, conditions: Conditions) -> Tensor:
        """x [M, H, D], sigma [M] -> x₀ [M, H, D]"""
        scale = self.formulation.scaling(sigma[:, None, None])
        inputs, features = self._inputs(x * scale.in_, sigma, conditions)
        out = self.network(inputs.to(self.compute), features.to(self.compute))
        return scale.skip * x + scale.out * out.to(x.dtype)

    def compute_in(self, dtype: torch.dtype) -> Denoiser:
        """Run the network itself in a lower precision; conditions and preconditioning stay as they are."""
        self.compute = dtype
        self.network.to(dtype)
        return self

    def compile_network(self, dynamic: bool = False) -> None:
        """Compile the network's blocks. Equal blocks share one program, which takes seconds, not most of a minute."""
        blocks = self.network.blocks if isinstance(self.network, DiT1d) else [self.network]
        for block in blocks:
            block.compile(dynamic=dynamic)

    def _inputs(self, x: Tensor, sigma: Tensor, c: Conditions) -> tuple[Tensor, Tensor]:
        """Channels [M, H, C] and row features [M, F]."""
        config = self.config
        rows, horizon, _ = x.shape
        left = c.left * self.formulation.scaling(c.left_sigma[:, None, None]).in_ * c.has_left[:, None, None]
        right = c.right * self.formulation.scaling(c.right_sigma[:, None, None]).in_ * c.has_right[:, None, None]
        channels = [x]
        for state, present in ((c.start, c.has_start), (c.goal, c.has_goal)):
            flagged = torch.cat([state * present[:, None], present[:, None]], dim=-1)
            channels.append(flagged[:, None].expand(rows, horizon, -1))
        masks = torch.stack([c.has_left, c.has_right, c.has_start, c.has_goal], dim=-1)
        features = [
            self._level(sigma),
            self._level(c.left_sigma) * c.has_left[:, None],
            self._level(c.right_sigma) * c.has_right[:, None],
            masks,
        ]
        if config.neighbours == "encoder":
            features += [self.encoder(left), self.encoder(right)]
        else:
            gap = x.new_zeros(rows, horizon - config.overlap, config.dim + 1)
            shown = [
                torch.cat([states, present[:, None, None].expand(-1, config.overlap, 1)], dim=-1)
                for states, present in ((left, c.has_left), (right, c.has_right))
            ]
            channels += [torch.cat([shown[0], gap], dim=1), torch.cat([gap, shown[1]], dim=1)]
        return torch.cat(channels, dim=-1), torch.cat(features, dim=-1)

    def _level(self, sigma: Tensor) -> Tensor:
        """Sines and cosines of c_noise = log(σ)/4. [M] -> [M, 2·FREQUENCIES]"""
        angle = (sigma.clamp(min=1e-3).log() / 4)[:, None] * self.frequencies
        return torch.cat([angle.sin(), angle.cos()], dim=-1)


class NeighbourEncoder(nn.Module):
    """A neighbour's overlapping states as one vector, the paper's conditioning. [M, O, D] -> [M, W]"""

    def __init__(self, overlap: int, dim: int, width: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(dim, width // 2, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv1d(width // 2, width, 5, stride=2, padding=2), nn.GELU(),
        )  # fmt: skip
        self.out = nn.Linear(width * ((overlap + 3) // 4), width)

    def forward(self, states: Tensor) -> Tensor:
        return self.out(self.convolutions(states.transpose(1, 2)).flatten(1))
