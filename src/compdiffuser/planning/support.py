"""Where the data has been: a sample of its short segments, kept with the checkpoint.

Reconstruction error asks the model whether a plan could be data, and a model can be wrong about a wall for good: every
candidate that crosses it there looks fine. So the data is asked too. A plan strays as far as its strangest segment of
`SPAN` steps lies from the nearest recorded one. Episodes that the segments were not taken from say what is usual.
Segments are of positions alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from compdiffuser.data.windows import Windows
from compdiffuser.planning.calibration import LEVELS, WINDOWS

SPAN = 8  # steps of a segment, of which the first, middle and last state count
SEGMENTS = 16_384
ELEMENTS = 2**25  # distances computed at a time
HELD_OUT = 0.1  # share of the episodes that say what is usual


@dataclass(frozen=True)
class Support:
    """Recorded segments, and how far windows of other episodes lie from them."""

    segments: Tensor
    """[N, 3·P], normalized positions."""
    strays: tuple[float, ...]
    """Quantiles, at `LEVELS`, of what windows of the data stray."""

    def to(self, device: torch.device) -> Support:
        return Support(self.segments.to(device), self.strays)

    def threshold(self, quantile: float) -> float:
        """The distance that this share of the data's windows stays below."""
        return float(np.interp(quantile, LEVELS, self.strays))

    def stray(self, places: Tensor) -> Tensor:
        """Distance of each chunk's strangest segment from the nearest recorded one: [M, H, P] -> [M]."""
        own = segments_of(places)  # [M, n, 3·P]
        rows = max(1, ELEMENTS // (own.shape[1] * len(self.segments)))
        return torch.cat([self._nearest(part).amax(dim=1) for part in own.split(rows)])

    def _nearest(self, own: Tensor) -> Tensor:
        # |a − b|² / 2 less |a|² / 2 finds the nearest by one matrix product; its distance is then computed without
        # the cancellation, which would be off by a step where products are made in fewer digits.
        queries = own.flatten(0, 1)
        nearest = torch.addmm(self.segments.square().sum(dim=1) / 2, queries, self.segments.T, alpha=-1).argmin(dim=1)
        return torch.linalg.vector_norm(queries - self.segments[nearest], dim=1).view(own.shape[:2])


def segments_of(places: Tensor) -> Tensor:
    """Segments of a chunk, half of each shared with the next, the last at its end: [M, H, P] -> [M, n, 3·P]."""
    middle = SPAN // 2
    pieces = places.unfold(1, SPAN + 1, middle)  # [M, n, P, SPAN + 1]
    if (places.shape[1] - 1 - SPAN) % middle:
        pieces = torch.cat([pieces, places[:, None, -SPAN - 1 :].transpose(2, 3)], dim=1)
    return pieces[..., [0, middle, SPAN]].transpose(2, 3).flatten(2)


def measure_support(windows: Windows, seed: int = 0, count: int = SEGMENTS) -> Support | None:
    """Sample `count` segments of the data, and measure windows of other episodes by them.

    None where chunks are shorter than a segment. A single episode has to measure itself.
    """
    if windows.horizon <= SPAN:
        return None
    generator = torch.Generator(windows.states.device).manual_seed(seed + 1)
    kept, held = windows.held_out(HELD_OUT, generator)
    segments = segments_of(kept.space.places(kept.sample(count, generator)))
    chosen = torch.randint(segments.shape[1], (count,), generator=generator, device=segments.device)
    segments = segments[torch.arange(count, device=segments.device), chosen]
    support = Support(segments.half().float(), ())
    strays = support.stray(held.space.places(held.sample(WINDOWS, generator))).cpu().numpy()
    return Support(support.segments, tuple(float(q) for q in np.quantile(strays, LEVELS)))
