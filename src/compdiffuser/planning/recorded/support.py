"""Where the data has been: a sample of its short segments, kept with the checkpoint.

Reconstruction error asks the model whether a plan could be data, and a model can be wrong about a wall for good: every
candidate that crosses it there looks fine. So the data is asked too. A plan strays as far as its strangest segment of
`SEGMENT_SPAN` steps lies from the nearest recorded one. Episodes that the segments were not taken from say what is
usual. Segments are of positions alone. Where several things move, each is asked about by itself, in units of what it
usually strays, and the strangest counts: an ant anywhere and a ball anywhere else were hardly ever recorded together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.spatial import KDTree
from torch import Tensor

from compdiffuser.checks import typed
from compdiffuser.data.windows import Windows
from compdiffuser.domains.space import Space
from compdiffuser.planning.recorded.calibration import WINDOWS, check_quantiles, quantiles, value_at
from compdiffuser.planning.recorded.moves import length_of_most, split_groups
from compdiffuser.planning.recorded.passages import Passages, measure_passages
from compdiffuser.types import Array, UserError

SEGMENT_SPAN = 8  # steps of a segment, of which the first, middle and last state count
SEGMENTS = 16_384  # for each position group, at first
STATES_PER_SEGMENT = 64  # of the data, at least, where one thing moves in a world that fewer segments cannot cover
CLOSE = 6.0  # longest steps that other windows usually stray at most, where segments are enough
USUAL_STRAY = 0.995  # share of other windows that says what they usually stray
MANY = 32_768  # segments from which on a CPU asks a tree for the nearest
ELEMENTS = 2**25  # distances computed at a time
UNIT = 0.99  # share of the windows that stray less than a unit, where there are several groups
LEAST_UNIT = 0.01  # of a unit, for a thing that never moves
LEAST_STRAY = 2.0  # longest steps that a plan may always stray: one episode strays nothing from itself or its copies
FOLDS = 10  # of small data, whose episodes say in turn what is usual
HELD_OUT = 0.1  # share of the episodes that say what is usual


@dataclass(frozen=True)
class Support:
    """Recorded segments, and how far windows of other episodes lie from them."""

    segments: Tensor
    """[N, 3·P], normalized positions."""
    strays: tuple[float, ...]
    """Quantiles, at `LEVELS`, of what windows of the data stray."""
    sizes: tuple[int, ...] = ()
    """Numbers that each position group has, where there are several."""
    units: tuple[float, ...] = ()
    """What each group usually strays at most."""
    passages: Passages | None = None
    """Where recorded episodes lead through; None where nobody has measured that."""

    def to(self, device: torch.device) -> Support:
        passages = None if self.passages is None else self.passages.to(device)
        return replace(self, segments=self.segments.to(device), passages=passages)

    def arrays(self) -> dict[str, Tensor]:
        """What is recorded of the data itself."""
        return {"segments": self.segments} | ({} if self.passages is None else {"legs": self.passages.legs})

    def described(self) -> dict[str, Any]:
        """Everything but the arrays, ready for JSON."""
        groups = {"sizes": self.sizes, "units": self.units} if self.sizes else {}
        passages = {} if self.passages is None else {"aside": self.passages.limit}
        return {"strays": self.strays, **groups, **passages}

    @classmethod
    def restored(cls, segments: Tensor, described: dict[str, Any], legs: Tensor | None = None) -> Support:
        """What `described` tells, with the segments and legs."""
        passages = None if legs is None else Passages(legs, described["aside"])
        strays, sizes, units = (tuple(described.get(name, ())) for name in ("strays", "sizes", "units"))
        return cls(segments, strays, sizes, units, passages)

    def check(self, space: Space) -> None:
        """Raises UserError where the segments are not of this space's positions, or quantiles are missing."""
        typed(self)
        check_quantiles("strays", self.strays)
        sizes = tuple(space.sizes)
        if self.segments.ndim != 2 or not len(self.segments) or self.segments.shape[1] != 3 * sum(sizes):
            raise UserError(f"segments are [N, {3 * sum(sizes)}] here, not {list(self.segments.shape)}")
        if self.sizes and (self.sizes != sizes or len(self.units) != len(sizes) or min(self.units) <= 0):
            raise UserError(f"groups have sizes {sizes} and a unit above 0 each, not {self.sizes} and {self.units}")
        if self.passages is not None:
            self.passages.check(sum(sizes))

    def threshold(self, quantile: float) -> float:
        """The distance that this share of the data's windows stays below."""
        return value_at(quantile, self.strays)

    def stray(self, places: Tensor) -> Tensor:
        """Distance of each chunk's strangest segment from the nearest recorded one: [M, H, P] -> [M].

        Of several groups, the largest in units of what it usually strays.
        """
        each = self.strays_of_groups(places)
        if not self.units:
            return each[0]
        return torch.stack([far / unit for far, unit in zip(each, self.units, strict=True)]).amax(dim=0)

    def strays_of_groups(self, places: Tensor) -> list[Tensor]:
        """The same distance for each group by itself."""
        own = self._of_groups(segments_of(places))  # [M, n, 3·size] each
        if self._tree is not None:
            return [self._by_tree(own[0])]
        return [self._furthest(mine, recorded) for mine, recorded in zip(own, self._recorded, strict=True)]

    def strangest(self, places: Tensor) -> int:
        """Of a chunk [H, P], the first state of the segment that lies furthest from any recorded one."""
        own = self._of_groups(segments_of(places[None]))
        far = [apart(mine, recorded)[0] for mine, recorded in zip(own, self._recorded, strict=True)]
        units = self.units or (1.0,)
        segment = int(torch.stack([each / unit for each, unit in zip(far, units, strict=True)]).amax(dim=0).argmax())
        return min(segment * (SEGMENT_SPAN // 2), len(places) - 1 - SEGMENT_SPAN)

    @cached_property
    def pace(self) -> float:
        """How far the data gets from one state to the next on average, rests included."""
        first, middle, last = self.segments.chunk(3, dim=1)
        return float(((middle - first).norm(dim=1) + (last - middle).norm(dim=1)).mean()) / SEGMENT_SPAN

    def group(self, number: int) -> Tensor:
        """The segments [N, 3·size] of one position group."""
        return self._recorded[number]

    @cached_property
    def _recorded(self) -> list[Tensor]:
        return self._of_groups(self.segments)

    @cached_property
    def _tree(self) -> KDTree | None:
        """Finds the nearest of many segments of one group on a CPU; a GPU compares with all in no more time."""
        many = len(self.segments) > MANY and not self.sizes and self.segments.device.type == "cpu"
        return KDTree(self.segments.numpy()) if many else None

    def _by_tree(self, own: Tensor) -> Tensor:
        assert self._tree is not None
        queries = own.flatten(0, 1)
        finite = queries.isfinite().all(dim=1)
        far = torch.from_numpy(self._tree.query(queries.nan_to_num(0, 0, 0).numpy())[0])
        return far.masked_fill(~finite, torch.nan).to(own.dtype).view(own.shape[:2]).amax(dim=1)

    def _of_groups(self, segments: Tensor) -> list[Tensor]:
        if not self.sizes:
            return [segments]
        states = segments.unflatten(-1, (3, -1))
        return [part.flatten(-2) for part in split_groups(states, self.sizes)]

    def _furthest(self, own: Tensor, recorded: Tensor) -> Tensor:
        rows = max(1, ELEMENTS // (own.shape[1] * len(recorded)))
        return torch.cat([apart(part, recorded).amax(dim=1) for part in own.split(rows)])


def apart(own: Tensor, recorded: Tensor) -> Tensor:
    """Distance [M, n] of each of [M, n, w] from the nearest of [N, w]."""
    # |a − b|² / 2 less |a|² / 2 finds the nearest by one matrix product; its distance is then computed without
    # the cancellation, which would be off by a step where products are made in fewer digits.
    queries = own.flatten(0, 1)
    nearest = torch.addmm(recorded.square().sum(dim=1) / 2, queries, recorded.T, alpha=-1).argmin(dim=1)
    return torch.linalg.vector_norm(queries - recorded[nearest], dim=1).view(own.shape[:2])


def segments_of(places: Tensor) -> Tensor:
    """Segments of a chunk, half of each shared with the next, the last at its end: [M, H, P] -> [M, n, 3·P]."""
    middle = SEGMENT_SPAN // 2
    pieces = places.unfold(1, SEGMENT_SPAN + 1, middle)  # [M, n, P, SEGMENT_SPAN + 1]
    if (places.shape[1] - 1 - SEGMENT_SPAN) % middle:
        pieces = torch.cat([pieces, places[:, None, -SEGMENT_SPAN - 1 :].transpose(2, 3)], dim=1)
    return pieces[..., [0, middle, SEGMENT_SPAN]].transpose(2, 3).flatten(2)


def drawn(windows: Windows, count: int, generator: torch.Generator) -> Tensor:
    """Segments [count, 3·P] of the data, in half precision as they are kept."""
    segments = segments_of(windows.space.places(windows.sample(count, generator)))
    chosen = torch.randint(segments.shape[1], (count,), generator=generator, device=segments.device)
    return segments[torch.arange(count, device=segments.device), chosen].half().float()


def small(windows: Windows) -> bool:
    """Whether data is so small that all its segments are kept."""
    return windows.total <= SEGMENTS


def every(windows: Windows) -> Tensor:
    """All different segments [N, 3·P] of the data, in half precision as they are kept."""
    chunks = windows.at(torch.arange(windows.total, device=windows.states.device))
    return segments_of(windows.space.places(chunks)).flatten(0, 1).half().float().unique(dim=0)


def _strays(kept: Windows, held: Windows, generator: torch.Generator) -> Array:
    """What some windows held back stray from all segments of those kept."""
    others = held.space.places(held.sample(WINDOWS // FOLDS, generator))
    return Support(every(kept), ()).stray(others).cpu().numpy()


def _denser(support: Support, kept: Windows, others: Tensor, generator: torch.Generator) -> Support:
    """Twice as many segments, again and again, until windows of other episodes [M, H, P] lie close to them."""
    close = CLOSE * length_of_most(others.diff(dim=1), 0.9999)
    while 2 * len(support.segments) <= len(kept.states) // STATES_PER_SEGMENT:
        if float(np.quantile(support.stray(others).cpu().numpy(), USUAL_STRAY)) <= close:
            break
        more = [drawn(kept, SEGMENTS, generator) for _ in range(len(support.segments) // SEGMENTS)]
        support = replace(support, segments=torch.cat([support.segments, *more]))
    return support


def measure_support(windows: Windows, seed: int = 0, count: int | None = None) -> Support | None:
    """Sample `count` segments of the data, by default as many as cover it, and measure other episodes by them.

    Of data with few windows, all segments are kept, as a door may have been passed but once; and a tenth of few
    episodes says little, so that each is measured by all others.
    None where chunks are shorter than a segment. A single episode has to measure itself.
    """
    if windows.horizon <= SEGMENT_SPAN:
        return None
    sizes = tuple(windows.space.sizes)
    generator = torch.Generator(windows.states.device).manual_seed(seed + 1)
    kept, held = windows.held_out(HELD_OUT, generator)
    support = Support(drawn(kept, count or SEGMENTS * len(sizes), generator), (), sizes if len(sizes) > 1 else ())
    others = held.space.places(held.sample(WINDOWS, generator))
    if count is None and not support.sizes:
        support = _denser(support, kept, others, generator)
    if support.sizes:
        far = [np.quantile(each.cpu().numpy(), UNIT) for each in support.strays_of_groups(others)]
        support = replace(support, units=tuple(max(float(each), LEAST_UNIT) for each in far))
    strays = support.stray(others).cpu().numpy()
    folds = [(kept, held)]
    if count is None and not support.sizes and small(windows):
        folds = windows.folds(FOLDS, generator)
        strays = np.concatenate([_strays(*fold, generator) for fold in folds])
        support = replace(support, segments=every(windows))
    least = LEAST_STRAY * length_of_most(others.diff(dim=1), 0.9999)
    if not support.sizes and np.quantile(strays, USUAL_STRAY) < least:
        strays = np.maximum(strays, least)
    passages = measure_passages(windows, folds, generator)
    return replace(support, strays=quantiles(strays), passages=passages)
