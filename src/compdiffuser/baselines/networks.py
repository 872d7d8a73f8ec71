"""Small networks for several seeds at once: every parameter carries a leading seed dimension S.

One batched matrix product does the work of S (times C, for ensembles of C copies) small ones, which alone would leave
a GPU idle. Seeds never mix: the weights, the batch and the initial random numbers of a seed are its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def randomness(seeds: Sequence[int]) -> list[torch.Generator]:
    """One generator for each seed, so that its initial weights do not depend on which others are trained beside it."""
    return [torch.Generator().manual_seed(seed) for seed in seeds]


class Linear(nn.Module):
    """S × C linear layers.

    Weights begin uniform within Glorot's limits, and biases at 0. With `as_torch`, both begin within ±1 / √inputs, as
    PyTorch's own layers do: with few inputs these weights are far larger, and the biases spread the units' kinks.
    """

    def __init__(
        self, generators: Sequence[torch.Generator], copies: int, inputs: int, outputs: int, scale: float = 1.0,
        as_torch: bool = False, whole: bool = False,
    ) -> None:  # fmt: skip
        """`scale` is that of the variance of Glorot's weights; `whole` layers ignore mixed precision."""
        super().__init__()
        self.whole = whole
        limit = math.sqrt(1 / inputs if as_torch else scale * 6 / (inputs + outputs))

        def uniform(rows: int) -> Tensor:
            shape = (copies, rows, outputs)
            drawn = torch.stack([torch.rand(shape, generator=generator) for generator in generators])
            return (2 * drawn - 1) * limit

        self.weight = nn.Parameter(uniform(inputs))  # [S, C, in, out]
        self.bias = nn.Parameter(uniform(1) if as_torch else torch.zeros(len(generators), copies, 1, outputs))

    def forward(self, x: Tensor, frozen: bool = False) -> Tensor:
        """x [S·C, B, in] → [S·C, B, out]."""
        weight, bias = (self.weight.detach(), self.bias.detach()) if frozen else (self.weight, self.bias)
        with torch.autocast(x.device.type, enabled=False) if self.whole else nullcontext():
            # Not baddbmm, which would first copy the bias into every row; a compiler fuses this sum with what follows.
            return torch.bmm(x, weight.flatten(0, 1)) + bias.flatten(0, 1)


class MLP(nn.Module):
    """S × C multilayer perceptrons: linear layers with GELU between them, then layer norm where asked for.

    Layer norm comes without scale and shift: the linear layer behind it can do both. With `relu`, ReLU takes GELU's
    place, and layers begin as PyTorch's own.

    The first and the last layer ignore mixed precision. In bfloat16, positions near 50 m come in steps of 0.25 m, more
    than a step of the agent, and values near −100 in steps of 0.5.
    """

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        sizes: Sequence[int],
        *,
        copies: int = 1,
        layer_norm: bool = False,
        last_scale: float = 1.0,
        relu: bool = False,
    ) -> None:
        super().__init__()
        scales = [1.0] * (len(sizes) - 2) + [last_scale]
        shapes = enumerate(zip(sizes[:-1], sizes[1:], scales, strict=True))
        self.layers = nn.ModuleList(
            Linear(generators, copies, inputs, outputs, scale, as_torch=relu, whole=number in (0, len(scales) - 1))
            for number, (inputs, outputs, scale) in shapes
        )
        self.seeds, self.copies, self.layer_norm, self.relu = len(generators), copies, layer_norm, relu

    def forward(self, *inputs: Tensor, frozen: bool = False) -> Tensor:
        """Inputs [S, B, …], joined in their last dimension, → [S, C, B, out].

        `frozen` holds the weights fixed: gradients reach the inputs only.
        """
        x = torch.cat(inputs, -1) if len(inputs) > 1 else inputs[0]
        x = x[:, None].expand(-1, self.copies, -1, -1).flatten(0, 1)
        for number, layer in enumerate(self.layers):
            x = layer(x, frozen)
            if number < len(self.layers) - 1:
                x = F.relu(x) if self.relu else gelu(x)
                if self.layer_norm:
                    x = F.layer_norm(x, x.shape[-1:], eps=1e-6)
        return x.unflatten(0, (self.seeds, self.copies))


def gelu(x: Tensor) -> Tensor:
    """x·σ(√(8/π)·(x + 0.044715·x³)), which is GELU's approximation by tanh; a compiler has a slow tanh."""
    if torch.compiler.is_compiling():
        return x * torch.sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))
    return F.gelu(x, approximate="tanh")


