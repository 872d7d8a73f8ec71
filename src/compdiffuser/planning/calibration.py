"""What is usual: reconstruction errors and reach of chunks of the training data, kept with the checkpoint.

A plan is certified when its worst chunk is pulled no further than chunks of the data are; the errors of training
windows are the yardstick. The reach tells how few chunks could possibly bridge a distance. Errors are of whole states;
reach and steps are of positions alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.score import reconstruction_errors
from compdiffuser.data.windows import Windows
from compdiffuser.diffusion.conditions import Denoise

# Dense in the tail, where certificates are decided.
LEVELS = tuple(np.concatenate([np.linspace(0, 0.98, 50), 1 - np.geomspace(0.02, 0.0005, 15)[1:], [1.0]]).tolist())
WINDOWS = 3072
# Noise levels at which plans are probed, as shares of a chunk's reach; each with two draws of noise.
PROBES = (0.25, 0.25, 0.5, 0.5, 0.75, 0.75)


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

    def threshold(self, quantile: float) -> float:
        """The error that this share of the data's chunks stays below."""
        return float(np.interp(quantile, LEVELS, self.errors))

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

    def fewest_chunks(self, distance: float) -> int:
        """A lower bound on K for a normalized distance."""
        return 1 + int(np.ceil(max(distance - self.reach, 0.0) / max(self.advance, 1e-9)))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Calibration:
        tuples = {name: tuple(plain[name]) for name in ("probes", "usual", "errors")}
        return cls(**tuples, reach=plain["reach"], advance=plain["advance"], step=plain["step"])


def calibrate(denoise: Denoise, windows: Windows, overlap: int, seed: int = 0) -> Calibration:
    """Measure on `WINDOWS` windows drawn from the data."""
    generator = torch.Generator(windows.states.device).manual_seed(seed)
    chunks = windows.sample(WINDOWS, generator)
    key = torch.arange(len(chunks), device=chunks.device)
    places = windows.space.places(chunks)

    def far(apart: Tensor, quantile: float) -> float:
        return float(np.quantile(apart.norm(dim=-1).cpu().numpy(), quantile))

    reach = far(places[:, -1] - places[:, 0], 0.999)
    advance = far(places[:, places.shape[1] - overlap - 1] - places[:, 0], 0.999)
    step = far(places[:, 1:] - places[:, :-1], 0.9999)
    probes = tuple(share * reach for share in PROBES)
    usual = tuple(float(reconstruction_errors(denoise, chunks, key, overlap, [probe]).mean()) for probe in probes)
    errors = reconstruction_errors(denoise, chunks, key, overlap, probes, usual).cpu().numpy()
    quantiles = tuple(float(q) for q in np.quantile(errors, LEVELS))
    return Calibration(probes, usual, quantiles, reach, advance, step)
