"""A network turned into a denoiser: preconditioning around it, conditions in front of it.

Neighbours enter as extra input channels of the states that they overlap; the paper's alternative, an encoder that turns
each neighbour into one vector, is an option. Start and goal enter as channels of every state, or in place of the first
and the last one as in the paper's code. Noise levels and masks enter as features of the whole row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from compdiffuser.checks import described, member, whole
from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.diffusion.formulation import formulation
from compdiffuser.models.architectures import ARCHITECTURES, architecture, network_from_dict
from compdiffuser.models.dit1d import DiT1dConfig
from compdiffuser.models.encoder import OUT, NeighbourEncoder
from compdiffuser.models.network import NetworkConfig
from compdiffuser.types import UserError

FREQUENCIES = 32  # per noise level, as sines and cosines
MOST_STATES, MOST_DIMENSIONS = 65_536, 4_096  # of a chunk, of a state
Neighbours = Literal["channels", "encoder"]
Ends = Literal["channels", "inpaint"]
Frame = Literal["world", "chunk"]
WAVES = 10  # per dimension, of a chunk's middle, as sines and cosines
LONGEST_WAVE = 32.0  # of them; each is half as long as the one before


LATER = {"ends": "channels", "frame": "world"}
"""Fields that older planners lack, and what they have been."""


@dataclass(frozen=True)
class DenoiserConfig:
    """Everything needed to build a denoiser again."""

    horizon: int = 160
    """H, states per chunk."""
    overlap: int = 56
    """O, states shared with a neighbour."""
    dim: int = 2
    """D, planned dimensions."""
    formulation: str = "default"
    """Preconditioning, loss and noise levels: a key of `diffusion.formulation.FORMULATIONS`."""
    neighbours: Neighbours = "channels"
    """How neighbours enter: aligned in time, or encoded into a vector as in the paper."""
    network: NetworkConfig = field(default_factory=DiT1dConfig)
    """The architecture with its sizes: a config of `models.ARCHITECTURES`."""
    ends: Ends = "channels"
    """How start and goal enter: shown to every state, or written over the chunk's first and last one."""
    frame: Frame = "world"
    """From where states are seen: the middle of the data, or the chunk's own, which the network is then told."""

    def __post_init__(self) -> None:
        whole(self, "horizon", "overlap", most=MOST_STATES)
        whole(self, "dim", most=MOST_DIMENSIONS)
        formulation(self.formulation)
        member("neighbours", self.neighbours, get_args(Neighbours))
        member("ends", self.ends, get_args(Ends))
        member("frame", self.frame, get_args(Frame))
        if not isinstance(self.network, NetworkConfig):
            accepted = " or ".join(config.__name__ for config in ARCHITECTURES.values())
            raise UserError(f"network must be a config such as {accepted}, not {self.network!r}")
        architecture(self.network.architecture)
        if 2 * self.overlap > self.horizon:
            raise UserError(f"overlap must be at most half the horizon {self.horizon}, not {self.overlap}")
        if self.horizon % self.network.grain:
            needed = f"{self.network.grain}, which {self.network.architecture} needs here"
            raise UserError(f"horizon {self.horizon} is not a multiple of {needed}")

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**plain, "network": self.network.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> DenoiserConfig:
        """The config that `to_dict` describes. Raises UserError where a field is missing or unknown."""
        if isinstance(plain, Mapping):  # older files do not know every field
            plain = {**LATER, **plain}
        described("a denoiser", plain, [each.name for each in fields(cls)])
        return cls(**{**plain, "network": network_from_dict(plain["network"])})


