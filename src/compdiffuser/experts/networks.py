"""The networks of experts: a squashed Gaussian policy, two critics as one batched product, and scaled inputs."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compdiffuser.experts.config import ExpertConfig

LOG_STD = (-8.0, 1.0)
CLIP = 10.0
"""Scaled inputs end here."""
SOFT = 1e-2
"""Added to the spread of inputs that hardly vary."""
MEMORY = 1e6
"""Rows over which running means are taken."""


class Normalizer(nn.Module):
    """Inputs [B, n] minus their running mean, over their running spread."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("variance", torch.ones(inputs))
        self.register_buffer("count", torch.tensor(1e-4))

    def forward(self, inputs: Tensor) -> Tensor:
        return ((inputs - self.mean) / (self.variance.sqrt() + SOFT)).clamp(-CLIP, CLIP)

    @torch.no_grad()
    def see(self, inputs: Tensor) -> None:
        """Take a batch into mean and variance (Chan et al., 1979)."""
        rows = len(inputs)
        shift, total = inputs.mean(0) - self.mean, self.count + rows
        spread = self.variance * self.count + inputs.var(0, correction=0) * rows
        self.mean += shift * rows / total
        self.variance.copy_((spread + shift.square() * self.count * rows / total) / total)
        self.count.copy_(total.clamp(max=MEMORY))


class Actor(nn.Module):
    """A policy π(a | s) = tanh N(μ(s), σ(s)²); what it does without noise is tanh μ(s).

    A state is a view of the body [B, n], which is scaled, and what is shown of a command [B, c], which is not.
    """

    def __init__(self, config: ExpertConfig, view: int, shown: int, actions: int) -> None:
        super().__init__()
        self.normalizer = Normalizer(view) if config.normalized_steps else None
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise((view + shown, *config.actor_hidden)):
            layers += [nn.Linear(inputs, outputs), *([nn.LayerNorm(outputs)] if config.layer_norm else [])]
            layers += [nn.SiLU() if config.activation == "silu" else nn.ReLU()]
        self.network = nn.Sequential(*layers, nn.Linear(config.actor_hidden[-1], 2 * actions))

    def state(self, view: Tensor, shown: Tensor) -> Tensor:
        """[B, n + c], as critics see it too."""
        return torch.cat([view if self.normalizer is None else self.normalizer(view), shown], -1)

    def forward(self, state: Tensor) -> Tensor:
        """States [B, n + c] → actions [B, act] without noise."""
        return torch.tanh(self.network(state).chunk(2, -1)[0].float())

    def sample(self, state: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Actions [B, act] drawn from the policy, and the logarithms [B] of their densities."""
        mean, log_std = self.network(state).to(state.dtype).chunk(2, -1)
        log_std = log_std.clamp(*LOG_STD)
        noise = torch.randn(mean.shape, dtype=mean.dtype, device=mean.device, generator=generator)
        before = mean + log_std.exp() * noise
        density = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
        # log(1 − tanh² u) in a form that does not underflow.
        squash = 2 * (math.log(2) - before - F.softplus(-2 * before))
        return torch.tanh(before), (density - squash).sum(-1)


class Critics(nn.Module):
    """Two independent values Q(s, a)."""

    def __init__(self, config: ExpertConfig, inputs: int) -> None:
        super().__init__()
        sizes = list(pairwise((inputs, *config.critic_hidden, 1)))
        self.layer_norm, self.activate = config.layer_norm, F.silu if config.activation == "silu" else F.relu
        self.weights = nn.ParameterList(_first(a, b, last=b == 1) for a, b in sizes)
        self.biases = nn.ParameterList(torch.zeros(2, 1, b) for _, b in sizes)
        norms = sizes[:-1] if config.layer_norm else []
        self.gains = nn.ParameterList(torch.ones(2, 1, b) for _, b in norms)
        self.shifts = nn.ParameterList(torch.zeros(2, 1, b) for _, b in norms)

    def forward(self, state: Tensor, actions: Tensor) -> Tensor:
        """[B, n + c] and [B, act] → [2, B]."""
        x = torch.cat([state, actions], -1).expand(2, -1, -1)
        last = len(self.weights) - 1
        for number in range(last):
            x = torch.baddbmm(self.biases[number], x, self.weights[number])
            if self.layer_norm:
                x = F.layer_norm(x, x.shape[-1:]) * self.gains[number] + self.shifts[number]
            x = self.activate(x)
        return torch.baddbmm(self.biases[last], x, self.weights[last])[..., 0].float()


def _first(inputs: int, outputs: int, last: bool) -> Tensor:
    """First weights [2, inputs, outputs] of both critics; at first all values are small."""
    return torch.randn(2, inputs, outputs) * ((0.1 if last else 1.0) / math.sqrt(inputs))
