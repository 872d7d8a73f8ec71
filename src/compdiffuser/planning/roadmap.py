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

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from compdiffuser.planning.support import Support

LANDMARKS = 1024
STATES = 8192  # among which they are chosen
# Distances below are in units of the radius, within which each recorded state has a landmark.
AROUND = 2.0  # how far around a landmark data is counted
TOLL = 20.0  # how many times its length an edge costs where there is least data, at most
BESIDE = 2.0  # up to where two landmarks are joined, or gaps in the data would end ways
JOINS = 32  # of a landmark, at most: in many dimensions everything is beside everything
UNSEEN = 3.0  # how many times more a join costs: no segment may ever have led that way
ENTRANCES = 16  # landmarks around a place, of which the nearest that a free line leads to is taken

Clear = Callable[[Tensor, Tensor], Tensor]
"""`clear(here [n, P], there [n, P]) -> [n]`: whether the straight lines between places are free."""


@dataclass(frozen=True)
class Roadmap:
    """A directed graph of N landmarks and E edges."""

    landmarks: Tensor
    """[N, P], normalized positions."""
    edges: Tensor
    """[2, E], from and to."""
    costs: Tensor
    """Length of each edge, and more where data is rare or no segment led along it. [E]"""
    radius: float = 0.0
    """Within which each recorded state has a landmark."""
    clear: Clear | None = None
    """Which lines are free, where not all are."""

    @classmethod
    def through(cls, support: Support, count: int | None = None) -> Roadmap:
        """The graph of the recorded segments, with landmarks spread evenly over the places where they begin and end."""
        first, _, last = support.segments.chunk(3, dim=1)
        states = torch.cat([first, last])
        landmarks, radius = spread(states[:: max(1, len(states) // STATES)], count or LANDMARKS)
        recorded = torch.stack([nearest(first, landmarks), nearest(last, landmarks)]).unique(dim=1)
        beside = neighbours(landmarks, BESIDE * radius)
        edges = torch.cat([recorded, beside], dim=1)
        costs = (landmarks[edges[0]] - landmarks[edges[1]]).norm(dim=1)
        costs[recorded.shape[1] :] *= UNSEEN
        return cls(landmarks, edges, costs * rarity(landmarks, states, AROUND * radius)[edges].mean(dim=0), radius)

    def cleared(self, clears: Sequence[Clear]) -> Roadmap:
        """The same without the edges that are not free by the first of these tests."""
        kept = clears[0](*(self.landmarks[ends] for ends in self.edges))
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
        sources, which = self._entrances(starts).unique(return_inverse=True)
        far = self._costs(sources)
        ends = self._entrances(goals).tolist()
        return [
            None if torch.isinf(far[row, end]) else torch.cat([start[None], self._back(far[row], end), goal[None]])
            for start, goal, row, end in zip(starts, goals, which.tolist(), ends, strict=True)
        ]

    def _entrances(self, points: Tensor) -> Tensor:
        """The number [S] of the landmark at which each of the points [S, P] is on the map."""
        first = nearest(points, self.landmarks)
        if self.clear is None:
            return first
        around = torch.cdist(points, self.landmarks).topk(min(ENTRANCES, len(self.landmarks)), largest=False).indices
        lines = points.repeat_interleave(around.shape[1], dim=0), self.landmarks[around.flatten()]
        free = self.clear(*lines).view(around.shape)
        return torch.where(free.any(dim=1), around.gather(1, free.float().argmax(dim=1)[:, None])[:, 0], first)

    def _costs(self, sources: Tensor) -> Tensor:
        """Costs from each of the given landmarks [S] to every one: [S, N], infinite where no way leads."""
        far = self.landmarks.new_full((len(sources), len(self.landmarks)), torch.inf)
        far[torch.arange(len(sources), device=far.device), sources] = 0
        to = self.edges[1].expand(len(sources), -1)
        while True:  # every round finds the ways of one edge more
            nearer = far.scatter_reduce(1, to, far[:, self.edges[0]] + self.costs, "amin")
            if torch.equal(nearer, far):
                return far
            far = nearer

    def _back(self, far: Tensor, end: int) -> Tensor:
        """The landmarks [n, P] on the cheapest way to `end`, by what each of them [N] costs from where it begins.

        Of ways that cost the same, the one of fewest edges: an edge may cost less than a float can add to a long way.
        """
        leads = (far[self.edges[0]] + self.costs == far[self.edges[1]]).nonzero()[:, 0]
        into: dict[int, list[int]] = {}
        for here, there in self.edges[:, leads].T.tolist():
            into.setdefault(there, []).append(here)
        after: dict[int, int | None] = {end: None}
        queue = deque([end])
        while far[queue[0]] > 0:
            there = queue.popleft()
            for here in into[there]:
                if here not in after:
                    after[here] = there
                    queue.append(here)
        way: list[int] = []
        place: int | None = queue[0]
        while place is not None:
            way.append(place)
            place = after[place]
        return self.landmarks[way]


def length(way: Tensor) -> float:
    """Length of a path [n, P]."""
    return float(way.diff(dim=0).norm(dim=1).sum())


def paced(way: Tensor, count: int, sizes: Sequence[int] = ()) -> Tensor:
    """`count` states at equal distances along a way: [n, P] -> [count, P].

    Where several groups of these `sizes` move, a distance is that of the group that goes furthest.
    """
    parts = way.diff(dim=0).split(list(sizes or way.shape[1:]), dim=1)
    apart = torch.stack([part.norm(dim=1) for part in parts]).amax(dim=0)
    along = torch.cat([way.new_zeros(1), apart.cumsum(0)])
    wanted = torch.linspace(0, float(along[-1]), count, device=way.device)
    after = torch.searchsorted(along, wanted).clamp(1, len(way) - 1)
    share = ((wanted - along[after - 1]) / (along[after] - along[after - 1]).clamp(min=1e-9)).clamp(0, 1)
    return torch.lerp(way[after - 1], way[after], share[:, None])


def spread(points: Tensor, count: int) -> tuple[Tensor, float]:
    """Up to `count` of the points [S, P], each the furthest from those before it; and how far others are from them."""
    chosen = [0]
    away = (points - points[0]).norm(dim=1)
    while len(chosen) < count and away.max() > 0:
        chosen.append(int(away.argmax()))
        away = torch.minimum(away, (points - points[chosen[-1]]).norm(dim=1))
    return points[chosen], float(away.max())


def neighbours(places: Tensor, radius: float) -> Tensor:
    """The pairs [2, E] of places [N, P] that lie within `radius` of each other, for each place the nearest `JOINS`."""
    near, which = torch.cdist(places, places).topk(min(JOINS, len(places)), largest=False)
    place, rank = (near <= radius).nonzero().T
    return torch.stack([place, which[place, rank]])


def rarity(places: Tensor, states: Tensor, radius: float) -> Tensor:
    """What rarity of states [S, P] around places [N, P] costs: its square, from 1 where they are usual to `TOLL`."""
    crowd = torch.stack([(states - place).norm(dim=1).le(radius).sum() for place in places]).float()
    return (crowd.quantile(0.75) / crowd.clamp(min=1)).square().clamp(1, TOLL)


def nearest(points: Tensor, landmarks: Tensor) -> Tensor:
    """The number [S] of the landmark [N, P] nearest to each point [S, P]."""
    # Not by a matrix product, whose digits depend on the size of the batch.
    return torch.cdist(points, landmarks, compute_mode="donot_use_mm_for_euclid_dist").argmin(dim=1)
