"""Convolutions over time as matrix products, with the parameters and answers of `torch.nn`'s.

The states that a kernel sees are laid side by side, [M, L, k·C], and multiplied with its weights: one large product.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Convolution(nn.Conv1d):
    """[M, C, L] -> [M, C', L'], with a stride and padding of zeros."""

    def forward(self, x: Tensor) -> Tensor:
        size, stride, padding = self.kernel_size[0], self.stride[0], int(self.padding[0])
        states = functional.pad(x.transpose(1, 2), (0, 0, padding, padding))
        length = (states.shape[1] - size) // stride + 1
        last = stride * (length - 1) + 1
        seen = torch.cat([states[:, begin : begin + last : stride] for begin in range(size)], dim=2)
        return functional.linear(seen, self.weight.transpose(1, 2).flatten(1), self.bias).transpose(1, 2)


class Doubling(nn.ConvTranspose1d):
    """[M, C, L] -> [M, C, 2·L]: each new state sees two old ones."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, 4, stride=2, padding=1)

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        states = x.transpose(1, 2)
        parts = functional.linear(states, self.weight.permute(2, 1, 0).flatten(0, 1)).unflatten(2, (4, -1))
        later, even, odd, sooner = parts.unbind(2)
        even = even + functional.pad(sooner, (0, 0, 1, 0))[:, :-1]
        odd = odd + functional.pad(later, (0, 0, 0, 1))[:, 1:]
        doubled = torch.stack([even, odd], dim=2).flatten(1, 2)
        return (doubled if self.bias is None else doubled + self.bias).transpose(1, 2)
