"""How good a finished plan is: the paper's overlap distance, reconstruction error, and two distances between positions.

Reconstruction error: add a little noise to the merged plan, denoise each chunk on its own, and measure the change. A
chunk that leaves the data, through a wall for example, changes most; so a plan's score is that of its worst chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merge, split
from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.sample import INITIAL
from compdiffuser.diffusion.conditions import Conditions, Denoise

Places = Callable[[Tensor], Tensor]
"""The positions of planned states, [..., D] -> [..., P], such as `Space.places`."""


def overlap_distance(chunks: Tensor, overlap: int) -> Tensor:
    """Mean distance between the two versions of each overlap, [..., K, H, D] -> [...]; 0 for a single chunk."""
    horizon = chunks.shape[-2]
    gap = chunks[..., :-1, horizon - overlap :, :] - chunks[..., 1:, :overlap, :]
    distance = gap.norm(dim=-1)
    return distance.mean(dim=(-1, -2)) if distance.shape[-2] else chunks.new_zeros(chunks.shape[:-3])


def _equal_lengths(chains: Chains) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Each K that occurs, with its chains [C'] and their rows [C'·K]."""
    by_row = chains.lengths.repeat_interleave(chains.lengths)
    for length in chains.lengths.unique().tolist():
        chosen = (chains.lengths == length).nonzero()[:, 0].to(chains.chain.device)
        yield length, chosen, (by_row == length).nonzero()[:, 0].to(chains.chain.device)


def overlap_distances(chunks: Tensor, chains: Chains, overlap: int) -> Tensor:
    """The overlap distance of every chain, [M, H, D] -> [C]."""
    out = chunks.new_zeros(len(chains.lengths))
    for length, chosen, rows in _equal_lengths(chains):
        out[chosen] = overlap_distance(chunks[rows].unflatten(0, (-1, length)), overlap)
    return out


def consistent(chunks: Tensor, chains: Chains, overlap: int, blending: str = "exponential") -> Tensor:
    """Chunks [M, H, D] cut from the plans merged with `blending`: both sides of every overlap agree."""
    out = chunks.clone()
    horizon = chunks.shape[1]
    for length, _, rows in _equal_lengths(chains):
        same = chunks[rows].unflatten(0, (-1, length))
        out[rows] = split(merge(same, overlap, blending), length, horizon, overlap).flatten(0, 1)
    return out


@torch.no_grad()
def reconstruction_errors(
    denoise: Denoise,
    chunks: Tensor,
    key: Tensor,
    overlap: int,
    probes: Sequence[float],
    usual: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
) -> Tensor:
    """Squared change over σ², averaged over a chunk's states and the probed levels: [M] for chunks [M, H, D].

    The denoiser is not conditioned on neighbours, start or goal: given both ends, it accepts a straight line through a
    wall and leaves it unchanged. `key` [M] determines the noise. With the `usual` error at each level, all levels have
    equal weight and a chunk of the data scores 1. Dimensions count by their `weights` [D].
    """
    rows, horizon, dim = chunks.shape
    sigma = torch.tensor(probes, device=chunks.device).repeat_interleave(rows)
    probe = torch.arange(len(probes), device=chunks.device).repeat_interleave(rows)
    noise = gaussian(key.repeat(len(probes)), INITIAL + 1 + probe, horizon, dim)
    clean = chunks.repeat(len(probes), 1, 1)
    estimate = denoise(clean + sigma[:, None, None] * noise, sigma, Conditions.nothing(clean, overlap))
    squares = (estimate - clean).square()
    if weights is not None:
        squares = squares * torch.tensor(weights, device=chunks.device)
    change = squares.mean(dim=(1, 2)) / sigma**2
    unit = torch.tensor(usual if usual is not None else [1.0] * len(probes), device=chunks.device)
    relative = (change.view(len(probes), rows) / unit[:, None]).unbind()
    return torch.stack(relative, dim=1).mean(dim=1)  # so that its order does not depend on the number of rows


def worst(values: Tensor, chains: Chains) -> Tensor:
    """The largest value [M] of each chain: [C]."""
    out = values.new_full((len(chains.lengths),), -torch.inf)
    return out.scatter_reduce(0, chains.chain, values, "amax")


def worst_chunk(values: Tensor, chains: Chains) -> list[int]:
    """Which chunk of each chain, counted from 0, has the largest value [M]."""
    own = values.cpu().numpy()
    return [int(own[chains.rows(chain)].argmax()) for chain in range(len(chains.lengths))]


def longest_step(chunks: Tensor, chains: Chains, places: Places) -> Tensor:
    """The longest distance between consecutive positions of each merged plan, [M, H, D] -> [C]."""
    where = places(chunks)
    return worst((where[:, 1:] - where[:, :-1]).norm(dim=-1).amax(dim=1), chains)


def endpoint_gap(chunks: Tensor, chains: Chains, places: Places, goal: bool = True) -> Tensor:
    """Distance of each plan's ends from its start and its goal, the larger of the two, [M, H, D] -> [C].

    Without `goal`, its end may lie anywhere.
    """
    missed = (places(chunks[:, 0]) - places(chains.start)).norm(dim=-1) * ~chains.has_left
    if goal:
        missed_goal = (places(chunks[:, -1]) - places(chains.goal)).norm(dim=-1) * ~chains.has_right
        missed = torch.maximum(missed, missed_goal)
    return worst(missed, chains)
