"""How good a finished plan is, by two measures: the paper's overlap distance, and reconstruction error.

Reconstruction error: noise the merged plan a little, denoise each chunk on its own, and see how far it is pulled. A
chunk that leaves the data, through a wall for example, is pulled far; so the worst chunk tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merge, split
from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.sample import INITIAL
from compdiffuser.diffusion.conditions import Conditions, Denoise


def overlap_distance(chunks: Tensor, overlap: int) -> Tensor:
    """Mean distance between the two versions of each overlap, [..., K, H, D] -> [...]; 0 for a single chunk."""
    horizon = chunks.shape[-2]
    gap = chunks[..., :-1, horizon - overlap :, :] - chunks[..., 1:, :overlap, :]
    distance = gap.norm(dim=-1)
    return distance.mean(dim=(-1, -2)) if distance.shape[-2] else chunks.new_zeros(chunks.shape[:-3])


def _equal_lengths(chains: Chains) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Each K that occurs, with its chains [C'] and their rows [C'·K]."""
    by_row = chains.lengths[chains.chain.cpu()]
    for length in chains.lengths.unique().tolist():
        chosen = (chains.lengths == length).nonzero()[:, 0].to(chains.chain.device)
        yield length, chosen, (by_row == length).nonzero()[:, 0].to(chains.chain.device)


def overlap_distances(chunks: Tensor, chains: Chains, overlap: int) -> Tensor:
    """The overlap distance of every chain, [M, H, D] -> [C]."""
    out = chunks.new_zeros(len(chains.lengths))
    for length, chosen, rows in _equal_lengths(chains):
        out[chosen] = overlap_distance(chunks[rows].unflatten(0, (-1, length)), overlap)
    return out


def consistent(chunks: Tensor, chains: Chains, overlap: int) -> Tensor:
    """Chunks [M, H, D] of the merged plans: both sides of every overlap agree."""
    out = chunks.clone()
    horizon = chunks.shape[1]
    for length, _, rows in _equal_lengths(chains):
        same = chunks[rows].unflatten(0, (-1, length))
        out[rows] = split(merge(same, overlap), length, horizon, overlap).flatten(0, 1)
    return out


@torch.no_grad()
def reconstruction_errors(
    denoise: Denoise,
    chunks: Tensor,
    key: Tensor,
    overlap: int,
    probes: Sequence[float],
    usual: Sequence[float] | None = None,
) -> Tensor:
    """Squared change over σ², averaged over a chunk's states and the probed levels: [M] for chunks [M, H, D].

    The denoiser is told nothing of neighbours, start or goal: told where to go, it finds a straight line through a wall
    plausible, and would pull it nowhere. `key` [M] decides the noise. With the `usual` error at each level, all levels
    count alike and 1 is what a chunk of the data scores.
    """
    rows, horizon, dim = chunks.shape
    sigma = torch.tensor(probes, device=chunks.device).repeat_interleave(rows)
    probe = torch.arange(len(probes), device=chunks.device).repeat_interleave(rows)
    noise = gaussian(key.repeat(len(probes)), INITIAL + 1 + probe, horizon, dim)
    clean = chunks.repeat(len(probes), 1, 1)
    estimate = denoise(clean + sigma[:, None, None] * noise, sigma, Conditions.nothing(clean, overlap))
    change = (estimate - clean).square().mean(dim=(1, 2)) / sigma**2
    unit = torch.tensor(usual if usual is not None else [1.0] * len(probes), device=chunks.device)
    return (change.view(len(probes), rows) / unit[:, None]).mean(dim=0)


def worst(values: Tensor, chains: Chains) -> Tensor:
    """The largest value [M] of each chain: [C]."""
    out = values.new_full((len(chains.lengths),), -torch.inf)
    return out.scatter_reduce(0, chains.chain, values, "amax")


def longest_step(chunks: Tensor, chains: Chains) -> Tensor:
    """The longest step between neighbouring states of each merged plan, [M, H, D] -> [C]."""
    return worst((chunks[:, 1:] - chunks[:, :-1]).norm(dim=-1).amax(dim=1), chains)


def endpoint_gap(chunks: Tensor, chains: Chains) -> Tensor:
    """How far each plan begins from its start or ends from its goal, whichever is further, [M, H, D] -> [C]."""
    missed_start = (chunks[:, 0] - chains.start).norm(dim=-1) * ~chains.has_left
    missed_goal = (chunks[:, -1] - chains.goal).norm(dim=-1) * ~chains.has_right
    return worst(torch.maximum(missed_start, missed_goal), chains)
