"""The controller's learner: a state of an episode, one of those that followed it, and the action taken in between."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from compdiffuser.domains import Space
from compdiffuser.following.network import MOVES, InverseDynamics
from compdiffuser.training.loop import Learner
from compdiffuser.types import Episodes, UserError

STILL = 0.01
"""Metres a step; what moves less trembles."""
SOON = 20
"""Steps within which a ball that is about to move does."""


@dataclass(frozen=True, eq=False)
class Steps:
    """States from which enough of their episode is left, on the device."""

    observations: Tensor
    """[S, obs], or what the network sees of them."""
    actions: Tensor
    """[S, act]"""
    rows: Tensor
    """[n] rows of `observations` to learn from."""
    most: Tensor
    """[n] how many steps ahead can be looked from each."""
    moving: Tensor | None = None
    """[m] which of these `rows` half of the samples come from; None: all samples come from all."""

    @classmethod
    def from_episodes(cls, episodes: Episodes, horizons: tuple[int, int], device: torch.device | str) -> Steps:
        lengths = torch.as_tensor(episodes.lengths.copy(), dtype=torch.int64)
        starts = torch.as_tensor(episodes.starts.copy(), dtype=torch.int64)
        first = torch.repeat_interleave(starts, lengths)
        within = torch.arange(len(first)) - torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
        left = torch.repeat_interleave(lengths, lengths) - 1 - within
        enough = left >= horizons[0]
        if not bool(enough.any()):
            raise UserError(f"no episode has {horizons[0]} steps ahead: the longest has {int(lengths.max())} states")
        return cls(
            torch.as_tensor(episodes.observations.copy(), dtype=torch.float32, device=device),
            torch.as_tensor(episodes.actions.copy(), dtype=torch.float32, device=device),
            (first + within)[enough].to(device),
            left[enough].clamp(max=horizons[1]).to(device),
        )

    def sample(self, n: int, least: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Observations [n, obs], later observations [n, obs], the steps between them [n], and actions [n, act]."""
        device = self.rows.device
        chosen = torch.randint(len(self.rows), (n,), device=device, generator=generator)
        if self.moving is not None:
            some = torch.randint(len(self.moving), (n // 2,), device=device, generator=generator)
            chosen = torch.cat([self.moving[some], chosen[n // 2 :]])
        row, most = self.rows[chosen], self.most[chosen]
        ahead = torch.rand(n, device=device, generator=generator) * (most - least + 1)
        horizons = torch.minimum(least + ahead.long(), most)
        return self.observations[row], self.observations[row + horizons], horizons, self.actions[row]

    def with_moving(self, space: Space) -> Steps:
        """The same, with half of the samples from where something besides the agent is about to move, if it ever is.

        Most of the time a ball lies in a corner or at its goal, and what is to be learned is how to move it.
        """
        row, soon = self.rows, self.rows + self.most.clamp(max=SOON)
        here, there = (space.groups(space.planned(self.observations[index])) for index in (row, soon))
        moved = [(there[name] - here[name]).norm(dim=1) > MOVES for name, _ in space.positions[1:]]
        which = torch.stack(moved).any(0).nonzero()[:, 0] if moved else row[:0]
        return replace(self, moving=which) if len(which) else self

    def speeds(self, n: int, generator: torch.Generator, space: Space) -> tuple[float, ...]:
        """Metres a step over the ground of each position group, the median of those among n in which it moves.

        This is how fast a body walks, whichever way it turns next, and how fast a ball rolls that mostly lies still.
        """
        chosen = torch.randint(len(self.rows), (n,), device=self.rows.device, generator=generator)
        row = self.rows[chosen]
        here, there = (space.groups(space.planned(self.observations[index])) for index in (row, row + 1))
        gone = {name: (there[name] - here[name]).norm(dim=1) for name in here}
        return tuple(float(steps[steps > STILL].median()) if (steps > STILL).any() else 0.0 for steps in gone.values())


@dataclass(frozen=True)
class ControlLearner(Learner):
    """Trains inverse dynamics by plain mean squared error, with h uniform over the horizons."""

    module: InverseDynamics
    steps: Steps
    batch: int

    def loss(self, module: nn.Module, generator: torch.Generator) -> Tensor:
        config = self.module.config
        now, later, horizons, actions = self.steps.sample(self.batch, config.horizons[0], generator)
        planned = self.module.planned(later)
        if not config.frees:
            given = module(now, planned, horizons)
        else:
            left_out = torch.rand(len(now), device=now.device, generator=generator) < config.free
            given = module(now, planned, horizons, left_out & self.module.moves(now, planned))
        return (given - actions).square().mean()
