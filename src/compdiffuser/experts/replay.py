"""Transitions on the device, and the same rows in a file that outlives a killed run.

The file is mapped into memory and written row by row while the simulators step: a third of a megabyte a round for 512
humanoids, which takes a tenth of a millisecond, where a copy of the whole ring would take seconds each time. What was
written belongs to the kernel, so that a killed process loses nothing. A checkpoint says how many rows were added;
later ones lie in spare rows of the ring, so that a run that continues draws what it would have drawn.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.experts.layout import Layout
from compdiffuser.files import replacing
from compdiffuser.types import Array, UserError


def _reserve(path: Path, size: int) -> None:
    """A file of zeros that has its place on the disk: writing into a mapped file on a full one ends the process.

    Raises UserError where there is no place.
    """
    with replacing(path) as temporary, open(temporary, "wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)


class Replay:
    """A ring of rows, added n at a time. On a CPU its memory is the file itself; a GPU holds a copy."""

    def __init__(
        self, path: Path, capacity: int, layout: Layout, device: torch.device, *, together: int = 1, count: int = 0,
        spare: int = 0,
    ) -> None:  # fmt: skip
        """`together` rows are added at a time; `count` were added before and lie in the file.

        The last `capacity` rows are drawn from; at least `spare` more are kept, which a checkpoint may count.
        """
        capacity -= capacity % together  # so that they always lie side by side
        size = capacity + (-(-spare // together) * together + together if spare else 0)
        if not path.exists():
            if count:
                raise UserError(f"the run in '{path.parent}' cannot go on without its transitions in {path.name}")
        elif count:  # it may have been made with other spare rows
            size, rest = divmod(path.stat().st_size, 4 * layout.width)
            if rest or size < capacity or size % together:
                raise UserError(f"'{path}' does not hold {capacity} transitions of {layout.width} numbers")
        if not count:
            _reserve(path, 4 * size * layout.width)
        self.file = np.memmap(path, np.float32, "r+", shape=(size, layout.width))
        self.layout, self.capacity, self.size, self.count = layout, capacity, size, count
        self.rows, self.staged = self._on_device(device, together)
        self.filled = torch.zeros((), device=device)
        self.first = torch.zeros((), dtype=torch.long, device=device)
        self._note()

    def _on_device(self, device: torch.device, together: int) -> tuple[Tensor, Tensor | None]:
        """The rows, and where new ones wait for their way to a GPU."""
        if device.type == "cpu":
            return torch.from_numpy(self.file), None
        rows = torch.zeros(self.file.shape, device=device)
        known = min(self.count, self.size)
        rows[:known].copy_(torch.from_numpy(self.file[:known]))
        return rows, torch.zeros(together, self.layout.width).pin_memory()

    def add(self, rows: Array) -> None:
        """Transitions [together, width], over the oldest ones where the ring is full."""
        first = self.count % self.size
        self.file[first : first + len(rows)] = rows
        if self.staged is not None:
            self.staged.numpy()[:] = rows
            self.rows[first : first + len(rows)].copy_(self.staged)
        self.count += len(rows)
        self._note()

    def _note(self) -> None:
        """How many rows can be drawn, and where the oldest of them lies."""
        filled = min(self.count, self.capacity)
        self.filled.fill_(filled)
        self.first.fill_((self.count - filled) % self.size)

    def sample(self, n: int, generator: torch.Generator) -> dict[str, Any]:
        """The parts of n rows. Only tensor operations of fixed shapes: it is captured."""
        uniform = torch.rand(n, device=self.rows.device, generator=generator)
        index = (self.first + torch.minimum(uniform * self.filled, self.filled - 1).long()) % self.size
        return self.layout.split(self.rows[index])
