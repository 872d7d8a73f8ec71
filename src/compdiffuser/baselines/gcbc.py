"""Goal-conditioned behavioural cloning (GCBC): do what was done on the way to a state that was reached later.

Ghosh et al., Learning to Reach Goals via Iterated Supervised Learning (2021). Nothing is learned about distances, so
goals that no single episode connects with the start lie outside the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.config import PerceptronConfig
from compdiffuser.baselines.goals import Experience, Imitation
from compdiffuser.baselines.networks import Actor, log_probability, randomness


@dataclass(frozen=True)
class GCBCConfig(PerceptronConfig):
    """Settings of GCBC; the defaults are OGBench's."""


class GCBC(Agent):
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

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        return self.actor(observations, goals)
