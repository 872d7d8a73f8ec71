"""Overlaps averaged at every step, the coupling of Generative Skill Chaining (Mishra et al. 2023).

Chunks are not conditioned on their neighbours. Instead both chunks of an overlap estimate its clean states, the mean of
the two estimates counts, and both chunks carry the same noise there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.steps import Estimate


class Averaged:
    """An estimate whose overlaps are averaged with each neighbour's latest estimate, where there is one yet.

    In an order where all rows move together, that is the neighbour's estimate of the same round.
    """

    def __init__(self, estimate: Estimate, chains: Chains, overlap: int) -> None:
        self.estimate = estimate
        self.chains = chains
        self.overlap = overlap
        self.latest: Tensor | None = None
        """Estimates before averaging; of the rows that are `known`. [M, H, D]"""
        self.known = torch.zeros_like(chains.has_left)
        """[M]"""

    def __call__(self, x: Tensor, level: Tensor, rows: Tensor) -> Tensor:
        clean = self.estimate(x, level, rows)
        latest = self.latest = torch.zeros_like(x) if self.latest is None else self.latest
        latest[rows] = clean
        self.known.index_fill_(0, rows, True)
        chains, overlap, late = self.chains, self.overlap, x.shape[1] - self.overlap
        out = clean.clone()
        for mine, theirs, neighbour, present in (
            (slice(late, None), slice(0, overlap), chains.right[rows], chains.has_right[rows]),
            (slice(0, overlap), slice(late, None), chains.left[rows], chains.has_left[rows]),
        ):
            both = (present & self.known[neighbour])[:, None, None]
            out[:, mine] = torch.where(both, (clean[:, mine] + latest[neighbour, theirs]) / 2, clean[:, mine])
        return out


def tied(noise: Tensor, left: Tensor, has_left: Tensor, overlap: int) -> Tensor:
    """Noise [m, H, D] whose first O states are the last O of the left neighbour's noise [m, H, D], where `has_left`."""
    shared = torch.where(has_left[:, None, None], left[:, left.shape[1] - overlap :], noise[:, :overlap])
    return torch.cat([shared, noise[:, overlap:]], dim=1)
