"""Joining recorded episodes where they pass through the same place, for learners that cannot stitch by themselves.

Ghugare et al., Closing the Gap between TD Learning and Supervised Learning (2024): k-means divides the recorded states
into clusters. From any state one may go on as another episode did that came through the same cluster, so its later
states are goals as well. Fitting synchronizes with the CPU; joining, a handful of tensor operations, does not.

Letters: N recorded states · C clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from compdiffuser.types import UserError

CHUNK = 262_144
"""Points whose distances to all centres are held in memory at once."""
SAMPLE = 50_000
"""Points among which centres are sought, before all points move them to their places."""
SEARCH, POLISH = 60, 4
"""Most rounds on the sample, and rounds on all points."""
STILL = 1e-3
"""The search ends when no centre moves further than this, in standard deviations of the points."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Recorded states by cluster, ready to be drawn from."""

    labels: Tensor
    """[N] the cluster of each row."""
    members: Tensor
    """[N] all rows, cluster after cluster."""
    begins: Tensor
    """[C] where each cluster's rows begin among the members."""
    counts: Tensor
    """[C] rows in each cluster."""

    @classmethod
    def from_labels(cls, labels: Tensor, clusters: int) -> Clusters:
        counts = torch.bincount(labels, minlength=clusters)
        return cls(labels, torch.argsort(labels, stable=True), counts.cumsum(0) - counts, counts)

    @classmethod
    def fit(cls, points: Tensor, clusters: int = 40, seed: int = 0) -> Clusters:
        """k-means of points [N, D], on their device."""
        return cls.from_labels(nearest(points, kmeans(points, clusters, seed)), clusters)

    def neighbours(self, rows: Tensor, uniform: Tensor) -> Tensor:
        """For each row one of its own cluster, from `uniform` numbers in [0, 1); each is as likely."""
        labels = self.labels[rows]
        return self.members[self.begins[labels] + _below(uniform, self.counts[labels])]


def joined(clusters: Clusters, last: Tensor, waypoints: Tensor, uniform: Tensor) -> Tensor:
    """Rows that can be reached by way of `waypoints`: on in an episode that came through the same cluster.

    `last` [N] holds the last row of each row's episode, `uniform` [2, …] numbers in [0, 1). The row where the other
    episode is joined and all its later ones are as likely.
    """
    entry = clusters.neighbours(waypoints, uniform[0])
    return entry + _below(uniform[1], last[entry] - entry + 1)


def _below(uniform: Tensor, count: Tensor) -> Tensor:
    """Whole numbers from 0 to count − 1, of which rounding reaches no further."""
    return torch.minimum((uniform * count).long(), count - 1)


def kmeans(points: Tensor, clusters: int, seed: int = 0) -> Tensor:
    """Lloyd's algorithm on points [N, D] from k-means++ starts: centres [C, D] that depend on the seed alone.

    Most rounds run on a sample, the last ones on all points: a million take seconds on one CPU core. Sums are matrix
    products in double precision, so that a GPU gives the same result in every run.
    """
    if clusters < 1:
        raise UserError(f"an augmentation needs at least 1 cluster, not {clusters}")
    if clusters > len(points):
        raise UserError(f"{clusters} clusters were asked for, but there are only {len(points)} states")
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(points), generator=generator)[: max(SAMPLE, clusters)].to(points.device)
    sample = points[chosen].double()
    centers = _spread(sample, clusters, generator)
    still = STILL * float(sample.std(0, correction=0).mean())
    for _ in range(SEARCH):
        before = centers
        centers = _means(sample, centers)
        if float((centers - before).norm(dim=1).max()) <= still:
            break
    for _ in range(POLISH):
        centers = _means(points, centers)
    return centers


def nearest(points: Tensor, centers: Tensor) -> Tensor:
    """The number of the centre that is nearest to each point, [N, D] and [C, D] → [N]."""
    return torch.cat([_nearest(chunk.double(), centers) for chunk in points.split(CHUNK)])


def _nearest(points: Tensor, centers: Tensor) -> Tensor:
    # ‖x − c‖² without the part that is the same for all centres.
    return torch.addmm(centers.square().sum(1), points, centers.T, alpha=-2).argmin(1)


def _means(points: Tensor, centers: Tensor) -> Tensor:
    """Each centre moved to the mean of the points nearest to it; one without points stays."""
    numbers = torch.arange(len(centers), device=points.device)
    sums, counts = torch.zeros_like(centers), torch.zeros_like(centers[:, :1])
    for chunk in points.double().split(CHUNK):
        member = (_nearest(chunk, centers)[:, None] == numbers).double()
        sums += member.T @ chunk
        counts += member.sum(0)[:, None]
    return torch.where(counts > 0, sums / counts.clamp(min=1), centers)


def _spread(points: Tensor, clusters: int, generator: torch.Generator) -> Tensor:
    """k-means++: each further centre is a point drawn with probability ∝ its squared distance to those before."""
    numbers = torch.rand(clusters, generator=generator).double().tolist()
    centers = [points[int(numbers[0] * len(points))]]
    distances = (points - centers[0]).square().sum(1)
    for number in numbers[1:]:
        sums = distances.cumsum(0)
        index = torch.searchsorted(sums, number * sums[-1:], right=True).clamp(max=len(points) - 1)
        centers.append(points[index[0]])
        distances = torch.minimum(distances, (points - centers[-1]).square().sum(1))
    return torch.stack(centers)
