"""Inverse dynamics: the action that takes a body from where it is towards a planned state h steps ahead.

The body's own state comes without x and y, and the planned state relative to the body, so that what was learned in one
corner of a maze holds in all. With several horizons h is an input too: asking for the same place in fewer steps asks
for a faster walk.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from compdiffuser.domains import BODIES, PLANE, Body, Space
from compdiffuser.types import UserError


@dataclass(frozen=True)
class InverseDynamicsConfig:
    """Sizes of the network and what it sees."""

    observation: int
    """Dimensions of an observation, x and y included."""
    action: int
    body: str = "point"
    """A key of `BODIES`."""
    space: Space = PLANE
    """What a planned state is."""
    horizons: tuple[int, int] = (4, 28)
    """Least and most steps ahead. Where they are equal, h is no input: the paper's network."""
    hidden: tuple[int, ...] = (512, 512, 512)
    dropout: float = 0.0

    def __post_init__(self) -> None:
        least, most = self.horizons
        if not 1 <= least <= most:
            raise UserError(f"horizons are at least 1 and in order, not {least} to {most}")
        if self.body not in BODIES:
            raise UserError(f"unknown body '{self.body}'; known bodies: {', '.join(BODIES)}")
        if max(self.space.dims) >= self.observation:
            there = f"observations have {self.observation} dimensions"
            raise UserError(f"{there}, there is no dimension {max(self.space.dims)}")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout is a share below 1, not {self.dropout}")

    @property
    def several(self) -> bool:
        """Whether h is an input."""
        return self.horizons[0] < self.horizons[1]

    def to_dict(self) -> dict[str, Any]:
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return plain | {"space": self.space.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> InverseDynamicsConfig:
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return cls(**given | {"space": Space.from_dict(values["space"])})


class InverseDynamics(nn.Module):
    """An MLP with GELU from (body, relative planned state, h) to an action in [−1, 1]."""

    center: Tensor
    """[obs − 2] mean of the body's state in the data."""
    spread: Tensor
    """[obs − 2] its standard deviation."""
    reach: Tensor
    """[D] standard deviation of the relative planned state."""
    dims: Tensor
    """[D] planned dimensions on the device, so that choosing them does not synchronize with the CPU."""

    def __init__(self, config: InverseDynamicsConfig) -> None:
        super().__init__()
        self.config = config
        self.body: Body = BODIES[config.body]
        own, planned = config.observation - 2, len(config.space.dims)
        self.register_buffer("center", torch.zeros(own))
        self.register_buffer("spread", torch.ones(own))
        self.register_buffer("reach", torch.ones(planned))
        self.register_buffer("dims", torch.tensor(config.space.dims), persistent=False)
        layers: list[nn.Module] = []
        width = own + planned + int(config.several)
        for hidden in config.hidden:
            layers += [nn.Linear(width, hidden), nn.GELU(approximate="tanh")]
            layers += [nn.Dropout(config.dropout)] if config.dropout else []
            width = hidden
        self.network = nn.Sequential(*layers, nn.Linear(width, config.action))

    def scale_to(self, observations: Tensor, relative: Tensor) -> None:
        """Take center, spread and reach from observations [S, obs] and relative planned states [S, D]."""
        own = self.body.itself(observations)
        self.center.copy_(own.mean(0))
        self.spread.copy_(own.std(0).clamp(min=1e-3))
        self.reach.copy_(relative.std(0).clamp(min=1e-3))

    def planned(self, observations: Tensor) -> Tensor:
        """Of observations [B, obs], the dimensions [B, D] that are planned."""
        return observations.index_select(1, self.dims)

    def forward(self, observations: Tensor, targets: Tensor, horizons: Tensor) -> Tensor:
        """Observations [B, obs], planned states [B, D] and steps ahead [B] → actions [B, act]."""
        relative = (targets - self.planned(observations)) / self.reach
        own = (self.body.itself(observations) - self.center) / self.spread
        least, most = self.config.horizons
        inputs = [own.clamp(-10, 10), relative]
        if self.config.several:
            inputs.append((2 * (horizons[:, None].to(own) - least) / (most - least) - 1).clamp(-1, 1))
        return self.network(torch.cat(inputs, -1))
