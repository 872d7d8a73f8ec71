"""How far it really is: distances along recorded segments, where a straight line would cross walls.

The segments kept with a checkpoint are the edges of a graph over landmarks, places spread evenly over the recorded
states. The shortest way through it knows the detours that the data knows: it tells how few chunks could bridge a start
and a goal, and is a scaffold that candidates can begin from. (A graph over the data that gives waypoints and the number
of chunks is XDiffuser's idea, arXiv 2605.16863; theirs lies in a learned space.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from compdiffuser.planning.support import Support

LANDMARKS = 1024
STATES = 8192  # among which they are chosen
BESIDE = 1.5  # landmarks are neighbours up to this many times the distance from which each recorded state has one


@dataclass(frozen=True)
class Routes:
    """A directed graph of N landmarks and E edges."""

    landmarks: Tensor
    """[N, D], normalized."""
    edges: Tensor
    """[2, E], from and to."""
    lengths: Tensor
    """[E]"""

    @classmethod
    def through(cls, support: Support, dim: int) -> Routes:
        """The graph of the recorded segments, with landmarks spread evenly over their states of `dim` dimensions."""
        first, last = support.segments[:, :dim], support.segments[:, -dim:]
        states = torch.cat([first, last])
        landmarks, radius = spread(states[:: max(1, len(states) // STATES)], LANDMARKS)
        recorded = torch.stack([nearest(first, landmarks), nearest(last, landmarks)])
        beside = (torch.cdist(landmarks, landmarks) <= BESIDE * radius).nonzero().T
        edges = torch.cat([recorded, beside], dim=1).unique(dim=1)
        lengths = (landmarks[edges[0]] - landmarks[edges[1]]).norm(dim=1)
        return cls(landmarks, edges, lengths)

    def ways(self, starts: Tensor, goals: Tensor) -> list[Tensor | None]:
        """The shortest way [n, D] from each start [P, D] to its goal [P, D], both included; None where none leads."""
        sources, which = nearest(starts, self.landmarks).unique(return_inverse=True)
        far = self._distances(sources)
        ends = nearest(goals, self.landmarks).tolist()
        return [
            None if torch.isinf(far[row, end]) else torch.cat([start[None], self._back(far[row], end), goal[None]])
            for start, goal, row, end in zip(starts, goals, which.tolist(), ends, strict=True)
        ]

    def _distances(self, sources: Tensor) -> Tensor:
        """From each of the given landmarks [S] to every one: [S, N], infinite where no way leads."""
        far = self.landmarks.new_full((len(sources), len(self.landmarks)), torch.inf)
        far[torch.arange(len(sources), device=far.device), sources] = 0
        to = self.edges[1].expand(len(sources), -1)
        while True:  # every round finds the ways of one edge more
            nearer = far.scatter_reduce(1, to, far[:, self.edges[0]] + self.lengths, "amin")
            if torch.equal(nearer, far):
                return far
            far = nearer

    def _back(self, far: Tensor, end: int) -> Tensor:
        """The landmarks [n, D] on the shortest way to `end`, by their distances [N] from where it begins."""
        way = [end]
        while far[way[-1]] > 0:
            into = (self.edges[1] == way[-1]).nonzero()[:, 0]
            before = self.edges[0, into]
            way.append(int(before[(far[before] + self.lengths[into]).where(before != way[-1], torch.inf).argmin()]))
        return self.landmarks[way[::-1]]


def length(way: Tensor) -> float:
    """Of a way [n, D]."""
    return float(way.diff(dim=0).norm(dim=1).sum())


def paced(way: Tensor, count: int) -> Tensor:
    """`count` states at equal distances along a way: [n, D] -> [count, D]."""
    along = torch.cat([way.new_zeros(1), way.diff(dim=0).norm(dim=1).cumsum(0)])
    wanted = torch.linspace(0, float(along[-1]), count, device=way.device)
    after = torch.searchsorted(along, wanted).clamp(1, len(way) - 1)
    share = ((wanted - along[after - 1]) / (along[after] - along[after - 1]).clamp(min=1e-9)).clamp(0, 1)
    return torch.lerp(way[after - 1], way[after], share[:, None])


def spread(points: Tensor, count: int) -> tuple[Tensor, float]:
    """`count` of the points [S, D], each the furthest from those before it; and how far from them the others are."""
    chosen = [0]
    away = (points - points[0]).norm(dim=1)
    for _ in range(min(count, len(points)) - 1):
        chosen.append(int(away.argmax()))
        away = torch.minimum(away, (points - points[chosen[-1]]).norm(dim=1))
    return points[chosen], float(away.max())


def nearest(points: Tensor, landmarks: Tensor) -> Tensor:
    """The number [S] of the landmark [N, D] nearest to each point [S, D]."""
    return torch.cdist(points, landmarks).argmin(dim=1)
