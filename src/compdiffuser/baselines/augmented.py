"""Goals from other episodes: the two augmentations of Ghugare et al. (2024) as goal samplers, for any method here.

A goal g that lies later in the same episode is a waypoint in half of the cases. Some recorded state w of g's cluster,
most likely another episode's, takes its place, and the goal becomes a state from w to the end of w's episode. The
action at hand is still a way to begin. What makes states neighbours tells the two apart:

- `sa`, state augmentation: clusters of whole observations. Episodes are joined where position and velocity agree.
- `ga`, goal augmentation: clusters of goals, positions in the mazes. Velocities may differ where episodes are joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from compdiffuser.baselines.goals import GoalMix, GoalSampler, Trajectories, hindsight
from compdiffuser.checks import whole
from compdiffuser.data.augment import Clusters, joined
from compdiffuser.types import UserError

KINDS = ("sa", "ga")


@dataclass(frozen=True)
class Augmentation:
    """How episodes are joined."""

    kind: str
    """sa, or ga."""
    clusters: int = 40
    """Clusters of k-means."""
    probability: float = 0.5
    """Share of the goals later in the same episode that are replaced."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(f"unknown augmentation '{self.kind}'; choose none, {' or '.join(KINDS)}")
        whole(self, "clusters")
        if not 0 <= self.probability <= 1:
            raise UserError(f"an augmentation's probability lies between 0 and 1, not at {self.probability}")

    def sampler(self, data: Trajectories, seed: int = 0) -> GoalSampler:
        """The goal sampler for recorded episodes; finding their clusters takes seconds."""
        points = data.observations if self.kind == "sa" else data.goals(data.observations)
        return Stitched(Clusters.fit(points, self.clusters, seed), self.probability)

    def notes(self) -> dict[str, Any]:
        """What a training record says of it."""
        return {"augment": self.kind, "clusters": self.clusters, "augment_probability": self.probability}


@dataclass(frozen=True, eq=False)
class Stitched:
    """Hindsight, with some of the goals moved on into other episodes; a `GoalSampler`."""

    clusters: Clusters
    probability: float = 0.5

    def __call__(
        self, data: Trajectories, rows: Tensor, mix: GoalMix, discount: float, generator: torch.Generator
    ) -> Tensor:
        usual = hindsight(data, rows, mix, discount, generator)
        *places, chance = torch.rand(3, *rows.shape, device=rows.device, generator=generator)
        moved = (chance < self.probability) & (usual > rows) & (usual <= data.last[rows])
        return torch.where(moved, joined(self.clusters, data.last, usual, torch.stack(places)), usual)
