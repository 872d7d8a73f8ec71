"""Goal-conditioned behavioural cloning (GCBC): do what was done on the way to a state that was reached later.

Ghosh et al., Learning to Reach Goals via Iterated Supervised Learning (2021). Nothing is learned about distances, so
goals that no single episode connects with the start lie outside the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from compdiffuser.baselines.agent import Sizes, check_settings
from compdiffuser.baselines.goals import LATER, Experience, GoalMix, Imitation
from compdiffuser.baselines.networks import Actor, log_probability, randomness


@dataclass(frozen=True)
class GCBCConfig:
    """Settings of GCBC; the defaults are OGBench's."""

    learning_rate: float = 3e-4
    """Adam's rate, constant."""
    batch: int = 1024
    """Transitions per update and seed."""
    hidden: tuple[int, ...] = (512, 512, 512)
    """Widths of the hidden layers."""
    discount: float = 0.99
    """γ; it matters only where goals are drawn geometrically."""
    actor_goals: GoalMix = LATER
    """Where goals come from."""

    def __post_init__(self) -> None:
        check_settings(self)


class GCBC(nn.Module):
    parts = ("actor",)
    whole_goals = False

    def __init__(self, config: GCBCConfig, sizes: Sizes, seeds: Sequence[int]) -> None:
        super().__init__()
        self.config, self.seeds = config, len(seeds)
        self.actor = Actor(randomness(seeds), sizes.observation + sizes.goal, config.hidden, sizes.action)

    def draw(self, experience: Experience, generator: torch.Generator) -> Imitation:
        c = self.config
        return experience.imitation((self.seeds, c.batch), c.actor_goals, c.discount, generator)

    def loss(self, batch: Imitation) -> Tensor:
        return torch.stack([self.actor_loss(batch)], -1)

    def actor_loss(self, batch: Imitation) -> Tensor:
        """L(π) = −E log π(a | s, g)."""
        mean = self.actor(batch.observations, batch.goals)
        return -log_probability(mean, batch.actions).mean(-1)

    def after_update(self) -> None:
        """Nothing follows an update."""

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        return self.actor(observations, goals)
