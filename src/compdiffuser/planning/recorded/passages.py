"""Where recorded episodes lead through: what is on both sides of a thin wall is near, but nobody ever got from one to
the other.

A plan *passes aside* by how far it is, where it moves, from the nearest recorded *leg* that crosses the plane across
its path there. In the open that is about what recorded paths lie apart. At a wall it is the way to the next door,
however near to the wall the data is. Paths are taken either way: who came through may go back.

Of large data, as many legs are kept of every small cell of space and every direction in it: a door that was passed once
stays beside a hall that was crossed a thousand times. A place is asked about the legs in the cells around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from compdiffuser.checks import finite
from compdiffuser.data.windows import Windows
from compdiffuser.planning.recorded.cells import Cells, different, lengths_of, usual_length
from compdiffuser.types import UserError

LEG = 4  # steps of a recorded leg
LEGS = 16_384  # that are kept of any data: all of 65,000 states
USUAL_ASIDE = 0.8  # share of other windows that pass no further aside than a plan may
LEAST_ASIDE = 2.0  # longest steps that a plan may always pass aside
WINDOWS = 1024  # that say what is usual
WIDEST = 3  # dimensions of a place: in more there are no walls to go round
MOST_PARTS = 16  # of a line that is looked at
FOLLOWED = 0.5  # of a usual leg: over so far a plan is followed to see where it goes
STIRRED = 0.2  # of that: who does not get so far stays, and goes nowhere
NOWHERE = 4.0  # how far aside it is where no leg around crosses, at least: further than a plan may pass
SOON = 8  # legs of a cell that are asked first
LINES = 4096  # of about the same length, that are looked at together
ELEMENTS = 2**22  # numbers that are looked at together


@dataclass(frozen=True)
class Passages:
    """Recorded legs, and how far aside of them a plan may pass."""

    legs: Tensor
    """[N, 2·P], normalized positions where each begins and ends."""
    limit: float

    def check(self, size: int) -> None:
        """Raises UserError where legs are not of places of so many numbers, or nothing could pass."""
        finite(self, "limit", least=0)
        if self.legs.ndim != 2 or not len(self.legs) or self.legs.shape[1] != 2 * size:
            raise UserError(f"legs are [N, {2 * size}] here, not {list(self.legs.shape)}")

    def to(self, device: torch.device) -> Passages:
        return replace(self, legs=self.legs.to(device))

    @property
    def longest(self) -> float:
        """Length of the longest leg."""
        return float(lengths_of(self.legs).max())

    def aside(self, places: Tensor) -> Tensor:
        """How far aside each chunk passes where it does so the furthest: [M, H, P] -> [M]. Up to half of what a plan
        may, that is an upper bound.
        """
        here, along = between(places), between(headings(places, FOLLOWED * self._usual))
        found = self._nearer(self.limit / 2, here.flatten(0, 1), along.flatten(0, 1))
        return found.view(here.shape[:2]).amax(dim=1)

    def across(self, here: Tensor, along: Tensor, longest: int | None = None) -> Tensor:
        """Distances [Q] of places [Q, P] from where a leg crosses the plane across the direction `along` [Q, P].

        `longest`: of each cell, only so many legs are asked.
        """
        rows = max(1, ELEMENTS // (self._cells.most(longest) * self.legs.shape[1]))
        parts = zip(here.split(rows), along.split(rows), strict=True)
        return torch.cat([self._across(*part, longest) for part in parts])

    def open(self, here: Tensor, there: Tensor) -> Tensor:
        """Whether the straight lines between places [n, P] pass nowhere further aside than a plan may: [n]."""
        order = (there - here).norm(dim=1).sort(stable=True).indices
        found = torch.ones(len(here), dtype=torch.bool, device=here.device)
        for lines in order.split(LINES):  # the longer, the more of their points are looked at
            found[lines] = self._open(here[lines], there[lines])
        return found

    def _open(self, here: Tensor, there: Tensor) -> Tensor:
        furthest = float((there - here).norm(dim=1).max()) if len(here) else 0.0
        parts = min(max(math.ceil(2 * furthest / max(self.limit, 1e-9)), 1), MOST_PARTS)
        shares = ((torch.arange(parts) + 0.5) / parts).to(here)
        points = torch.lerp(here[:, None], there[:, None], shares[:, None])
        along = (there - here)[:, None].expand_as(points)
        found = self._nearer(self.limit, points.flatten(0, 1), along.flatten(0, 1))
        return (found <= self.limit).view(len(here), parts).all(dim=1)

    def _nearer(self, enough: float, here: Tensor, along: Tensor) -> Tensor:
        """As `across`; but where one of the longest legs is near enough, as nearly everywhere, the others are not
        asked.
        """
        found = self.across(here, along, SOON)
        far = (found > enough).nonzero()[:, 0]
        found[far] = self.across(here[far], along[far])
        return found

    def _across(self, here: Tensor, along: Tensor, longest: int | None) -> Tensor:
        legs = self._cells.around(here, longest) - here[:, None, None, :, None]  # [Q, n, 2, P, B], NaN for none
        before, after = (legs * along[:, None, None, :, None]).sum(dim=3).unbind(dim=2)
        share = before.abs() / (before.abs() + after.abs()).clamp(min=1e-12)
        begin, end = legs.unbind(dim=2)
        # `norm` over a dimension in the middle takes fifty times as long.
        far = torch.lerp(begin, end, share[:, :, None]).square().sum(dim=2)
        nowhere = max(NOWHERE, 2 * self.limit)
        return torch.where(before * after <= 0, far, nowhere**2).amin(dim=(1, 2)).sqrt()

    @cached_property
    def _usual(self) -> float:
        return usual_length(self.legs)

    @cached_property
    def _cells(self) -> Cells:
        return Cells.of(self.legs)


def between(states: Tensor) -> Tensor:
    """States of a path and the middles between them: [M, H, P] -> [M, 2·H − 1, P]"""
    return torch.cat([states, (states[:, 1:] + states[:, :-1]) / 2], dim=1)


def headings(places: Tensor, moved: float) -> Tensor:
    """Where each state [M, H, P] of a path is going: from a little before it to a little after it, further apart the
    slower the path is, until the two are `moved` apart. Where they never are, as far apart as they get; 0 where that is
    next to nothing.
    """
    steps = torch.arange(places.shape[1], device=places.device)
    found = torch.zeros_like(places)
    far = torch.zeros_like(places[..., :1])
    reach = LEG // 2
    while True:
        before, after = (steps - reach).clamp(min=0), (steps + reach).clamp(max=places.shape[1] - 1)
        along = places[:, after] - places[:, before]
        length = along.norm(dim=2, keepdim=True)
        going = (far < moved) & (length > far) & (length >= STIRRED * moved)
        found, far = torch.where(going, along, found), torch.where(going, length, far)
        if reach >= places.shape[1]:
            return found
        reach *= 2


def legs_of(windows: Windows, most: int = LEGS) -> Tensor:
    """Legs [N, 2·P] one after another through all episodes, in half precision; of more than `most`, a few of a kind."""
    rows: list[np.ndarray] = []
    step = LEG * windows.stride
    for first, count in zip(windows.starts.tolist(), windows.lengths.tolist(), strict=True):
        begins = np.arange(0, max(count - 1, 1), step)
        rows.append(first + np.stack([begins, np.minimum(begins + step, count - 1)], axis=1))
    pairs = torch.from_numpy(np.concatenate(rows)).to(windows.states.device)
    legs = windows.space.places(windows.states[pairs]).flatten(1).half().float()
    return legs if len(legs) <= most else legs[different(legs).to(legs.device)]


def measure_passages(
    windows: Windows, folds: Sequence[tuple[Windows, Windows]], generator: torch.Generator
) -> Passages | None:
    """Legs of all `windows`, and what windows held back pass aside of those that were kept, in each of the `folds`.

    None where chunks are shorter than a leg, several things move, or places have too many dimensions for walls.
    """
    sizes: Sequence[int] = windows.space.sizes
    if len(sizes) > 1 or sizes[0] > WIDEST or windows.horizon <= LEG:
        return None
    aside, steps = list[Tensor](), list[Tensor]()
    for kept, held in folds:
        others = held.space.places(held.sample(math.ceil(WINDOWS / len(folds)), generator))
        steps.append(others.diff(dim=1).norm(dim=-1).flatten())
        aside.append(Passages(legs_of(kept), 0.0).aside(others))
    least = LEAST_ASIDE * float(np.quantile(torch.cat(steps).cpu().numpy(), 0.9999))
    somewhere = (found := torch.cat(aside).cpu().numpy())[found < NOWHERE]  # or everything could pass
    usual = float(np.quantile(somewhere, USUAL_ASIDE)) if len(somewhere) else 0.0
    return Passages(legs_of(windows), max(least, usual))
