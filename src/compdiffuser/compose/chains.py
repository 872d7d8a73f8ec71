"""Chains of chunks: all chunks of all candidates of all problems as one flat array of rows.

Row m is one chunk; `left[m]` and `right[m]` are the rows it overlaps. Chains of different K lie one after another in
the same batch, so a hundred problems, or several K for one problem, are denoised together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Chains:
    """C chains with M rows in all; tensors live on one device."""

    lengths: Tensor
    """K of each chain, on the CPU. [C]"""
    first: Tensor
    """First row of each chain, on the CPU. [C]"""
    chain: Tensor
    """Chain of each row. [M]"""
    position: Tensor
    """Place of each row in its chain, from 0. [M]"""
    start: Tensor
    """Clean start state, seen by the first chunk of each chain. [M, D]"""
    goal: Tensor
    """Clean goal state, seen by the last. [M, D]"""
    key: Tensor
    """Random key of each row: the same chain gets the same noise alone or in a batch. [M]"""

    @classmethod
    def build(cls, starts: Tensor, goals: Tensor, lengths: Tensor, seeds: Tensor) -> Chains:
        """C chains: starts [C, D], goals [C, D], lengths [C], seeds [C]."""
        device = starts.device
        lengths = lengths.cpu().long()
        first = torch.cumsum(lengths, 0) - lengths
        chain = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        position = torch.arange(len(chain)) - first[chain]
        # Keys of two rows never meet: a chain has far fewer than 2^12 chunks.
        key = (seeds.cpu().long()[chain] << 12) + position
        chain = chain.to(device)
        return cls(lengths, first, chain, position.to(device), starts[chain], goals[chain], key.to(device))

    def __len__(self) -> int:
        return len(self.chain)

    @cached_property
    def has_left(self) -> Tensor:
        return self.position > 0

    @cached_property
    def has_right(self) -> Tensor:
        # The next row is not the first of a chain. Asked on the device, as a CUDA graph cannot copy from the CPU.
        return torch.cat([self.position[1:], self.position.new_zeros(1)]) > 0

    @cached_property
    def left(self) -> Tensor:
        """Row of the left neighbour; the row itself where there is none. [M]"""
        rows = torch.arange(len(self), device=self.chain.device)
        return rows - self.has_left.long()

    @cached_property
    def right(self) -> Tensor:
        """Row of the right neighbour; the row itself where there is none. [M]"""
        rows = torch.arange(len(self), device=self.chain.device)
        return rows + self.has_right.long()

    def rows(self, chain: int) -> slice:
        return self._slices[chain]

    @cached_property
    def _slices(self) -> list[slice]:
        ends = zip(self.first.tolist(), self.lengths.tolist(), strict=True)
        return [slice(begin, begin + count) for begin, count in ends]

    def select(self, chains: Tensor) -> tuple[Chains, Tensor]:
        """The chosen chains [C'] as a batch of their own, and their rows in this one."""
        chains = chains.cpu()
        parts = [torch.arange(rows.start, rows.stop) for rows in map(self.rows, chains.tolist())]
        rows = torch.cat(parts).to(self.chain.device)
        lengths = self.lengths[chains]
        first = torch.cumsum(lengths, 0) - lengths
        chain = torch.repeat_interleave(torch.arange(len(lengths)), lengths).to(self.chain.device)
        position, start, goal, key = (tensor[rows] for tensor in (self.position, self.start, self.goal, self.key))
        return Chains(lengths, first, chain, position, start, goal, key), rows
