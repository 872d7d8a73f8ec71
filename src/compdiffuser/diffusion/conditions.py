"""What a chunk is conditioned on while it is denoised: one contract for every denoiser.

Each side of a chunk is a neighbour's overlapping noisy states, a clean end state, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Conditions:
    """Conditions of M rows; where a mask [M] is 0 (and not 1), its condition has no influence."""

    left: Tensor
    """The left neighbour's last O states, as noisy as `left_sigma`. [M, O, D]"""
    left_sigma: Tensor
    """[M]"""
    right: Tensor
    """The right neighbour's first O states, as noisy as `right_sigma`. [M, O, D]"""
    right_sigma: Tensor
    """[M]"""
    start: Tensor
    """Clean first state. [M, D]"""
    goal: Tensor
    """Clean last state. [M, D]"""
    has_left: Tensor
    has_right: Tensor
    has_start: Tensor
    has_goal: Tensor

    def map(self, function: Callable[[Tensor], Tensor]) -> Conditions:
        """The same function applied to every tensor."""
        return Conditions(**{field.name: function(getattr(self, field.name)) for field in fields(self)})

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def __getitem__(self, rows: slice) -> Conditions:
        return self.map(lambda tensor: tensor[rows])

    def dropped(self) -> Conditions:
        """The same rows without any condition, for classifier-free guidance."""
        nothing = torch.zeros_like(self.has_left)
        return replace(self, has_left=nothing, has_right=nothing, has_start=nothing, has_goal=nothing)

    def alone(self) -> Conditions:
        """The same rows without their neighbours: start and goal stay."""
        nothing = torch.zeros_like(self.has_left)
        return replace(self, has_left=nothing, has_right=nothing)

    def seen_from(self, middle: Tensor) -> Conditions:
        """The same states as seen from a place of each row's own [M, 1, D]."""
        ends = {"start": self.start - middle[:, 0], "goal": self.goal - middle[:, 0]}
        return replace(self, left=self.left - middle, right=self.right - middle, **ends)

    def held(self, states: Tensor) -> Tensor:
        """Chunks [M, H, D] whose first and last states are the start and the goal, where these are told."""
        first = torch.where(self.has_start[:, None] > 0, self.start, states[:, 0])
        last = torch.where(self.has_goal[:, None] > 0, self.goal, states[:, -1])
        return torch.cat([first[:, None], states[:, 1:-1], last[:, None]], dim=1)

    @staticmethod
    def nothing(chunks: Tensor, overlap: int) -> Conditions:
        """No conditions, for chunks [M, H, D]."""
        none, states = chunks.new_zeros(len(chunks)), torch.zeros_like(chunks[:, :overlap])
        level = torch.ones_like(none)
        return Conditions(states, level, states, level, states[:, 0], states[:, 0], none, none, none, none)

    @staticmethod
    def cat(parts: list[Conditions]) -> Conditions:
        columns = zip(*(part.tensors() for part in parts), strict=True)
        return Conditions(*(torch.cat(column) for column in columns))


Denoise = Callable[[Tensor, Tensor, Conditions], Tensor]
"""`denoise(x [M, H, D], sigma [M], conditions) -> x₀ [M, H, D]`"""
