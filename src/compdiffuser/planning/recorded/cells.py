"""Recorded legs by the cell of space that they lie in, so that those around a place are found in a lookup.

That takes no longer in a larger world, and the same operations on a CPU and on a GPU. Of legs of one *kind*, in one
small part of a cell and in about one direction, the longest is enough: where an agent rested, thousands may lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

USUAL_LEGS = 0.9  # share of the moving legs that are no longer than a cell
MOST = 2**24  # cells of the box around all legs
CROWD, SHARE = 32, 0.05  # legs in the cells around a place, but for this share of the places, or cells are larger
PARTS = 25  # of a cell: in a larger one, fast legs beside a door would stand for a slow one through it
SHARPNESS = 2  # directions are told apart by their coordinates, rounded to this part of 1
PLACES = 2**16  # that are looked at together


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
    """Where the legs in each cell that has some begin and end, the longest first, NaN where there are fewer; and before
    all cells a row without any: [C, 2, P, B]."""

    @classmethod
    def of(cls, legs: Tensor) -> Cells:
        """The cells of legs [N, 2·P], each with the longest of each kind; the fewer legs, the larger."""
        chosen = legs.cpu()[different(legs)]
        middles, size = middles_of(chosen), usual_length(legs)
        box = (middles.amax(dim=0) - middles.amin(dim=0)).double()
        while float(torch.prod(box / size + 4)) > MOST:  # some leg is far from all others
            size *= 2
        while True:
            cells = cls.filled(chosen, size)
            if size > box.max() or np.quantile(cells.crowd(middles).numpy(), SHARE) >= CROWD:
                return cells.to(legs.device)
            size *= 2

    @classmethod
    def filled(cls, legs: Tensor, size: float) -> Cells:
        """Cells of this size with legs [N, 2·P], each where it has its middle."""
        legs = legs[lengths_of(legs).sort(descending=True, stable=True).indices]
        cell, low, sizes = boxed((middles_of(legs) / size).floor().long())
        cell, sizes = cell + 1, sizes + 2
        found, which, counts = numbered(cell, sizes).unique(return_inverse=True, return_counts=True)
        order = which.sort(stable=True)
        place = torch.arange(len(order.values)) - (counts.cumsum(0) - counts)[order.values]
        table = legs.new_full((len(found) + 1, int(counts.max()), legs.shape[1]), torch.nan)
        table[order.values + 1, place] = legs[order.indices]
        row = torch.zeros(int(sizes.prod()), dtype=torch.long)
        row[found] = 1 + torch.arange(len(found))
        ends = table.transpose(1, 2).unflatten(1, (2, -1)).contiguous()
        return cls(size, ((low - 1) * size).to(legs), row.view(*sizes.tolist()), ends)

    def to(self, device: torch.device) -> Cells:
        return Cells(self.size, self.low.to(device), self.row.to(device), self.legs.to(device))

    def most(self, longest: int | None = None) -> int:
        """Legs that a place is asked about, at most, where so many of the `longest` of each cell are."""
        return len(self._offsets) * self.legs[0, 0, 0, :longest].numel()

    def around(self, here: Tensor, longest: int | None = None) -> Tensor:
        """Where the legs in the cells around places [Q, P] and in their own begin and end, NaN for none; of each cell
        only so many of the `longest`: [Q, 3^P, 2, P, B]
        """
        return self.legs[..., :longest][self._rows(here)]

    def crowd(self, here: Tensor) -> Tensor:
        """How many legs these are: [Q]"""
        counts = self.legs[:, 0, 0].isfinite().sum(dim=1)
        return torch.cat([counts[self._rows(part)].sum(dim=1) for part in here.split(PLACES)])

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


def lengths_of(legs: Tensor) -> Tensor:
    """How long legs [N, 2·P] are: [N]"""
    begin, end = legs.chunk(2, dim=1)
    return (end - begin).norm(dim=1)


def middles_of(legs: Tensor) -> Tensor:
    """Where legs [N, 2·P] have their middles: [N, P]"""
    return torch.stack(legs.chunk(2, dim=1)).mean(dim=0)


def usual_length(legs: Tensor) -> float:
    """The length that most moving ones of legs [N, 2·P] do not exceed; 1 where none moves."""
    far = lengths_of(legs.cpu())
    moving = far[far > 0]
    return float(np.quantile(moving.numpy(), USUAL_LEGS)) if len(moving) else 1.0


def different(legs: Tensor) -> Tensor:
    """Which legs [N, 2·P] remain, in their own order, where only the longest of each kind is kept: [n]"""
    legs = legs.cpu()
    kind = kinds_of(legs)
    # By their ends where they are equally long: which one is kept does not depend on their order.
    order = np.lexsort([*legs.T.numpy(), -lengths_of(legs).numpy(), *kind.T.numpy()])
    first = (kind[order].diff(dim=0, prepend=kind[order[:1]] - 1) != 0).any(dim=1)
    return torch.from_numpy(order)[first].sort().values


def kinds_of(legs: Tensor) -> Tensor:
    """Of what kind legs [N, 2·P] are: [N, 2·P] whole numbers.

    Those of a kind have their middles in one of the `PARTS` of a cell and lead in about the same direction, either way.
    """
    begin, end = legs.chunk(2, dim=1)
    along, middle = end - begin, middles_of(legs)
    side = usual_length(legs) / PARTS ** (1 / middle.shape[1])
    forward = along.gather(1, along.abs().argmax(dim=1, keepdim=True)) >= 0
    way = torch.where(forward, along, -along) / along.norm(dim=1).clamp(min=1e-12)[:, None]
    return torch.cat([(middle / side).floor().long(), (way * SHARPNESS).round().long()], dim=1)


def boxed(cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cells [N, P] counted from the first in the smallest box around them, that first one, and the box's sizes."""
    low, high = cell.amin(dim=0), cell.amax(dim=0)
    return cell - low, low, high - low + 1


def numbered(rows: Tensor, sizes: Tensor) -> Tensor:
    """One number for each of the different rows [N, n] of whole numbers from 0 to below `sizes` [n]: [N]"""
    ahead = torch.cat([sizes[1:], sizes.new_ones(1)]).flip(0).cumprod(0).flip(0)
    return (rows * ahead).sum(dim=1)
