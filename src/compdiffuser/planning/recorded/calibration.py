"""What is usual: reconstruction errors and reach of chunks of the training data, kept with the checkpoint.

A plan is certified when its worst chunk is pulled no further than chunks of the data are; the errors of training
windows are the yardstick. The reach tells how few chunks could possibly bridge a distance. Errors are of whole states;
reach and steps are of positions alone, of each group by itself where there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from compdiffuser.checks import brief, finite, typed
from compdiffuser.compose.score import reconstruction_errors
from compdiffuser.data.windows import Windows
from compdiffuser.diffusion.conditions import Denoise
from compdiffuser.planning.recorded.moves import Moves, alone, length_of_most, measure_moves
from compdiffuser.types import Array, UserError

# Dense in the tail, where certificates are decided.
LEVELS = tuple(np.concatenate([np.linspace(0, 0.98, 50), 1 - np.geomspace(0.02, 0.0005, 15)[1:], [1.0]]).tolist())
WINDOWS = 3072
# Noise levels at which plans are probed, as shares of a chunk's reach; each with two draws of noise.
PROBES = (0.25, 0.25, 0.5, 0.5, 0.75, 0.75)
MOST_PROBES = 64
MARGIN = 0.1
"""How far outside the data's range, in half ranges, a start, a goal or a waypoint may lie."""


@dataclass(frozen=True)
class Calibration:
    """Quantiles of one chunk's reconstruction error on training windows, and how far chunks go."""

    probes: tuple[float, ...]
    """Noise levels at which plans are probed."""
    usual: tuple[float, ...]
    """Mean error at each of them."""
    errors: tuple[float, ...]
    """Quantiles, at `LEVELS`, of the errors in units of the usual one."""
    reach: float
    """Distance between the ends of a chunk, normalized, that 99.9% of the windows stay below."""
    advance: float
    """The same over H − O states, what one more chunk adds."""
    step: float
    """Distance between neighbouring states, normalized, that 99.99% of the data's stay below."""
    groups: tuple[Moves, ...] = ()
    """How each position group moves, where there are several; the distances above are then those of the largest."""
    alone: tuple[float, ...] = ()
    """Quantiles, at `LEVELS`, of how far anything but the agent gets in a chunk while the agent is not near."""
    weights: tuple[float, ...] = ()
    """What each planned dimension counts in an error; none: all count alike."""

    def __post_init__(self) -> None:
        typed(self)
        finite(self, "reach", "advance", "step", least=0)
        if not 1 <= len(self.probes) == len(self.usual) <= MOST_PROBES:
            counts = f"{len(self.probes)} probes with {len(self.usual)} errors"
            raise UserError(f"plans are probed at 1 to {MOST_PROBES} levels, each with its usual error, not {counts}")
        for name in ("errors", "alone") if self.groups else ("errors",):
            check_quantiles(name, getattr(self, name))

    @cached_property
    def moves(self) -> tuple[Moves, ...]:
        """How each position group moves."""
        return self.groups or (Moves(self.reach, self.advance, self.longest_step(), self.widest_gap()),)

    def threshold(self, quantile: float) -> float:
        """The error that this share of the data's chunks stays below."""
        return value_at(quantile, self.errors)

    def longest_step(self) -> float:
        """Longest step of a certified plan. Errors are measured by the model itself; this one holds for any model."""
        return 3.0 * self.step

    def widest_gap(self) -> float:
        """How far a certified plan may begin from its start or end from its goal.

        A chain with too few chunks often gives up its goal and follows the data perfectly; errors cannot tell.
        """
        return 3.0 * self.step

    def confidence(self, error: float, chunks: int) -> float:
        """Probability that the worst of K chunks of the data is pulled at least this far."""
        return 1.0 - float(np.interp(error, self.errors, LEVELS)) ** chunks

    def fewest_chunks(self, *distances: float) -> int:
        """A lower bound on K for the normalized distances that each group has to go."""
        return max(moves.fewest_chunks(far) for moves, far in zip(self.moves, distances, strict=True))

    def most_alone(self, quantile: float) -> float:
        """How far something may get alone in a chunk: as this share of the data's does, and a gap at least."""
        return max(value_at(quantile, self.alone), *(moves.gap for moves in self.groups))

    def to_dict(self) -> dict[str, Any]:
        given = {"groups": self.groups, "alone": self.groups, "weights": self.weights}
        return {name: value for name, value in asdict(self).items() if given.get(name, True)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Calibration:
        tuples = {name: tuple(plain.get(name, ())) for name in ("probes", "usual", "errors", "alone", "weights")}
        groups = tuple(Moves(**moves) for moves in plain.get("groups", ()))
        return cls(**tuples, groups=groups, reach=plain["reach"], advance=plain["advance"], step=plain["step"])


def quantiles(values: Array) -> tuple[float, ...]:
    """What was measured, as quantiles at `LEVELS`."""
    return tuple(float(q) for q in np.quantile(values, LEVELS))


def value_at(share: float, values: Sequence[float]) -> float:
    """What this share of what was measured stays below, from its quantiles at `LEVELS`."""
    return float(np.interp(share, LEVELS, values))


def check_quantiles(name: str, values: tuple[float, ...]) -> None:
    """Raises UserError where values are not quantiles at `LEVELS`."""
    if len(values) != len(LEVELS) or not (np.diff(values) >= 0).all():
        raise UserError(f"{name} must be {len(LEVELS)} quantiles in rising order, not {brief(list(values))}")


def calibrate(
    denoise: Denoise, windows: Windows, overlap: int, weights: Sequence[float] | None = None, seed: int = 0
) -> Calibration:
    """Measure on `WINDOWS` windows drawn from the data; dimensions count by their `weights` [D]."""
    generator = torch.Generator(windows.states.device).manual_seed(seed)
    chunks = windows.sample(WINDOWS, generator)
    key = torch.arange(len(chunks), device=chunks.device)
    paths = list(windows.space.groups(chunks).values())

    def far(begin: slice | int, end: slice | int, quantile: float) -> float:
        """The distance that this share of the windows stays below, of the group that goes furthest."""
        return max(length_of_most(path[:, end] - path[:, begin], quantile) for path in paths)

    reach = far(0, -1, 0.999)
    advance = far(0, chunks.shape[1] - overlap - 1, 0.999)
    step = far(slice(None, -1), slice(1, None), 0.9999)
    moves = measure_moves(windows, chunks, overlap)
    alone_far = quantiles(alone(paths, moves).cpu().numpy()) if moves else ()
    probes = tuple(share * reach for share in PROBES)
    usual = tuple(
        float(reconstruction_errors(denoise, chunks, key, overlap, [probe], weights=weights).mean()) for probe in probes
    )
    errors = reconstruction_errors(denoise, chunks, key, overlap, probes, usual, weights).cpu().numpy()
    return Calibration(probes, usual, quantiles(errors), reach, advance, step, moves, alone_far, tuple(weights or ()))
