"""Outcome-conditioned behavioural cloning (RvS): a wide network that imitates actions, given a state reached later.

Emmons et al., RvS: What is Essential for Offline RL via Supervised Learning? (2022), with goals as outcomes. Pairs of
state and goal that no episode connects are outside the data, unless an augmentation adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.config import PerceptronConfig
from compdiffuser.baselines.goals import Experience, Imitation
from compdiffuser.baselines.networks import MLP, randomness
from compdiffuser.training.config import Schedule


@dataclass(frozen=True)
class RvSConfig(PerceptronConfig):
    """Settings of RvS; the defaults are those of Ghugare et al., but for the schedule. Gradients are not clipped."""

    learning_rate: float = 1e-3
    """Adam's rate at the beginning."""
    schedule: Schedule = "cosine"
    """cosine: the rate falls to 0 over the run; constant, as Ghugare et al. have it."""
    batch: int = 256
    """Transitions per update and seed."""
    hidden: tuple[int, ...] = (1024, 1024)
    """Widths of the hidden layers."""
    by_episode: bool = True
    """Draw an episode and then one of its steps; else all recorded steps are as likely: long episodes count more."""


class RvS(Agent):
    def __init__(self, config: RvSConfig, sizes: Sizes, seeds: Sequence[int]) -> None:
        super().__init__()
        self.config, self.seeds = config, len(seeds)
        layers = (sizes.observation + sizes.goal, *config.hidden, sizes.action)
        self.network = MLP(randomness(seeds), layers, relu=True)

    def draw(self, experience: Experience, generator: torch.Generator) -> Imitation:
        c = self.config
        return experience.imitation((self.seeds, c.batch), c.actor_goals, c.discount, generator, c.by_episode)

    def loss(self, batch: Imitation) -> Tensor:
        """L(π) = E ‖π(s, g) − a‖² / dim(a) → [S, 1]."""
        errors = self.act(batch.observations, batch.goals) - batch.actions
        return errors.square().mean((-1, -2))[:, None]

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        return self.network(observations, goals)[:, 0].tanh()
