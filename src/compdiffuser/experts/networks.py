"""The networks of soft actor-critic: a squashed Gaussian policy and an ensemble of critics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOG_STD = (-5.0, 2.0)


def mlp(sizes: Sequence[int], layer_norm: bool = False) -> nn.Sequential:
    """Linear layers with ReLU between them, after a layer norm where asked for."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes[:-1]):
        layers += [nn.Linear(inputs, outputs), *([nn.LayerNorm(outputs)] if layer_norm else []), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


class Actor(nn.Module):
    """A policy π(a | s) = tanh N(μ(s), σ(s)²); what it does without noise is tanh μ(s)."""

    def __init__(self, inputs: int, hidden: Sequence[int], actions: int) -> None:
        super().__init__()
        self.network = mlp((inputs, *hidden, 2 * actions))
        nn.init.uniform_(self.network[-1].get_parameter("weight"), -0.006, 0.006)  # at first it hardly acts

    def forward(self, observations: Tensor) -> Tensor:
        """Observations [B, obs] → actions [B, act] without noise."""
        return torch.tanh(self.network(observations).chunk(2, -1)[0])

    def sample(self, observations: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Actions [B, act] drawn from the policy, and the logarithms [B] of their densities."""
        mean, spread = self.network(observations).chunk(2, -1)
        low, high = LOG_STD
        log_std = low + 0.5 * (high - low) * (torch.tanh(spread) + 1)
        noise = torch.randn(mean.shape, device=mean.device, generator=generator)
        before = mean + log_std.exp() * noise
        density = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
        # log(1 − tanh² u) in a form that does not underflow.
        squash = 2 * (math.log(2) - before - F.softplus(-2 * before))
        return torch.tanh(before), (density - squash).sum(-1)


class Critics(nn.Module):
    """Two independent values Q(s, a)."""

    def __init__(self, inputs: int, hidden: Sequence[int], layer_norm: bool) -> None:
        super().__init__()
        self.copies = nn.ModuleList(mlp((inputs, *hidden, 1), layer_norm) for _ in range(2))

    def forward(self, observations: Tensor, actions: Tensor) -> Tensor:
        """[B, obs] and [B, act] → [2, B]."""
        joined = torch.cat([observations, actions], -1)
        return torch.stack([critic(joined)[:, 0] for critic in self.copies])
