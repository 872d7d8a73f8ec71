"""The controller's learner: a state of an episode, one of those that followed it, and the action taken in between."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from compdiffuser.domains import Body
from compdiffuser.following.network import InverseDynamics
from compdiffuser.training.loop import Learner
from compdiffuser.types import Episodes, UserError


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
        row, most = self.rows[chosen], self.most[chosen]
        ahead = torch.rand(n, device=device, generator=generator) * (most - least + 1)
        horizons = torch.minimum(least + ahead.long(), most)
        return self.observations[row], self.observations[row + horizons], horizons, self.actions[row]

    def speed(self, n: int, generator: torch.Generator, body: Body) -> float:
        """Metres a step over the ground, the median of n: how fast the body walks, whichever way it turns next."""
        chosen = torch.randint(len(self.rows), (n,), device=self.rows.device, generator=generator)
        row = self.rows[chosen]
        here, there = (body.position(self.observations[index]) for index in (row, row + 1))
        return float((there - here).norm(dim=1).median())


@dataclass(frozen=True)
class ControlLearner(Learner):
    """Trains inverse dynamics by plain mean squared error, with h uniform over the horizons."""

    module: InverseDynamics
    steps: Steps
    batch: int

    def loss(self, module: nn.Module, generator: torch.Generator) -> Tensor:
        config = self.module.config
        now, later, horizons, actions = self.steps.sample(self.batch, config.horizons[0], generator)
        given = module(now, self.module.planned(later), horizons)
        return (given - actions).square().mean()
