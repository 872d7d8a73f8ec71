"""Scales each state dimension to [−1, 1] by the smallest and largest value in the data, and back.

In a world that is wide for its chunks, a unit is less than half of the range, and states lie in [−span, span].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import torch

from compdiffuser.checks import brief, is_finite
from compdiffuser.types import Array, UserError

States = TypeVar("States", torch.Tensor, Array)


@dataclass(frozen=True)
class Normalizer:
    """Limits per dimension, as plain numbers. A dimension that never changes becomes 0 and comes back exactly."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    span: tuple[float, ...] = ()
    """What the high limits become; empty: 1."""

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high):
            raise UserError(f"low and high limits are equal in number, not {len(self.low)} and {len(self.high)}")
        if len(self.span) not in (0, len(self.low)) or not all(is_finite(one) and one >= 1 for one in self.span):
            raise UserError(f"a span is at least 1 for each of {len(self.low)} dimensions, not {brief(self.span)}")
        for dimension, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if not (np.isfinite([low, high]).all() and low <= high):
                raise UserError(f"the limits of dimension {dimension} are finite and in order, not {low} and {high}")

    @classmethod
    def from_data(cls, states: torch.Tensor | Array) -> Normalizer:
        """Limits of states [S, D]."""
        array = np.asarray(states.cpu() if isinstance(states, torch.Tensor) else states)
        if array.ndim != 2 or len(array) == 0:
            raise UserError(f"a normalizer needs states of shape [S, D] with S of at least 1, not {list(array.shape)}")
        return cls(tuple(map(float, array.min(axis=0))), tuple(map(float, array.max(axis=0))))

    @property
    def limits(self) -> Array:
        """What the high limits become. [D]"""
        return np.array(self.span or (1.0,) * len(self.low))

    @property
    def units(self) -> Array:
        """What one normalized unit is of each dimension, in its own units. [D]"""
        return (np.array(self.high) - np.array(self.low)) / 2 / self.limits

    def part(self, columns: Sequence[int]) -> Normalizer:
        """The same for some of the dimensions."""
        return _part(self, tuple(columns))

    def normalize(self, states: States) -> States:
        """States [..., D] in metres, say, to [−1, 1]."""
        low, gain, _, shift = _coefficients(self, *_kind(states))
        return (states - low) * gain + shift

    def denormalize(self, states: States) -> States:
        """States [..., D] in [−1, 1] back to their own units."""
        low, _, spread, shift = _coefficients(self, *_kind(states))
        return (states - shift) * spread + low

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        span = {"span": list(self.span)} if self.span else {}
        return {"low": list(self.low), "high": list(self.high), **span}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Normalizer:
        values = {"span": (), **values}
        return cls(*(tuple(map(float, values[name])) for name in ("low", "high", "span")))


def _kind(states: torch.Tensor | Array) -> tuple[torch.device | None, Any]:
    if isinstance(states, torch.Tensor):
        return states.device, states.dtype
    return None, np.result_type(states.dtype, np.float32)


@lru_cache(maxsize=64)
def _part(normalizer: Normalizer, columns: tuple[int, ...]) -> Normalizer:
    given = (normalizer.low, normalizer.high, normalizer.span)
    return Normalizer(*(tuple(each[c] for c in columns if each) for each in given))


@lru_cache(maxsize=64)
def _coefficients(normalizer: Normalizer, device: torch.device | None, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Low limit, gain, half of the range and shift, once per device: nothing is copied to it on later calls."""
    low = np.array(normalizer.low, np.float64)
    spread = normalizer.units
    constant = spread < 1e-36  # below this, 1/spread is no float32 number
    spread = np.where(constant, 0.0, spread)
    gain = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))
    arrays = (low, gain, spread, np.where(constant, 0.0, -normalizer.limits))
    if device is None:
        return tuple(array.astype(dtype) for array in arrays)  # type: ignore[return-value]
    return tuple(torch.as_tensor(array, dtype=dtype, device=device) for array in arrays)  # type: ignore[return-value]
