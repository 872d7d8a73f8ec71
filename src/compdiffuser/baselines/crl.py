"""Contrastive RL (CRL): a critic tells the goals that an action led to from those of others; an actor climbs it.

Eysenbach et al., Contrastive Learning as Goal-Conditioned Reinforcement Learning (2022). The critic's logit estimates
the log-ratio of the discounted probability of reaching a goal to its probability anywhere. Nothing is bootstrapped,
hence episodes are not stitched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.config import ValueConfig
from compdiffuser.baselines.goals import Batch, Experience, GoalMix
from compdiffuser.baselines.losses import climb_and_clone
from compdiffuser.baselines.networks import Actor, Bilinear, randomness

LEAST_LOGIT = math.log(1e-6)  # the actor does not tell ratios below 1e-6 apart

LATER_GEOMETRIC = GoalMix(trajectory=1.0)


@dataclass(frozen=True)
class CRLConfig(ValueConfig):
    """Settings of CRL; the defaults are OGBench's for point mazes with stitch data."""

    latent: int = 512
    """Width of the latents whose product is the critic."""
    alpha: float = 0.03
    """Weight of the actor's cloning term."""
    value_goals: GoalMix = LATER_GEOMETRIC
    """Where the critic's goals come from."""


class CRL(Agent):
    parts = ("critic", "actor")

    def __init__(self, config: CRLConfig, sizes: Sizes, seeds: Sequence[int]) -> None:
        super().__init__()
        self.config, self.seeds = config, len(seeds)
        generators = randomness(seeds)
        self.critics = Bilinear(
            generators, sizes.observation + sizes.action, sizes.goal, config.hidden, config.latent, copies=2
        )
        self.actor = Actor(generators, sizes.observation + sizes.goal, config.hidden, sizes.action)

    def draw(self, experience: Experience, generator: torch.Generator) -> Batch:
        c = self.config
        return experience.batch((self.seeds, c.batch), c.value_goals, c.actor_goals, c.discount, generator)

    def loss(self, batch: Batch) -> Tensor:
        return torch.stack([self.critic_loss(batch), self.actor_loss(batch)], -1)

    def critic_loss(self, batch: Batch) -> Tensor:
        """L(f) = −mean over i, j of log σ(f(sᵢ, aᵢ, gⱼ)) where i = j, else log σ(−f(sᵢ, aᵢ, gⱼ)); the critics' mean."""
        return contrast(self.critics.pairs(batch.observations, batch.actions, batch.value_goals)).mean(1)

    def actor_loss(self, batch: Batch) -> Tensor:
        """L(π) = −E minₖ fₖ(s, μ(s, g), g) / E|f| − α·E log π(a | s, g)."""
        mean = self.actor(batch.observations, batch.actor_goals)
        logits = self.critics(batch.observations, mean.clamp(-1, 1), batch.actor_goals, frozen=True)
        return climb_and_clone(logits.clamp(min=LEAST_LOGIT).amin(1), mean, batch.actions, self.config.alpha)

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        return self.actor(observations, goals)

    def value(self, observations: Tensor, goals: Tensor) -> Tensor:
        """f(s, μ(s, g), g) [S, E]: the larger, the sooner the goal is reached."""
        return self.critics(observations, self.act(observations, goals).clamp(-1, 1), goals).mean(1)


def contrast(logits: Tensor) -> Tensor:
    """−mean over i, j of log σ(lᵢᵢ) where i = j and log σ(−lᵢⱼ) elsewhere, for logits [..., B, B] → [...].

    −log σ(−l) = softplus(l) and −log σ(l) = softplus(l) − l, so only the diagonal needs a second look.
    """
    positive = logits.diagonal(dim1=-2, dim2=-1).sum(-1)
    return F.softplus(logits).mean((-2, -1)) - positive / logits.shape[-1] ** 2
