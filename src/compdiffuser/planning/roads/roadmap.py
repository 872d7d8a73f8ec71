"""Ways through the data: along recorded segments, where a straight line would cross walls.

The segments kept with a checkpoint are edges of a graph over landmarks, places spread evenly over the recorded states.
The cheapest way through it knows the detours that the data knows: it tells about how many chunks a start and a goal
need, and is a scaffold that candidates can begin from. Edges cost more than their length where data is rare, or ways
would graze every corner that a body ever touched. Landmarks side by side are joined too, both ways: a street that was
only ever walked one way may be walked back, at a price.

A graph over the data that gives waypoints and the number of chunks is XDiffuser's idea (arXiv 2605.16863); theirs lies
in a learned space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor

from compdiffuser.planning.recorded.passages import Passages
from compdiffuser.planning.recorded.support import SEGMENTS, Support
from compdiffuser.planning.roads.landmarks import nearest, neighbours, rarity, spread
from compdiffuser.types import Array

LANDMARKS = 1024  # for as many segments as most data needs; more where there are more
STATES = 8192  # among which they are chosen, likewise
# Distances below are in units of the radius, within which each recorded state has a landmark.
AROUND = 2.0  # how far around a landmark data is counted
BESIDE = 2.0  # up to where two landmarks are joined, or gaps in the data would end ways
UNSEEN = 3.0  # how many times more a join costs: no segment may ever have led that way
BARRED = 10.0  # how many times more an edge costs that leads where no episode has passed: through a wall, most often
MOST_RADIUS = 0.65  # in what a plan may pass aside, where that is known: lines between landmarks are as fine
ENTRANCES = 16  # landmarks around a place, of which the nearest that a free line leads to is taken
FURTHEST_ENTRANCE = 4.0  # radii up to which another is taken, where no way leads to or from that one

Clear = Callable[[Tensor, Tensor], Tensor]
"""`clear(places [N, P], lines [2, n]) -> [n]`: whether straight lines are free, each between two of the places."""


@dataclass(frozen=True)
class Roadmap:
    """A directed graph of N landmarks and E edges."""

    landmarks: Tensor
    """[N, P], normalized positions."""
    edges: Tensor
    """[2, E], from and to, in that order; of several between two landmarks, the cheapest is kept."""
    costs: Tensor
    """Length of each edge, and more where data is rare or no segment led along it. [E]"""
    radius: float = 0.0
    """Within which each recorded state has a landmark."""
    clear: Clear | None = None
    """Which lines are free, where not all are."""

    def __post_init__(self) -> None:
        count = len(self.landmarks)
        pairs = (self.edges[0] * count + self.edges[1]).numpy()
        if (np.diff(pairs) > 0).all():
            return
        order = np.lexsort([self.costs.numpy(), pairs])
        cheapest = torch.from_numpy(order[np.diff(pairs[order], prepend=-1) > 0])
        object.__setattr__(self, "edges", self.edges[:, cheapest])
        object.__setattr__(self, "costs", self.costs[cheapest])

    @classmethod
    def through(cls, support: Support, count: int | None = None) -> Roadmap:
        """The graph of the recorded segments, with landmarks spread evenly over the places where they begin and end."""
        passages = support.passages
        first, _, last = support.segments.chunk(3, dim=1)
        if passages is not None:  # legs are short, and of all episodes
            first, last = passages.legs.chunk(2, dim=1)
        states = torch.cat([first, last])
        chosen = states[:: max(1, len(states) // (STATES * _growth(support)))]
        landmarks, radius = _landmarks(chosen, count or landmarks_for(support), passages)
        recorded = torch.stack([nearest(first, landmarks), nearest(last, landmarks)]).unique(dim=1)
        near = BESIDE * radius if passages is None else max(BESIDE * radius, passages.longest)
        beside = neighbours(landmarks, near)
        edges = torch.cat([recorded, beside], dim=1)
        costs = (landmarks[edges[0]] - landmarks[edges[1]]).norm(dim=1)
        costs[recorded.shape[1] :] *= UNSEEN
        if passages is not None:
            pairs, which = edges.sort(dim=0).values.unique(dim=1, return_inverse=True)
            costs[~passages.open(*landmarks[pairs])[which]] *= BARRED
        return cls(landmarks, edges, costs * rarity(landmarks, states, AROUND * radius)[edges].mean(dim=0), radius)

    def cleared(self, clears: Sequence[Clear]) -> Roadmap:
        """The same without the edges that are not free by the first of these tests."""
        kept = clears[0](self.landmarks, self.edges)
        return replace(self, edges=self.edges[:, kept], costs=self.costs[kept], clear=clears[0])

    def dearer(self, way: Tensor, times: float) -> Roadmap:
        """The same, but edges beside a way [n, P] cost so many times more."""
        near = torch.cdist(self.landmarks, way).amin(dim=1) <= BESIDE * self.radius
        return replace(self, costs=torch.where(near[self.edges].all(dim=0), times * self.costs, self.costs))

    def tensors(self) -> list[Tensor]:
        """What tells it from another."""
        return [self.landmarks, self.edges, self.costs]

    def ways(self, starts: Tensor, goals: Tensor) -> list[Tensor | None]:
        """The cheapest way [n, P] from each of the starts to its goal, both included; None where none leads."""
        begin, ends = self._entrances(torch.cat([starts, goals])).split(len(starts))
        sources, which = begin.unique(return_inverse=True)
        costs, before = self._cheapest(sources)
        return [
            self._otherwise(start, goal)
            if np.isinf(costs[row, end])
            else torch.cat([start[None], self._back(before[row], end), goal[None]])
            for start, goal, row, end in zip(starts, goals, which.tolist(), ends.tolist(), strict=True)
        ]

    def _otherwise(self, start: Tensor, goal: Tensor) -> Tensor | None:
        """The way [n, P] between the nearest landmarks that one joins: some are cut off, or were only ever left."""
        ends = torch.stack([start, goal])
        away, around = self._around(ends)
        able = (self._free(ends, around) & (away <= FURTHEST_ENTRANCE * self.radius)).numpy()
        parts = self._parts[around.numpy()]
        joined = (parts[0][:, None] == parts[1]) & able[0][:, None] & able[1]
        if not joined.any():
            return None
        end = around[1].numpy()
        costs, before = self._cheapest(around[0])
        apart = np.where(joined & np.isfinite(costs[:, end]), away[0].numpy()[:, None] + away[1].numpy(), np.inf)
        row, column = divmod(int(apart.argmin()), len(end))
        if np.isinf(apart[row, column]):
            return None
        return torch.cat([start[None], self._back(before[row], int(end[column])), goal[None]])

    @cached_property
    def _parts(self) -> Array:
        """The number of the part that each landmark is in; no edge joins two parts. [N]"""
        return np.asarray(connected_components(self._graph, directed=False)[1])

    def _cheapest(self, sources: Tensor) -> tuple[Array, Array]:
        """Costs from landmarks [S] to every one, infinite where no way leads, and the one before each: [S, N] both."""
        costs, before = dijkstra(self._graph, indices=sources.numpy(), return_predecessors=True)
        return costs, before

    @cached_property
    def _graph(self) -> csr_array:
        """Costs from landmark to landmark [N, N]."""
        count, (begin, end) = len(self.landmarks), self.edges.int().numpy()
        rows = np.searchsorted(begin, np.arange(count + 1, dtype=np.int32)).astype(np.int32)
        return csr_array((self.costs.double().numpy(), end, rows), (count, count))

    def _entrances(self, points: Tensor) -> Tensor:
        """The number [S] of the landmark at which each of the points [S, P] is on the map."""
        if self.clear is None:
            return nearest(points, self.landmarks)
        around = self._around(points)[1]
        free = self._free(points, around)
        return around.gather(1, free.float().argmax(dim=1)[:, None])[:, 0]

    def _around(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """How far the nearest landmarks are from each of the points [S, P], and their numbers: [S, n] both."""
        away = torch.cdist(points, self.landmarks, compute_mode="donot_use_mm_for_euclid_dist")
        far, around = away.topk(min(ENTRANCES, len(self.landmarks)), largest=False)
        return far, around

    def _free(self, points: Tensor, around: Tensor) -> Tensor:
        """Whether the straight lines from points [S, P] to landmarks of these numbers are free: [S, n] both."""
        if self.clear is None:
            return torch.ones_like(around, dtype=torch.bool)
        ends = torch.arange(around.numel())
        begin = ends // around.shape[1]
        places = torch.cat([points, self.landmarks[around.flatten()]])
        return self.clear(places, torch.stack([begin, len(points) + ends])).view(around.shape)

    def _back(self, before: Array, end: int) -> Tensor:
        """The landmarks [n, P] on the way to `end`, by the one before each [N]."""
        way = [end]
        while (place := int(before[way[-1]])) >= 0:
            way.append(place)
        return self.landmarks[way[::-1]]


def _landmarks(states: Tensor, count: int, passages: Passages | None) -> tuple[Tensor, float]:
    """So many of the states, or more, until lines between them are as fine as the passages that are known."""
    landmarks, radius = spread(states, count)
    while passages is not None and radius > MOST_RADIUS * passages.limit and len(landmarks) == count < len(states) // 2:
        count *= 2
        landmarks, radius = spread(states, count)
    return landmarks, radius


def landmarks_for(support: Support) -> int:
    """As many for each segment, whatever the size of the data."""
    return LANDMARKS * _growth(support)


def _growth(support: Support) -> int:
    """How many times more segments there are than most data needs."""
    return max(1, len(support.segments) // (max(len(support.sizes), 1) * SEGMENTS))


def strides(way: Tensor, sizes: Sequence[int] = ()) -> Tensor:
    """Distances between neighbours on a path [n, P], of the group of these `sizes` that goes furthest there: [n − 1]"""
    parts = way.diff(dim=0).split(list(sizes or way.shape[1:]), dim=1)
    return torch.stack([part.norm(dim=1) for part in parts]).amax(dim=0)


def length(way: Tensor, sizes: Sequence[int] = ()) -> float:
    """Length of a path [n, P]. Where groups of several `sizes` move, a step is as long as the longest of theirs."""
    return float(strides(way, sizes).sum())


def paced(way: Tensor, count: int, sizes: Sequence[int] = ()) -> Tensor:
    """`count` states at equal distances along a way: [n, P] -> [count, P].

    Where several groups of these `sizes` move, a distance is that of the group that goes furthest.
    """
    apart = strides(way, sizes)
    along = torch.cat([way.new_zeros(1), apart.cumsum(0)])
    wanted = torch.linspace(0, float(along[-1]), count, device=way.device)
    after = torch.searchsorted(along, wanted).clamp(1, len(way) - 1)
    share = ((wanted - along[after - 1]) / (along[after] - along[after - 1]).clamp(min=1e-9)).clamp(0, 1)
    return torch.lerp(way[after - 1], way[after], share[:, None])
