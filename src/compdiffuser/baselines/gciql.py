"""Goal-conditioned implicit Q-learning (GCIQL): Q and V by expectile regression, an actor that climbs Q.

Kostrikov et al., Offline Reinforcement Learning with Implicit Q-Learning (2022), with goals and the DDPG+BC actor as in
OGBench.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.config import BootstrappedConfig
from compdiffuser.baselines.goals import Batch, Experience
from compdiffuser.baselines.losses import climb_and_clone, expectile_loss
from compdiffuser.baselines.networks import Actor, Value, follow, randomness


@dataclass(frozen=True)
class GCIQLConfig(BootstrappedConfig):
    """Settings of GCIQL; the defaults are OGBench's for point mazes with stitch data."""

    alpha: float = 0.003
    """Weight of the actor's cloning term."""


class GCIQL(Agent):
    parts = ("value", "critic", "actor")

    def __init__(self, config: GCIQLConfig, sizes: Sizes, seeds: Sequence[int]) -> None:
        super().__init__()
        self.config, self.seeds = config, len(seeds)
        generators, inputs = randomness(seeds), sizes.observation + sizes.goal
        self.values = Value(generators, inputs, config.hidden)
        self.critics = Value(generators, inputs + sizes.action, config.hidden, copies=2)
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.actor = Actor(generators, inputs, config.hidden, sizes.action)

    def draw(self, experience: Experience, generator: torch.Generator) -> Batch:
        c = self.config
        return experience.batch((self.seeds, c.batch), c.value_goals, c.actor_goals, c.discount, generator)

    def loss(self, batch: Batch) -> Tensor:
        return torch.stack([self.value_loss(batch), self.critic_loss(batch), self.actor_loss(batch)], -1)

    def value_loss(self, batch: Batch) -> Tensor:
        """L(V) = E |τ − 1(A < 0)|·A², with A = minᵢ Q⁻ᵢ(s, a, g) − V(s, g)."""
        with torch.no_grad():
            q = self.targets(batch.observations, batch.value_goals, batch.actions).amin(1)
        advantage = q - self.value(batch.observations, batch.value_goals)
        return expectile_loss(advantage, advantage, self.config.expectile).mean(-1)

    def critic_loss(self, batch: Batch) -> Tensor:
        """L(Q) = Σᵢ E (r + γ·V(s′, g) − Qᵢ(s, a, g))²; r = −1, until s is the goal: then r = 0 and nothing follows."""
        with torch.no_grad():
            then = self.value(batch.next_observations, batch.value_goals)
            target = (1 - batch.reached) * (self.config.discount * then - 1)
        q = self.critics(batch.observations, batch.value_goals, batch.actions)
        return (q - target[:, None]).square().mean(-1).sum(1)

    def actor_loss(self, batch: Batch) -> Tensor:
        """L(π) = −E minᵢ Qᵢ(s, μ(s, g), g) / E|Q| − α·E log π(a | s, g)."""
        mean = self.actor(batch.observations, batch.actor_goals)
        q = self.critics(batch.observations, batch.actor_goals, mean.clamp(-1, 1), frozen=True).amin(1)
        return climb_and_clone(q, mean, batch.actions, self.config.alpha)

    def after_update(self) -> None:
        follow(self.targets, self.critics, self.config.target_rate)

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        return self.actor(observations, goals)

    def value(self, observations: Tensor, goals: Tensor) -> Tensor:
        """V(s, g) [S, E]: the larger, the nearer."""
        return self.values(observations, goals)[:, 0]
