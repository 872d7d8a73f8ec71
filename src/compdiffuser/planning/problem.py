"""What a planner is asked: starts and goals that its data knows, and how many chunks could bridge them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from torch import Tensor

from compdiffuser.checks import brief
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.domains.space import Group, Space
from compdiffuser.planning.recorded.calibration import MARGIN, Calibration
from compdiffuser.planning.recorded.moves import split_groups
from compdiffuser.presets import MOST_CHUNKS
from compdiffuser.types import Array, UserError

Chunks = int | Literal["auto"] | Sequence[int]
"""Automatic, one K for all problems, or one K for each."""
MOST_CANDIDATES = 65_536  # of a problem
CHOICES = 8  # K's that are tried on a known way


def checked(states: Any, what: str, space: Space, normalizer: Normalizer, enough: Sequence[Group] = ()) -> Array:
    """States [P, D] as given. Raises UserError for the first that cannot be planned.

    The sentence for a wrong number of dimensions also names the groups that would be `enough`.
    """
    dim = len(space.dims)
    array = real(states, f"a {what} is {dim} numbers")
    if array.ndim != 2 or array.shape[1] != dim:
        given = f"an array of {array.shape[1:]} was given"
        names = [space.names[column] for group in enough for column in group.columns]
        fewer = f" or {len(names)} ({', '.join(names)})" if 0 < len(enough) < len(space.positions) else ""
        raise UserError(f"a {what} has {dim} dimensions here ({', '.join(space.names)}){fewer}, but {given}")
    for state in array:
        if not np.isfinite(state).all():
            raise UserError(f"the {what} {state.tolist()} is not finite")
        if not within(state, space, normalizer):
            ranges = [(normalizer.low[column], normalizer.high[column]) for column in space.columns]
            limits = " × ".join(f"[{low:.2f}, {high:.2f}]" for low, high in ranges)
            raise UserError(f"the {what} {state.round(3).tolist()} lies outside the data, which covers {limits}")
    return array


def within(states: Array, space: Space, normalizer: Normalizer) -> Array:
    """Which states [..., D] lie near enough to the data: [...].

    A posture may be out of the ordinary for a moment; a place that nobody has been near cannot be planned.
    """
    apart = np.abs(space.places(normalizer.normalize(states)))
    return np.all(apart <= space.places(normalizer.limits) + MARGIN, axis=-1)


def real(states: Any, expected: str) -> Array:
    """States as float32. Raises UserError, which begins with `expected`, for what is not made of real numbers."""
    try:
        array = np.asarray(states)
        if array.dtype.kind in "iufO":  # complex numbers would lose a part, and texts and dates become numbers
            with np.errstate(over="ignore"):  # what is too large is not finite, and told as such
                return array.astype(np.float32)
    except (TypeError, ValueError):
        pass
    raise UserError(f"{expected}, not {' '.join(repr(states).split())}")


def check_pairs(starts: Array, goals: Array) -> None:
    """Raises UserError where there are not as many goals as starts."""
    if len(starts) != len(goals):
        raise UserError(f"{len(starts)} starts were given with {len(goals)} goals")


def one_each(
    values: int | Sequence[int], count: int, what: str, least: int | None = None, most: int | None = None
) -> list[int]:  # fmt: skip
    """One number for each of `count` problems, from one for all or a sequence. Raises UserError for anything else."""
    several = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
    given: list[Any] = [*values] if several else [values] * count  # type: ignore[misc]
    for value in given:
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise UserError(f"{what} must be whole numbers, not {value!r}")
        if least is not None and value < least:
            raise UserError(f"{what} must be at least {least}, not {value}")
        if most is not None and int(value) > most:
            raise UserError(f"{what} must be at most {most}, not {brief(value)}")
        if not -(2**63) <= int(value) < 2**63:
            raise UserError(f"{what} must be whole numbers of 64 bits, not {value}")
    if len(given) != count:
        raise UserError(f"{len(given)} {what} were given for {count} problems")
    return [int(value) for value in given]


def distances(starts: Tensor, goals: Tensor, space: Space, usual: Calibration) -> list[list[float]]:
    """How far each group has to go at least, normalized, from positions [P, n] to others: a list for each problem.

    The agent goes to each thing that only it can move, and along with it.
    """
    if not usual.groups:
        return [[float(far)] for far in np.linalg.norm((starts - goals).numpy(), axis=1)]
    sizes = space.sizes
    found = []
    for start, goal in zip(starts, goals, strict=True):
        here, there = split_groups(start, sizes), split_groups(goal, sizes)
        lines = [float((a - b).norm()) for a, b in zip(here, there, strict=True)]
        place, walked = here[0], 0.0
        for number, moves in enumerate(usual.groups):
            if moves.carried and lines[number] > moves.gap:
                shared = min(sizes[0], sizes[number])
                walked += max(float((here[number] - place)[:shared].norm()) - moves.near, 0.0) + lines[number]
                place = there[number]
        found.append([max(walked, lines[0]) if place is here[0] else walked, *lines[1:]])
    return found


def chunk_choices(
    n_chunks: Chunks,
    lines: Sequence[Sequence[float]],
    ways: Sequence[Sequence[float] | None],
    usual: Calibration,
    most: int,
) -> list[list[int]]:
    """The K up to `most` that each problem tries, by how far its groups go in straight `lines` and on known `ways`."""
    chunks = each_chunks(n_chunks, len(lines))
    if chunks == "auto":
        return [automatic(line, way, usual, most) for line, way in zip(lines, ways, strict=True)]
    return [[k] for k in chunks]


def each_chunks(n_chunks: Chunks, count: int) -> Literal["auto"] | list[int]:
    """One K for each of `count` problems, or "auto". Raises UserError for anything else."""
    if isinstance(n_chunks, str):
        if n_chunks != "auto":
            raise UserError(f"chunks must be 'auto' or a number, not '{n_chunks}'")
        return "auto"
    return one_each(n_chunks, count, "numbers of chunks", least=1, most=MOST_CHUNKS)


def automatic(lines: Sequence[float], way: Sequence[float] | None, usual: Calibration, most: int) -> list[int]:
    """Every K from the fewest chunks that could bridge the distance; on a known way, some of them up to thrice it.

    Chunks seldom go half as far as the furthest do, and those of a longer chain only loiter.
    """
    least = min(usual.fewest_chunks(*(lines if way is None else way)), most)
    if way is None:
        return list(range(least, most + 1))
    return sorted({round(k) for k in np.linspace(least, min(3 * least, most), CHOICES)})
