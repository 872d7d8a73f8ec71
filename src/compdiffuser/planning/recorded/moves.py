"""How each position group moves in the data: how far, how fast, and how near the agent is while it does.

Distances are normalized, and measured for each group alone: an ant walks, a ball may be kicked. A ball never moves by
itself: nearly all of its path lies where the agent is *near*. What moves by itself is near everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.checks import finite
from compdiffuser.data.windows import Windows

MOVED = 0.02  # normalized: a thing that gets no further than this in `LAG` steps lies still and trembles
LAG = 8  # steps between the moments at which a thing is seen
NEAR = 0.99  # share of a group's path on which the agent counts as near


@dataclass(frozen=True)
class Moves:
    """What is usual for one position group."""

    reach: float
    """Distance between the ends of a chunk, normalized, that 99.9% of the windows stay below."""
    advance: float
    """The same over H − O states, what one more chunk adds."""
    longest: float
    """Longest step of a certified plan."""
    gap: float
    """How far a certified plan may begin from its start or end from its goal."""
    usual: float = 0.0
    """Distance of the agent, below which half of the group's path lies; 0 for the agent itself."""
    near: float = 0.0
    """The same for nearly all of its path."""

    def __post_init__(self) -> None:
        finite(self, "reach", "advance", "longest", "gap", "usual", "near", least=0)

    def fewest_chunks(self, distance: float) -> int:
        """A lower bound on K for a normalized distance."""
        return 1 + int(np.ceil(max(distance - self.reach, 0.0) / max(self.advance, 1e-9)))

    @property
    def carried(self) -> bool:
        """Whether it is the agent that moves it: near is less than a quarter of the data's range."""
        return 0 < self.near < 0.5


def measure_moves(windows: Windows, chunks: Tensor, overlap: int) -> tuple[Moves, ...]:
    """The moves of every group in windows `chunks` [M, H, D] of the data; nothing where there is but one group."""
    if len(windows.space.positions) < 2:
        return ()
    paths = list(windows.space.groups(chunks).values())
    steps = [length_of_most(path[:, 1:] - path[:, :-1], 0.9999) for path in paths]
    # A step of several environment steps is no measure of how exactly a plan begins and ends; the agent's single step
    # is, for everything it moves.
    gap = 3.0 * steps[0] / windows.stride
    return tuple(
        Moves(
            reach=length_of_most(path[:, -1] - path[:, 0], 0.999),
            advance=length_of_most(path[:, path.shape[1] - overlap - 1] - path[:, 0], 0.999),
            longest=1.5 * step or gap,  # of a thing that never moves
            gap=gap,
            **(_nearness(paths[0], path) if number else {}),
        )
        for number, (path, step) in enumerate(zip(paths, steps, strict=True))
    )


def alone(paths: Sequence[Tensor], moves: Sequence[Moves]) -> Tensor:
    """How far anything but the agent gets while the agent is not near: paths [M, H, 2] of each group -> [M]."""
    far = [_alone(paths[0], path, each.near) for path, each in zip(paths[1:], moves[1:], strict=True)]
    return torch.stack(far).amax(dim=0)


def _alone(agent: Tensor, path: Tensor, near: float) -> Tensor:
    # Displacements are added, not distances: the trembling of a thing at rest would add up.
    apart, last = _apart(agent, path), path.shape[1] - 1
    furthest, moved = apart.new_zeros(len(path)), torch.zeros_like(path[:, 0])
    for begin in range(0, last, LAG):
        end = min(begin + LAG, last)
        left = apart[:, begin : end + 1].amin(dim=1) > near
        moved = (moved + path[:, end] - path[:, begin]) * left[:, None]  # since the agent was near
        furthest = torch.maximum(furthest, moved.norm(dim=-1))
    return furthest


def length_of_most(gone: Tensor, share: float) -> float:
    """The length that this share of displacements [..., size] stays below."""
    return float(np.quantile(gone.norm(dim=-1).cpu().numpy(), share))


def split_groups(places: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """The places of each group: [..., P] -> [..., size] each."""
    ends = list(accumulate(sizes))
    return [places[..., end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _nearness(agent: Tensor, path: Tensor) -> dict[str, Any]:
    """How far the agent is on half, and on nearly all, of a group's path: as every `LAG` steps of it begin."""
    lag = min(LAG, path.shape[1] - 1)
    far = (path[:, lag:] - path[:, :-lag]).norm(dim=-1)
    apart, order = _apart(agent, path)[:, :-lag].flatten().sort()
    travelled = (far * (far > MOVED)).flatten()[order].double().cumsum(0)
    shares = travelled.new_tensor([0.5, NEAR]) * travelled[-1]
    rows = torch.searchsorted(travelled, shares).clamp(max=len(apart) - 1)
    usual, near = apart[rows].tolist()
    return {"usual": usual, "near": near}


def _apart(agent: Tensor, path: Tensor) -> Tensor:
    """Distance of the agent, [M, H, 2] -> [M, H]."""
    shared = min(agent.shape[-1], path.shape[-1])
    return (agent[..., :shared] - path[..., :shared]).norm(dim=-1)
