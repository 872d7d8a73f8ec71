"""What is usual: reconstruction errors and reach of chunks of the training data, kept with the checkpoint.

A plan is certified when its worst chunk is pulled no further than chunks of the data are; the errors of training
windows are the yardstick. The reach tells how few chunks could possibly bridge a distance.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.score import PROBES, reconstruction_errors
from compdiffuser.data.windows import Windows
from compdiffuser.diffusion.conditions import Denoise

# Dense in the tail, where certificates are decided.
LEVELS = tuple(np.concatenate([np.linspace(0, 0.98, 50), 1 - np.geomspace(0.02, 0.0005, 15)[1:], [1.0]]).tolist())
WINDOWS = 3072


@dataclass(frozen=True)
class Calibration:
    """Quantiles of one chunk's reconstruction error on training windows, and how far chunks go."""

    usual: tuple[float, ...]
    """Mean error at each of `PROBES`."""
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
        return 1.5 * self.step

    def confidence(self, error: float, chunks: int) -> float:
        """Probability that the worst of K chunks of the data is pulled at least this far."""
        below = float(np.interp(error, self.errors, LEVELS))
        return 1.0 - below**chunks

    def fewest_chunks(self, distance: float) -> int:
        """A lower bound on K for a normalized distance."""
        return 1 + int(np.ceil(max(distance - self.reach, 0.0) / max(self.advance, 1e-9)))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Calibration:
        return cls(tuple(plain["usual"]), tuple(plain["errors"]), plain["reach"], plain["advance"], plain["step"])


def calibrate(denoise: Denoise, windows: Windows, overlap: int, seed: int = 0) -> Calibration:
    """Measure on `WINDOWS` windows, each in the role of a middle, first or last chunk by turns."""
    generator = torch.Generator(windows.states.device).manual_seed(seed)
    chunks = windows.sample(WINDOWS, generator)
    chains = _roles(chunks)
    by_probe = torch.stack([reconstruction_errors(denoise, chunks, chains, overlap, [probe]) for probe in PROBES])
    usual = by_probe.mean(dim=1)
    errors = (by_probe / usual[:, None]).mean(dim=0).cpu().numpy()
    horizon = chunks.shape[1]

    def far(ends: Tensor, quantile: float) -> float:
        return float(np.quantile(ends.norm(dim=-1).cpu().numpy(), quantile))

    reach = far(chunks[:, -1] - chunks[:, 0], 0.999)
    advance = far(chunks[:, horizon - overlap - 1] - chunks[:, 0], 0.999)
    step = far(chunks[:, 1:] - chunks[:, :-1], 0.9999)
    quantiles = tuple(float(q) for q in np.quantile(errors, LEVELS))
    return Calibration(tuple(usual.tolist()), quantiles, reach, advance, step)


def _roles(chunks: Tensor) -> Chains:
    """Windows as if they were the first, second and third chunk of chains of three."""
    count = len(chunks)
    lengths = torch.full((-(-count // 3),), 3)
    empty = chunks[: len(lengths), 0]
    chains = Chains.build(empty, empty, lengths, torch.arange(len(lengths)))
    return Chains(
        lengths, chains.first, chains.chain[:count], chains.position[:count],
        chunks[:, 0], chunks[:, -1], chains.key[:count],
    )  # fmt: skip
