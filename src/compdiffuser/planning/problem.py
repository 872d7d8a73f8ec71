"""What a planner is asked: starts and goals that its data knows, and how many chunks could bridge them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from torch import Tensor

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.domains.space import Space
from compdiffuser.planning.calibration import Calibration
from compdiffuser.planning.roadmap import length
from compdiffuser.types import Array, UserError

Chunks = int | Literal["auto"] | Sequence[int]
"""Automatic, one K for all problems, or one K for each."""
CHOICES = 8  # K's that are tried on a known way
MARGIN = 0.1  # how far outside the data's range, in half ranges, a start or goal may lie


def checked(states: Any, what: str, space: Space, normalizer: Normalizer) -> Array:
    """States [P, D] as given. Raises UserError for the first that cannot be planned."""
    dim = len(space.dims)
    try:
        array = np.asarray(states, dtype=np.float32)
    except (TypeError, ValueError):
        raise UserError(f"a {what} is {dim} numbers, not {states!r}") from None
    if array.ndim != 2 or array.shape[1] != dim:
        given = f"an array of {array.shape[1:]} was given"
        raise UserError(f"a {what} has {dim} dimensions here ({', '.join(space.names)}), but {given}")
    for state in array:
        if not np.isfinite(state).all():
            raise UserError(f"the {what} {state.tolist()} is not finite")
        # A posture may be out of the ordinary for a moment; a place that nobody has been near cannot be planned.
        if (np.abs(space.places(normalizer.normalize(state))) > 1 + MARGIN).any():
            ranges = [(normalizer.low[column], normalizer.high[column]) for column in space.columns]
            limits = " × ".join(f"[{low:.2f}, {high:.2f}]" for low, high in ranges)
            raise UserError(f"the {what} {state.round(3).tolist()} lies outside the data, which covers {limits}")
    return array


def one_each(values: int | Sequence[int], count: int, what: str, least: int | None = None) -> list[int]:
    """One number for each of `count` problems, from one for all or a sequence. Raises UserError for anything else."""
    given = [values] * count if isinstance(values, int) else list(values)
    for value in given:
        if isinstance(value, bool) or int(value) != value or (least is not None and value < least):
            whole = "whole numbers" if least is None else f"at least {least}"
            raise UserError(f"{what} must be {whole}, not {value}")
    if len(given) != count:
        raise UserError(f"{len(given)} {what} were given for {count} problems")
    return [int(value) for value in given]


def chunk_choices(
    n_chunks: Chunks, lines: Array, ways: Sequence[Tensor | None], reach: Calibration, most: int
) -> list[list[int]]:
    """The K that each problem tries, by the straight `lines` [P] from start to goal, their `ways`, and the `most` K."""
    if n_chunks == "auto":
        return [automatic(float(line), way, reach, most) for line, way in zip(lines, ways, strict=True)]
    if isinstance(n_chunks, str):
        raise UserError(f"chunks must be 'auto' or a number, not '{n_chunks}'")
    return [[k] for k in one_each(n_chunks, len(lines), "numbers of chunks", least=1)]


def automatic(line: float, way: Tensor | None, reach: Calibration, most: int) -> list[int]:
    """Every K from the fewest chunks that could bridge the distance; on a known way, some of them up to thrice it.

    Chunks seldom go half as far as the furthest do, and those of a longer chain only loiter.
    """
    least = min(reach.fewest_chunks(line if way is None else length(way)), most)
    if way is None:
        return list(range(least, most + 1))
    return sorted({round(k) for k in np.linspace(least, min(3 * least, most), CHOICES)})
