"""Convolutions over time as matrix products, with the parameters and answers of `torch.nn`'s.

The states that a kernel sees are laid side by side, [M, L, k·C], and multiplied with its weights: one large product.
Weights lie in memory as the product reads them, so that neither they nor their gradients are turned around. Where a GPU
trains nothing, cuDNN takes states and weights as they lie: it is quicker there for many rows, and copies no states.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 8
"""cuDNN is quick where channels are a multiple of these."""


class Convolution(nn.Conv1d):
    """[M, C, L] -> [M, C', L'], with a stride and padding of zeros."""

    def __init__(self, channels: int, wider: int, size: int, *, stride: int = 1, padding: int = 0) -> None:
        super().__init__(channels, wider, size, stride=stride, padding=padding)
        self.weight = _lying(self.weight, (0, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        size, stride, padding = self.kernel_size[0], self.stride[0], int(self.padding[0])
        if x.is_cuda and not torch.is_grad_enabled() and self.in_channels % CHANNELS == 0:
            return lying_convolution(x, self.weight, self.bias, stride, padding)
        states = x.transpose(1, 2)
        if (size, stride, padding) != (1, 1, 0):
            states = beside(functional.pad(_cast(states), (0, 0, padding, padding)), size, stride)
        return functional.linear(states, self.weight.transpose(1, 2).flatten(1), self.bias).transpose(1, 2)


class Doubling(nn.ConvTranspose1d):
    """[M, C, L] -> [M, C, 2·L]: each new state sees two old ones."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, 4, stride=2, padding=1)
        self.weight = _lying(self.weight, (2, 1, 0))

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        states = x.transpose(1, 2)
        parts = functional.linear(states, self.weight.permute(2, 1, 0).flatten(0, 1)).unflatten(2, (4, -1))
        later, even, odd, sooner = parts.unbind(2)
        even = even + functional.pad(sooner, (0, 0, 1, 0))[:, :-1]
        odd = odd + functional.pad(later, (0, 0, 0, 1))[:, 1:]
        doubled = torch.stack([even, odd], dim=2).flatten(1, 2)
        return (doubled if self.bias is None else doubled + self.bias).transpose(1, 2)


def lying_convolution(x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int) -> Tensor:
    """What `nn.Conv1d` answers, [M, C, L] -> [M, C', L']; nothing is copied where a state's channels lie together."""
    flat = functional.conv2d(x[:, :, None], weight[:, :, None], bias, (1, stride), (0, padding))
    return flat[:, :, 0]


def beside(states: Tensor, size: int, stride: int) -> Tensor:
    """Every `stride`-th run of `size` states, laid side by side. [M, L, C] -> [M, L', size·C]"""
    if torch.is_grad_enabled():
        laid: Tensor = _Beside.apply(states, size, stride)
        return laid
    return _laid(states, size, stride)


class _Beside(torch.autograd.Function):
    """`beside` with a backward pass of sums; that of PyTorch's `unfold` scatters."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, size: int, stride: int) -> Tensor:
        ctx.length, ctx.size, ctx.stride = states.shape[1], size, stride
        return _laid(states, size, stride)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        parts = gradient.unflatten(2, (ctx.size, -1)).unbind(2)
        sums = torch.promote_types(gradient.dtype, torch.float32)
        summed = gradient.new_zeros(gradient.shape[0], ctx.length, parts[0].shape[2], dtype=sums)
        last = ctx.stride * (gradient.shape[1] - 1) + 1
        for begin, part in enumerate(parts):
            summed[:, begin : begin + last : ctx.stride] += part
        return summed.to(gradient.dtype), None, None


def _laid(states: Tensor, size: int, stride: int) -> Tensor:
    # A compiler then computes the states once, and not anew for every place in which one lies.
    return states.unfold(1, size, stride).transpose(2, 3).flatten(2)


def _cast(states: Tensor) -> Tensor:
    """States in the precision of the product that follows, before they are copied."""
    device = states.device.type
    return states.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else states


def _lying(weight: Tensor, order: tuple[int, int, int]) -> nn.Parameter:
    """The same parameter, whose values lie in memory in another order of dimensions."""
    back = [order.index(dim) for dim in range(3)]
    return nn.Parameter(weight.detach().permute(order).contiguous().permute(back))
