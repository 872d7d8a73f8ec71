"""Orders of denoising, as data: row m takes its step i in round offset[m] + stride·i.

Autoregressive sampling updates chunk k at step i after chunk k − 1 at the same step (the paper's algorithm 2). Cell
(i, k) needs (i, k − 1), (i − 1, k) and (i − 1, k + 1), so all cells with equal 2·i + k are independent: the *wavefront*
gives the sequential result in 2N + K − 2 rounds instead of N·K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from compdiffuser.checks import chosen, whole
from compdiffuser.compose.chains import Chains


@dataclass(frozen=True)
class Order:
    """When each row takes its steps, and how neighbours are coupled."""

    offset: Tensor
    """[M]"""
    stride: int
    average: bool = False
    """Average overlaps at every step instead of conditioning chunks on their neighbours (GSC)."""

    def __post_init__(self) -> None:
        whole(self, "stride")

    def rounds(self, steps: int) -> list[tuple[Tensor, Tensor]]:
        """For each round the rows that move and the step each takes; rounds without rows are left out."""
        moving, taken = [], []
        for index in range(self.most_rounds(steps)):
            since = index - self.offset_on_cpu
            rows = ((since >= 0) & (since % self.stride == 0) & (since // self.stride < steps)).nonzero()[:, 0]
            if len(rows):
                moving.append(rows)
                taken.append(since[rows] // self.stride)
        # To the device all at once: each copy makes a GPU wait.
        sizes = [len(rows) for rows in moving]
        both = torch.stack([torch.cat(moving), torch.cat(taken)]).to(self.offset.device)
        return list(zip(*(column.split(sizes) for column in both), strict=True))

    def most_rounds(self, steps: int) -> int:
        """Rounds, those without rows included."""
        return int(self.offset_on_cpu.max()) + self.stride * (steps - 1) + 1

    @cached_property
    def offset_on_cpu(self) -> Tensor:
        """[M]"""
        return self.offset.cpu()


def parallel(chains: Chains) -> Order:
    """Every chunk at once, conditioned on its neighbours before the round."""
    return Order(chains.position * 0, 1)


def autoregressive(chains: Chains) -> Order:
    """Start to goal, as a wavefront."""
    return Order(chains.position, 2)


def autoregressive_backward(chains: Chains) -> Order:
    """Goal to start, as a wavefront."""
    last = chains.lengths.to(chains.chain.device)[chains.chain] - 1
    return Order(last - chains.position, 2)


def sequential(chains: Chains) -> Order:
    """Start to goal, one chunk at a time: the result that the wavefront must equal."""
    return Order(chains.position, max(int(chains.lengths.max()), 2))


def gsc(chains: Chains) -> Order:
    """Generative Skill Chaining (Mishra et al. 2023): every chunk at once, overlaps averaged."""
    return Order(chains.position * 0, 1, average=True)


ORDERS: dict[str, Callable[[Chains], Order]] = {
    "parallel": parallel,
    "autoregressive": autoregressive,
    "autoregressive-backward": autoregressive_backward,
    "sequential": sequential,
    "gsc": gsc,
}


def order(name: str) -> Callable[[Chains], Order]:
    """Raises UserError for an unknown order."""
    return chosen("order", name, ORDERS)