class Denoiser(nn.Module):
    """x₀ from a noisy chunk and its conditions."""

    frequencies: Tensor
    waves: Tensor

    def __init__(self, config: DenoiserConfig) -> None:
        super().__init__()
        self.config = config
        self.formulation = formulation(config.formulation)
        self.compute = torch.float32
        shown = (config.neighbours == "channels") + (config.ends == "channels")
        channels = config.dim + shown * 2 * (config.dim + 1)
        features = 3 * 2 * FREQUENCIES + 4
        if config.frame == "chunk":
            features += (2 * WAVES + 1) * config.dim
            lengths = LONGEST_WAVE / 2.0 ** torch.arange(WAVES)
            self.register_buffer("waves", 2 * torch.pi / lengths, persistent=False)
        self.encoders = nn.ModuleList()
        if config.neighbours == "encoder":
            level = 2 * FREQUENCIES
            self.encoders.extend(NeighbourEncoder(config.overlap, config.dim, level) for _ in ("left", "right"))
            features += 2 * OUT
        self.register_buffer("frequencies", torch.exp(torch.linspace(-1.5, 3.5, FREQUENCIES)), persistent=False)
        self.network = config.network.build(channels, config.dim, features, config.horizon)

    def forward(self, x: Tensor, sigma: Tensor, conditions: Conditions) -> Tensor:
        """x [M, H, D], sigma [M] -> x₀ [M, H, D]"""
        scale = self.formulation.scaling(sigma[:, None, None])
        seen, told, middle = x, conditions, None
        if self.config.frame == "chunk":
            middle = self._middle(x, sigma)
            seen, told = x - middle, conditions.seen_from(middle)
        inputs, features = self._inputs(seen * scale.in_, sigma, told)
        if middle is not None:
            features = torch.cat([features, self._place(middle[:, 0])], dim=-1)
        out = self.network(inputs.to(self.compute), features.to(self.compute))
        clean = scale.skip * seen + scale.out * out.to(x.dtype)
        if middle is not None:
            clean = clean + middle
        return conditions.held(clean) if self.config.ends == "inpaint" else clean

    def compute_in(self, dtype: torch.dtype) -> Denoiser:
        """Run network and encoders in a lower precision; conditions and preconditioning stay as they are."""
        self.compute = dtype
        self.network.to(dtype)
        self.encoders.to(dtype)
        return self

    def compile_network(self, dynamic: bool = False) -> None:
        """Compile the network's blocks. Equal blocks share one program: seconds instead of a minute."""
        for part in (*self.network.compiled_parts(), *self.encoders):
            part.compile(dynamic=dynamic)

    def _inputs(self, x: Tensor, sigma: Tensor, c: Conditions) -> tuple[Tensor, Tensor]:
        """Channels [M, H, C] and row features [M, F]."""
        config = self.config
        rows, horizon, _ = x.shape
        left = c.left * self.formulation.scaling(c.left_sigma[:, None, None]).in_ * c.has_left[:, None, None]
        right = c.right * self.formulation.scaling(c.right_sigma[:, None, None]).in_ * c.has_right[:, None, None]
        if config.ends == "inpaint":
            channels = [c.held(x)]
        else:
            channels = [x]
            for state, present in ((c.start, c.has_start), (c.goal, c.has_goal)):
                flagged = torch.cat([state * present[:, None], present[:, None]], dim=-1)
                channels.append(flagged[:, None].expand(rows, horizon, -1))
        masks = torch.stack([c.has_left, c.has_right, c.has_start, c.has_goal], dim=-1)
        levels = [self._level(c.left_sigma) * c.has_left[:, None], self._level(c.right_sigma) * c.has_right[:, None]]
        features = [self._level(sigma), *levels, masks]
        if config.neighbours == "encoder":
            for encoder, states, level, present in zip(
                self.encoders, (left, right), levels, (c.has_left, c.has_right), strict=True
            ):
                told = _encoded(encoder, states.to(self.compute), level.to(self.compute), present)
                features.append(told.to(x.dtype))
        else:
            gap = x.new_zeros(rows, horizon - config.overlap, config.dim + 1)
            shown = [
                torch.cat([states, present[:, None, None].expand(-1, config.overlap, 1)], dim=-1)
                for states, present in ((left, c.has_left), (right, c.has_right))
            ]
            channels += [torch.cat([shown[0], gap], dim=1), torch.cat([gap, shown[1]], dim=1)]
        return torch.cat(channels, dim=-1), torch.cat(features, dim=-1)

    def _middle(self, x: Tensor, sigma: Tensor) -> Tensor:
        """The mean of a noisy chunk [M, H, D], which has 1/√H of its noise, drawn to 0 where that is much: [M, 1, D]"""
        known = 1 / (1 + sigma**2 / x.shape[1])
        return x.mean(dim=1, keepdim=True) * known[:, None, None]

    def _place(self, middle: Tensor) -> Tensor:
        """A place [M, D], and waves of it from longer than any world to shorter than a cell: [M, (2·WAVES + 1)·D]"""
        angle = (middle[:, :, None] * self.waves).flatten(1)
        return torch.cat([middle, angle.sin(), angle.cos()], dim=-1)

    def _level(self, sigma: Tensor) -> Tensor:
        """Sines and cosines of c_noise = log(σ)/4. [M] -> [M, 2·FREQUENCIES]"""
        angle = (sigma.clamp(min=1e-3).log() / 4)[:, None] * self.frequencies
        return torch.cat([angle.sin(), angle.cos()], dim=-1)


def _encoded(encoder: nn.Module, states: Tensor, level: Tensor, present: Tensor) -> Tensor:
    """Neighbours as vectors [M, OUT], zero where there is none."""
    # Where plans are judged nobody has a neighbour. Asking is free on a CPU; a GPU would have to wait for the answer.
    if not torch.compiler.is_exporting() and present.device.type == "cpu" and not present.any():
        return states.new_zeros(len(states), OUT)
    out: Tensor = encoder(states, level) * present[:, None]
    return out
