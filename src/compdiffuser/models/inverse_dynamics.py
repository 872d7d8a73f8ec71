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

from compdiffuser.types import UserError


@dataclass(frozen=True)
class InverseDynamicsConfig:
    """Sizes of the network and what it sees."""

    observation: int
    """Dimensions of an observation, x and y included."""
    action: int
    plan_dims: tuple[int, ...] = (0, 1)
    """Observation dimensions of a planned state."""
    horizons: tuple[int, int] = (4, 28)
    """Least and most steps ahead. Where they are equal, h is no input: the paper's network."""
    hidden: tuple[int, ...] = (512, 512, 512)
    dropout: float = 0.0

    def __post_init__(self) -> None:
        least, most = self.horizons
        if not 1 <= least <= most:
            raise UserError(f"horizons are at least 1 and in order, not {least} to {most}")
        if wrong := [dim for dim in self.plan_dims if not 0 <= dim < self.observation]:
            raise UserError(f"observations have {self.observation} dimensions, there is no dimension {wrong[0]}")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout is a share below 1, not {self.dropout}")

    @property
    def several(self) -> bool:
        """Whether h is an input."""
        return self.horizons[0] < self.horizons[1]

    def to_dict(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> InverseDynamicsConfig:
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return cls(**given)


class InverseDynamics(nn.Module):
    """An MLP with GELU from (body, relative planned state, h) to an action in [−1, 1]."""

    center: Tensor
    """[obs − 2] mean of the body's state in the data."""
    spread: Tensor
    """[obs − 2] its standard deviation."""
    reach: Tensor
    """[D] standard deviation of the relative planned state."""
    dims: Tensor
    """[D] `plan_dims` on the device, so that choosing them is no word to the host."""

    def __init__(self, config: InverseDynamicsConfig) -> None:
        super().__init__()
        self.config = config
        body, planned = config.observation - 2, len(config.plan_dims)
        self.register_buffer("center", torch.zeros(body))
        self.register_buffer("spread", torch.ones(body))
        self.register_buffer("reach", torch.ones(planned))
        self.register_buffer("dims", torch.tensor(config.plan_dims), persistent=False)
        layers: list[nn.Module] = []
        width = body + planned + int(config.several)
        for hidden in config.hidden:
            layers += [nn.Linear(width, hidden), nn.GELU(approximate="tanh")]
            layers += [nn.Dropout(config.dropout)] if config.dropout else []
            width = hidden
        self.network = nn.Sequential(*layers, nn.Linear(width, config.action))

    def scale_to(self, observations: Tensor, relative: Tensor) -> None:
        """Take center, spread and reach from observations [S, obs] and relative planned states [S, D]."""
        body = observations[:, 2:]
        self.center.copy_(body.mean(0))
        self.spread.copy_(body.std(0).clamp(min=1e-3))
        self.reach.copy_(relative.std(0).clamp(min=1e-3))

    def planned(self, observations: Tensor) -> Tensor:
        """Of observations [B, obs], the dimensions [B, D] that are planned."""
        return observations.index_select(1, self.dims)

    def forward(self, observations: Tensor, targets: Tensor, horizons: Tensor) -> Tensor:
        """Observations [B, obs], planned states [B, D] and steps ahead [B] → actions [B, act]."""
        relative = (targets - self.planned(observations)) / self.reach
        body = (observations[:, 2:] - self.center) / self.spread
        least, most = self.config.horizons
        inputs = [body.clamp(-10, 10), relative]
        if self.config.several:
            inputs.append((2 * (horizons[:, None].to(body) - least) / (most - least) - 1).clamp(-1, 1))
        return self.network(torch.cat(inputs, -1))
