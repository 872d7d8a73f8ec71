"""Scales each state dimension to [−1, 1] by the smallest and largest value in the data, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import torch

from compdiffuser.types import Array, UserError

States = TypeVar("States", torch.Tensor, Array)


@dataclass(frozen=True)
class Normalizer:
    """Limits per dimension, as plain numbers. A dimension that never changes becomes 0 and comes back exactly."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high):
            raise UserError(f"low and high limits are equal in number, not {len(self.low)} and {len(self.high)}")
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
        return {"low": list(self.low), "high": list(self.high)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Normalizer:
        return cls(tuple(map(float, values["low"])), tuple(map(float, values["high"])))


def _kind(states: torch.Tensor | Array) -> tuple[torch.device | None, Any]:
    if isinstance(states, torch.Tensor):
        return states.device, states.dtype
    return None, np.result_type(states.dtype, np.float32)


@lru_cache(maxsize=64)
def _coefficients(normalizer: Normalizer, device: torch.device | None, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Low limit, gain, half of the range and shift, once per device: nothing is copied to it on later calls."""
    low, high = np.array(normalizer.low, np.float64), np.array(normalizer.high, np.float64)
    spread = (high - low) / 2
    constant = spread < 1e-36  # below this, 1/spread is no float32 number
    spread = np.where(constant, 0.0, spread)
    gain = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))
    arrays = (low, gain, spread, np.where(constant, 0.0, -1.0))
    if device is None:
        return tuple(array.astype(dtype) for array in arrays)  # type: ignore[return-value]
    return tuple(torch.as_tensor(array, dtype=dtype, device=device) for array in arrays)  # type: ignore[return-value]
