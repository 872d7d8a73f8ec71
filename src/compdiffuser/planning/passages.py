"""Where recorded episodes lead through: what is on both sides of a thin wall is near, but nobody ever got from one to
the other.

A plan *passes aside* by how far it is, where it moves, from the nearest recorded *leg* that crosses the plane across
its path there. In the open that is about what recorded paths lie apart. At a wall it is the way to the next door,
however near to the wall the data is. Paths are taken either way: who came through may go back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from scipy.spatial import KDTree
from torch import Tensor

from compdiffuser.checks import finite
from compdiffuser.data.windows import Windows
from compdiffuser.types import UserError

LEG = 4  # steps of a leg, recorded or of a plan
LEGS = 16_384  # that are kept, at most: all of 65,000 states
USUAL = 0.8  # share of other windows that pass no further aside than a plan may
LEAST = 2.0  # longest steps that a plan may always pass aside
WINDOWS = 1024  # that say what is usual
WIDEST = 3  # dimensions of a place: in more there are no walls to go round
MOST_PARTS = 16  # of a line that is looked at
NEAR = 64  # legs around a place that are asked whether they cross
NOWHERE = 4.0  # how far aside it is where none of them does: further than the data goes
ELEMENTS = 2**25  # pairs that are looked at together


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
        return float((self.legs.chunk(2, dim=1)[1] - self.legs.chunk(2, dim=1)[0]).norm(dim=1).max())

    def aside(self, places: Tensor) -> Tensor:
        """How far aside each chunk passes where it does so the furthest: [M, H, P] -> [M]."""
        here = places[:, LEG // 2 : -(LEG // 2) : LEG // 2]
        along = (places[:, LEG:] - places[:, :-LEG])[:, :: LEG // 2]
        return self.across(here.flatten(0, 1), along.flatten(0, 1)).view(here.shape[:2]).amax(dim=1)

    def across(self, here: Tensor, along: Tensor) -> Tensor:
        """Distances [Q] of places [Q, P] from where a leg crosses the plane across the direction `along` [Q, P]."""
        rows = max(1, ELEMENTS // len(self.legs))
        return torch.cat([self._across(*part) for part in zip(here.split(rows), along.split(rows), strict=True)])

    def open(self, here: Tensor, there: Tensor) -> Tensor:
        """Whether the straight lines between places [n, P] pass nowhere further aside than a plan may: [n]."""
        furthest = float((there - here).norm(dim=1).max()) if len(here) else 0.0
        parts = min(max(math.ceil(2 * furthest / max(self.limit, 1e-9)), 1), MOST_PARTS)
        shares = ((torch.arange(parts) + 0.5) / parts).to(here)
        points = torch.lerp(here[:, None], there[:, None], shares[:, None])
        along = (there - here)[:, None].expand_as(points)
        return (self.across(points.flatten(0, 1), along.flatten(0, 1)) <= self.limit).view(len(here), parts).all(dim=1)

    def _across(self, here: Tensor, along: Tensor) -> Tensor:
        begin, end = (self.legs[self._near(here)] - here[:, None].repeat(1, 1, 2)).chunk(2, dim=2)  # [Q, n, P]
        before, after = ((each * along[:, None]).sum(dim=2) for each in (begin, end))
        share = before.abs() / (before.abs() + after.abs()).clamp(min=1e-12)
        far = torch.lerp(begin, end, share[..., None]).norm(dim=2)
        return torch.where(before * after <= 0, far, NOWHERE).amin(dim=1)

    def _near(self, here: Tensor) -> Tensor:
        """Numbers [Q, n] of the legs nearest to places [Q, P]."""
        count = min(NEAR, len(self.legs))
        if self._tree is None:
            return torch.cdist(here, self._middles).topk(count, largest=False).indices
        # Of a place that is not finite any will do: no leg crosses there.
        return torch.from_numpy(self._tree.query(here.nan_to_num(0, 0, 0).numpy(), range(1, count + 1))[1])

    @cached_property
    def _middles(self) -> Tensor:
        return torch.stack(self.legs.chunk(2, dim=1)).mean(dim=0)

    @cached_property
    def _tree(self) -> KDTree | None:
        """Finds what is near on a CPU; a GPU compares with all in no more time."""
        return KDTree(self._middles.numpy()) if self.legs.device.type == "cpu" else None


def legs_of(windows: Windows, generator: torch.Generator, most: int = LEGS) -> Tensor:
    """Legs [N, 2·P] one after another through all episodes, or as many that are drawn, in half precision."""
    rows: list[np.ndarray] = []
    step = LEG * windows.stride
    for first, count in zip(windows.starts.tolist(), windows.lengths.tolist(), strict=True):
        begins = np.arange(0, max(count - 1, 1), step)
        rows.append(first + np.stack([begins, np.minimum(begins + step, count - 1)], axis=1))
    pairs = torch.from_numpy(np.concatenate(rows))
    if len(pairs) > most:
        drawn = torch.randperm(len(pairs), generator=generator, device=windows.states.device)
        pairs = pairs[drawn[:most].sort().values.cpu()]
    return windows.space.places(windows.states[pairs.to(windows.states.device)]).flatten(1).half().float()


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
        aside.append(Passages(legs_of(kept, generator), 0.0).aside(others))
    least = LEAST * float(np.quantile(torch.cat(steps).cpu().numpy(), 0.9999))
    usual = float(np.quantile(torch.cat(aside).cpu().numpy(), USUAL))
    return Passages(legs_of(windows, generator), max(least, usual))
