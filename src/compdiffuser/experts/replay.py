"""Transitions on the device, and the same rows in a file that outlives a killed run.

The file is mapped into memory and written row by row while the simulators step: a third of a megabyte a round for 512
humanoids, which takes a tenth of a millisecond, where a copy of the whole ring would take seconds each time. What was
written belongs to the kernel, so that a killed process loses nothing. A checkpoint says how many rows were added;
later ones are overwritten or, in a full ring, are as good as those they replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.experts.layout import Layout
from compdiffuser.types import Array, UserError


class Replay:
    """A ring of rows, added n at a time. On a CPU its memory is the file itself; a GPU holds a copy."""

    def __init__(
        self, path: Path, capacity: int, layout: Layout, device: torch.device, *, together: int = 1, count: int = 0
    ) -> None:
        """`together` rows are added at a time; `count` were added before and lie in the file."""
        capacity -= capacity % together  # so that they always lie side by side
        shape = (capacity, layout.width)
        if not path.exists():
            if count:
                raise UserError(f"the run in '{path.parent}' cannot go on without its transitions in {path.name}")
            path.parent.mkdir(parents=True, exist_ok=True)
        elif count and path.stat().st_size != 4 * shape[0] * shape[1]:
            raise UserError(f"'{path}' does not hold {capacity} transitions of {shape[1]} numbers")
        self.file = np.memmap(path, np.float32, "r+" if count else "w+", shape=shape)
        self.layout, self.capacity, self.count = layout, capacity, count
        self.rows, self.staged = self._on_device(device, together)
        self.filled = torch.tensor(float(min(count, capacity)), device=device)

    def _on_device(self, device: torch.device, together: int) -> tuple[Tensor, Tensor | None]:
        """The rows, and where new ones wait for their way to a GPU."""
        if device.type == "cpu":
            return torch.from_numpy(self.file), None
        rows = torch.zeros(self.file.shape, device=device)
        known = min(self.count, self.capacity)
        rows[:known].copy_(torch.from_numpy(self.file[:known]))
        return rows, torch.zeros(together, self.layout.width).pin_memory()

    def add(self, rows: Array) -> None:
        """Transitions [together, width], over the oldest ones where the ring is full."""
        first = self.count % self.capacity
        self.file[first : first + len(rows)] = rows
        if self.staged is not None:
            self.staged.numpy()[:] = rows
            self.rows[first : first + len(rows)].copy_(self.staged)
        self.count += len(rows)
        self.filled.fill_(min(self.count, self.capacity))

    def sample(self, n: int, generator: torch.Generator) -> dict[str, Any]:
        """The parts of n rows. Only tensor operations of fixed shapes: it is captured."""
        uniform = torch.rand(n, device=self.rows.device, generator=generator)
        index = torch.minimum(uniform * self.filled, self.filled - 1).long()
        return self.layout.split(self.rows[index])
