"""Recorded legs by the cell of space that they lie in, so that those around a place are found in a lookup.

That takes no longer in a larger world, and the same operations on a CPU and on a GPU. Of legs that are *alike*, in one
cell and in about one direction, two are enough: where an agent rested, thousands may lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

USUAL = 0.9  # share of the legs that are no longer than a cell
MOST = 2**24  # cells of the box around all legs
NEAR, SHARE = 32, 0.05  # legs in the cells around a place, but for this share of the places, or cells are larger
ALIKE = 2  # legs of a kind
SHARPNESS = 2  # directions are told apart by their coordinates, rounded to this part of 1


@dataclass(frozen=True)
class Cells:
    """Which legs lie in which cell of the box around all of them."""

    size: float
    """Length of a cell's side."""
    low: Tensor
    """[P], where the first cell begins."""
    row: Tensor
    """The row in `legs` of each cell of the box, with one more cell on every side: [n, …, n], of P axes."""
    legs: Tensor
    """Numbers of the legs in each cell that has some, -1 where there are fewer, and first a row without any: [C, B]."""

    @classmethod
    def of(cls, legs: Tensor) -> Cells:
        """The cells of legs [N, 2·P], each with the longest of those that are alike; the fewer legs, the larger."""
        size, number = binned(legs)
        chosen = longest_alike(legs, number)
        middles = middles_of(legs)[chosen]
        widest = float((middles.amax(dim=0) - middles.amin(dim=0)).max())
        while True:
            cells = cls.filled(middles, chosen, size)
            if size > widest or np.quantile(cells.crowd(middles).numpy(), SHARE) >= NEAR:
                return cells.to(legs.device)
            size *= 2

    @classmethod
    def filled(cls, middles: Tensor, legs: Tensor, size: float) -> Cells:
        """Cells of this size with legs of these numbers [n], which have their middles [n, P] there."""
        cell, low, sizes = boxed((middles / size).floor().long())
        cell, sizes = cell + 1, sizes + 2
        found, which, counts = numbered(cell, sizes).unique(return_inverse=True, return_counts=True)
        order = which.sort(stable=True)
        place = torch.arange(len(order.values)) - (counts.cumsum(0) - counts)[order.values]
        table = torch.full((len(found) + 1, int(counts.max())), -1)
        table[order.values + 1, place] = legs[order.indices]
        row = torch.zeros(int(sizes.prod()), dtype=torch.long)
        row[found] = 1 + torch.arange(len(found))
        return cls(size, ((low - 1) * size).to(middles), row.view(*sizes.tolist()), table)

    def to(self, device: torch.device) -> Cells:
        return Cells(self.size, self.low.to(device), self.row.to(device), self.legs.to(device))

    @property
    def most(self) -> int:
        """Legs that a place is asked about, at most."""
        return self._offsets.numel() // self.row.ndim * self.legs.shape[1]

    def around(self, here: Tensor) -> Tensor:
        """Numbers [Q, n] of the legs in the cells around places [Q, P] and in their own; -1 for none."""
        return self.legs[self._rows(here)].flatten(1)

    def crowd(self, here: Tensor) -> Tensor:
        """How many legs these are: [Q]"""
        return (self.legs >= 0).sum(dim=1)[self._rows(here)].sum(dim=1)

    def _rows(self, here: Tensor) -> Tensor:
        """Rows in `legs` of the cells around places and of their own: [Q, 3^P]"""
        cell = ((here - self.low) / self.size).nan_to_num(-2, -2, -2).clamp(-2, MOST).floor().long()
        cells = cell[:, None] + self._offsets  # [Q, 3^P, P]
        inside = ((cells >= 0) & (cells < self._sizes)).all(dim=2)
        rows = self.row[torch.where(inside[..., None], cells, 0).unbind(dim=2)]
        return torch.where(inside, rows, 0)

    @cached_property
    def _sizes(self) -> Tensor:
        return torch.tensor(self.row.shape, device=self.row.device)

    @cached_property
    def _offsets(self) -> Tensor:
        """From a cell to those around it and to itself: [3^P, P]"""
        step = torch.arange(-1, 2, device=self.row.device)
        return torch.cartesian_prod(*(step,) * self.row.ndim).view(-1, self.row.ndim)


def middles_of(legs: Tensor) -> Tensor:
    """Where legs [N, 2·P] have their middles, on the CPU: [N, P]"""
    return torch.stack(legs.cpu().chunk(2, dim=1)).mean(dim=0)


def different(legs: Tensor) -> Tensor:
    """Which legs [N, 2·P] remain where only the longest of each kind are kept: [n]"""
    return longest_alike(legs, binned(legs)[1])


def binned(legs: Tensor) -> tuple[float, Tensor]:
    """The side of a cell that most legs [N, 2·P] are no longer than, and the number [N] of each leg's kind.

    Legs of a kind have their middles in one cell and lead in about the same direction, either way. All on the CPU.
    """
    begin, end = legs.cpu().chunk(2, dim=1)
    along, middle = end - begin, middles_of(legs)
    far = along.norm(dim=1)
    moving = far[far > 0]
    size = float(np.quantile(moving.numpy(), USUAL)) if len(moving) else 1.0
    box = (middle.amax(dim=0) - middle.amin(dim=0)).double()
    while float(torch.prod(box / size + 3)) > MOST:  # some leg is far from all others
        size *= 2
    cell, _, sizes = boxed((middle / size).floor().long())
    forward = along.gather(1, along.abs().argmax(dim=1, keepdim=True)) >= 0
    way = torch.where(forward, along, -along) / far.clamp(min=1e-12)[:, None]
    kind, kinds = torch.cat([cell, (way * SHARPNESS).round().long() + SHARPNESS], dim=1), 2 * SHARPNESS + 1
    return size, numbered(kind, torch.cat([sizes, torch.full_like(sizes, kinds)]))


def boxed(cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cells [N, P] counted from the first in the smallest box around them, that first one, and the box's sizes."""
    low, high = cell.amin(dim=0), cell.amax(dim=0)
    return cell - low, low, high - low + 1


def numbered(rows: Tensor, sizes: Tensor) -> Tensor:
    """One number for each of the different rows [N, n] of whole numbers from 0 to below `sizes` [n]: [N]"""
    ahead = torch.cat([sizes[1:], sizes.new_ones(1)]).flip(0).cumprod(0).flip(0)
    return (rows * ahead).sum(dim=1)


def longest_alike(legs: Tensor, number: Tensor) -> Tensor:
    """Which legs [N, 2·P] are the longest `ALIKE` of those with the same number [N], in their own order: [n]"""
    begin, end = legs.cpu().chunk(2, dim=1)
    order = torch.from_numpy(np.lexsort([-(end - begin).norm(dim=1).numpy(), number.numpy()]))
    ranked = number[order]
    first = torch.searchsorted(ranked, ranked)
    return order[torch.arange(len(order)) - first < ALIKE].sort().values
