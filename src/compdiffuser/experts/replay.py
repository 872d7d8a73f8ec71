"""Transitions on the device, and the same rows in a file that outlives a killed run.

A transition is one row of numbers. Its reward is kept as base + push · direction, linear in the commanded direction,
so that a batch can be given other directions than those that were commanded.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from compdiffuser.types import Array, UserError


class Sizes(NamedTuple):
    """Widths of a body: its observation, its action, and 2 or 0 for a commanded direction."""

    observation: int
    action: int
    direction: int

    @property
    def inputs(self) -> int:
        """What the networks see of a state."""
        return self.observation + self.direction

    @property
    def fields(self) -> tuple[int, ...]:
        """Widths of a row: observation, next observation, action, direction, push, base, whether it goes on."""
        return (self.observation, self.observation, self.action, self.direction, self.direction, 1, 1)


class Batch(NamedTuple):
    """[B, …] states, actions, rewards, next states, and 1 where the episode goes on."""

    states: Tensor
    actions: Tensor
    rewards: Tensor
    following: Tensor
    goes_on: Tensor


class Replay:
    """A ring of transitions. On a CPU its memory is the file itself; a GPU holds a copy."""

    def __init__(self, path: Path, capacity: int, sizes: Sizes, device: torch.device, count: int = 0) -> None:
        """`count` transitions were added before and lie in the file."""
        shape = (capacity, sum(sizes.fields))
        if not path.exists():
            if count:
                raise UserError(f"the run in '{path.parent}' cannot go on without its transitions in {path.name}")
            path.parent.mkdir(parents=True, exist_ok=True)
        elif count and path.stat().st_size != 4 * shape[0] * shape[1]:
            raise UserError(f"'{path}' does not hold {capacity} transitions of {shape[1]} numbers")
        self.file = np.memmap(path, np.float32, "r+" if count else "w+", shape=shape)
        self.rows = torch.from_numpy(self.file).to(device)
        self.sizes, self.capacity, self.count = sizes, capacity, count
        self.filled = torch.tensor(float(min(count, capacity)), device=device)

    def add(self, rows: Array) -> None:
        """Transitions [n, width], over the oldest ones where the ring is full."""
        where = (self.count + np.arange(len(rows))) % self.capacity
        self.file[where] = rows
        if self.rows.device.type != "cpu":
            self.rows[torch.from_numpy(where).to(self.rows.device)] = torch.from_numpy(rows).to(self.rows.device)
        self.count += len(rows)
        self.filled.fill_(min(self.count, self.capacity))

    def sample(
        self, n: int, generator: torch.Generator, *, relabel: float = 0.0, scale: float = 1.0, most: float | None = None
    ) -> Batch:
        """n transitions, a share `relabel` of them with a direction drawn anew, rewards times `scale`.

        What a push along the direction is worth ends at `most`.
        Only tensor operations of fixed shapes: it is captured.
        """
        device = self.rows.device
        uniform = torch.rand(3, n, device=device, generator=generator)
        index = torch.minimum(uniform[0] * self.filled, self.filled - 1).long()
        now, later, actions, direction, push, base, goes_on = self.rows[index].split(self.sizes.fields, dim=-1)
        if self.sizes.direction:
            angle = 2 * math.pi * uniform[1]
            drawn = torch.stack([angle.cos(), angle.sin()], dim=-1)
            direction = torch.where(uniform[2, :, None] < relabel, drawn, direction)
        along = (push * direction).sum(-1)
        rewards = scale * (base[:, 0] + (along if most is None else along.clamp(max=most)))
        states, following = torch.cat([now, direction], -1), torch.cat([later, direction], -1)
        return Batch(states, actions, rewards, following, goes_on[:, 0])
