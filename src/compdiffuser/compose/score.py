"""How good a finished plan is, by two measures: the paper's overlap distance, and reconstruction error.

Reconstruction error: noise the merged plan a little, denoise it given its neighbours, and see how far each chunk is
pulled. A chunk that leaves the data, through a wall for example, is pulled far; so the worst chunk tells.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merge, split
from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.sample import INITIAL
from compdiffuser.diffusion.conditions import Conditions, Denoise

PROBES = (0.2, 0.2, 0.4, 0.4, 0.8, 0.8)
"""Noise levels at which plans are probed, each with two draws of noise."""


def overlap_distance(chunks: Tensor, overlap: int) -> Tensor:
    """Mean distance between the two versions of each overlap, [..., K, H, D] -> [...]; 0 for a single chunk."""
    horizon = chunks.shape[-2]
    gap = chunks[..., :-1, horizon - overlap :, :] - chunks[..., 1:, :overlap, :]
    distance = gap.norm(dim=-1)
    return distance.mean(dim=(-1, -2)) if distance.shape[-2] else chunks.new_zeros(chunks.shape[:-3])


def consistent(chunks: Tensor, chains: Chains, overlap: int) -> Tensor:
    """Chunks [M, H, D] of the merged plans: both sides of every overlap agree."""
    out = chunks.clone()
    horizon = chunks.shape[1]
    for length in chains.lengths.unique().tolist():
        rows = (chains.lengths[chains.chain.cpu()] == length).nonzero()[:, 0].to(chunks.device)
        same = chunks[rows].view(-1, length, horizon, chunks.shape[-1])
        out[rows] = split(merge(same, overlap), length, horizon, overlap).flatten(0, 1)
    return out


@torch.no_grad()
def reconstruction_errors(
    denoise: Denoise,
    chunks: Tensor,
    chains: Chains,
    overlap: int,
    probes: Sequence[float] = PROBES,
    usual: Sequence[float] | None = None,
) -> Tensor:
    """Squared change over σ², averaged over a chunk's states and the probed levels: [M] for chunks [M, H, D].

    `chunks` are of merged plans (see `consistent`), so a neighbour is a noisy copy of the chunk's own overlap. With the
    `usual` error at each level, all levels count alike and 1 is what a chunk of the data scores.
    """
    rows, horizon, dim = chunks.shape
    sigma = torch.tensor(probes, device=chunks.device).repeat_interleave(rows)
    clean = chunks.repeat(len(probes), 1, 1)
    key = chains.key.repeat(len(probes))

    def noised(stream: int) -> Tensor:
        step = INITIAL + 1 + 3 * torch.arange(len(probes), device=chunks.device).repeat_interleave(rows) + stream
        return clean + sigma[:, None, None] * gaussian(key, step, horizon, dim)

    has_left, has_right = (mask.to(chunks.dtype).repeat(len(probes)) for mask in (chains.has_left, chains.has_right))
    conditions = Conditions(
        left=noised(1)[:, :overlap],
        left_sigma=sigma,
        right=noised(2)[:, horizon - overlap :],
        right_sigma=sigma,
        start=chains.start.repeat(len(probes), 1),
        goal=chains.goal.repeat(len(probes), 1),
        has_left=has_left,
        has_right=has_right,
        has_start=1 - has_left,
        has_goal=1 - has_right,
    )
    change = (denoise(noised(0), sigma, conditions) - clean).square().mean(dim=(1, 2)) / sigma**2
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