class Value(nn.Module):
    """S × C scalar functions of joined inputs, with layer norm: V(s, g) or Q(s, g, a)."""

    def __init__(
        self, generators: Sequence[torch.Generator], inputs: int, hidden: Sequence[int], copies: int = 1
    ) -> None:
        super().__init__()
        self.network = MLP(generators, (inputs, *hidden, 1), copies=copies, layer_norm=True)

    def forward(self, *inputs: Tensor, frozen: bool = False) -> Tensor:
        """Inputs [S, B, …] → [S, C, B]."""
        return self.network(*inputs, frozen=frozen)[..., 0]


class Actor(nn.Module):
    """S Gaussian policies with standard deviation 1: the network gives the mean, which is also what is done."""

    def __init__(self, generators: Sequence[torch.Generator], inputs: int, hidden: Sequence[int], actions: int) -> None:
        super().__init__()
        self.network = MLP(generators, (inputs, *hidden, actions), last_scale=0.01)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Inputs [S, B, …] → mean actions [S, B, act]."""
        return self.network(*inputs)[:, 0]


def log_probability(mean: Tensor, actions: Tensor) -> Tensor:
    """log N(a; μ, 1) of actions [..., act] → [...]."""
    return -0.5 * ((actions - mean).square().sum(-1) + mean.shape[-1] * math.log(2 * math.pi))


class Bilinear(nn.Module):
    """S × C critics f(s, a, g) = φ(s, a)ᵀψ(g) / √d."""

    def __init__(
        self, generators: Sequence[torch.Generator], left: int, right: int, hidden: Sequence[int], latent: int,
        copies: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.left = MLP(generators, (left, *hidden, latent), copies=copies, layer_norm=True)
        self.right = MLP(generators, (right, *hidden, latent), copies=copies, layer_norm=True)
        self.scale = 1 / math.sqrt(latent)

    def forward(self, states: Tensor, actions: Tensor, goals: Tensor, frozen: bool = False) -> Tensor:
        """Each state and action with its own goal: [S, C, B]."""
        left = self.left(states, actions, frozen=frozen)
        return (left * self.right(goals, frozen=frozen)).sum(-1) * self.scale

    def pairs(self, states: Tensor, actions: Tensor, goals: Tensor) -> Tensor:
        """Each state and action with every goal: [S, C, B, B]."""
        left, right = self.left(states, actions), self.right(goals)
        with torch.autocast(left.device.type, enabled=False):
            return left @ right.mT * self.scale


class Quasimetric(nn.Module):
    """S distances d(x, y) on latents, not symmetric, with d(x, x) = 0 and the triangle inequality by construction.

    Interval quasimetric embedding (Wang and Isola, 2022): latents come in components of a few numbers; a component's
    distance is the length of the union of the intervals [xᵢ, max(xᵢ, yᵢ)]; the components' mean and maximum are mixed.
    """

    def __init__(self, seeds: int, component: int = 8) -> None:
        super().__init__()
        self.component = component
        self.mixture = nn.Parameter(torch.zeros(seeds))

    def forward(self, x: Tensor, y: Tensor, frozen: bool = False) -> Tensor:
        """x, y [S, B, latent] → [S, B]."""
        x, y = (z.unflatten(-1, (-1, self.component)) for z in (x, y))
        lengths = union_length(x, torch.maximum(x, y))
        weight = torch.sigmoid(self.mixture.detach() if frozen else self.mixture)[:, None]
        return weight * lengths.mean(-1) + (1 - weight) * lengths.amax(-1)


def union_length(low: Tensor, high: Tensor) -> Tensor:
    """Length of the union of n intervals [low, high] [..., n] → [...].

    In order of their lower ends, each interval adds what reaches beyond the furthest upper end before it.
    """
    low, order = low.sort(-1)
    high = high.gather(-1, order)
    furthest = high.cummax(-1).values
    before = torch.cat([low[..., :1], furthest[..., :-1]], -1)
    return F.relu(furthest - torch.maximum(low, before)).sum(-1)


def follow(targets: nn.Module, online: nn.Module, rate: float) -> None:
    """Target weights move a little: θ⁻ ← (1 − rate)·θ⁻ + rate·θ."""
    with torch.no_grad():
        torch._foreach_lerp_(list(targets.parameters()), list(online.parameters()), rate)
