"""Goal-conditioned implicit V-learning (GCIVL): a value function by expectile regression, an actor that prefers gains.

Kostrikov et al., Offline Reinforcement Learning with Implicit Q-Learning (2022), without Q, as in OGBench. The value
V(s, g) is minus the discounted number of steps to the goal; high expectiles stand in for the maximum over actions.
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
from compdiffuser.baselines.losses import advantage_weights, bootstrapped_regression, weighted_cloning
from compdiffuser.baselines.networks import Actor, Value, follow, randomness


@dataclass(frozen=True)
class GCIVLConfig(BootstrappedConfig):
    """Settings of GCIVL; the defaults are OGBench's for point mazes with stitch data."""

    alpha: float = 10.0
    """Inverse temperature of the actor's weights."""


class GCIVL(Agent):
    parts = ("value", "actor")

    def __init__(self, config: GCIVLConfig, sizes: Sizes, seeds: Sequence[int]) -> None:
        super().__init__()
        self.config, self.seeds = config, len(seeds)
        generators, inputs = randomness(seeds), sizes.observation + sizes.goal
        self.values = Value(generators, inputs, config.hidden, copies=2)
        self.targets = copy.deepcopy(self.values).requires_grad_(False)
        self.actor = Actor(generators, inputs, config.hidden, sizes.action)

    def draw(self, experience: Experience, generator: torch.Generator) -> Batch:
        c = self.config
        return experience.batch((self.seeds, c.batch), c.value_goals, c.actor_goals, c.discount, generator)

    def loss(self, batch: Batch) -> Tensor:
        return torch.stack([self.value_loss(batch), self.actor_loss(batch)], -1)

    def value_loss(self, batch: Batch) -> Tensor:
        """L(V) = Σᵢ E |τ − 1(A < 0)|·(r + γ·V⁻ᵢ(s′, g) − Vᵢ(s, g))², with A = r + γ·minᵢ V⁻ᵢ(s′, g) − meanᵢ V⁻ᵢ(s, g).

        r = −1 and the next value counts, until s is the goal: then r = 0 and nothing follows.
        """
        with torch.no_grad():
            now, then = self._at_both(self.targets, batch, batch.value_goals)
        values, c = self.values(batch.observations, batch.value_goals), self.config
        return bootstrapped_regression(values, now, then, batch.reached, c.discount, c.expectile)

    def actor_loss(self, batch: Batch) -> Tensor:
        """L(π) = −E min(exp(α·A), 100)·log π(a | s, g), with A = V(s′, g) − V(s, g)."""
        with torch.no_grad():
            now, then = self._at_both(self.values, batch, batch.actor_goals)
            weights = advantage_weights((then - now).mean(1), self.config.alpha)
        return weighted_cloning(self.actor(batch.observations, batch.actor_goals), batch.actions, weights)

    def _at_both(self, values: Value, batch: Batch, goals: Tensor) -> tuple[Tensor, Tensor]:
        """Values [S, 2, B] of the states and of the next states, in one pass."""
        states = torch.cat([batch.observations, batch.next_observations], 1)
        now, then = values(states, torch.cat([goals, goals], 1)).chunk(2, -1)
        return now, then

    def after_update(self) -> None:
        follow(self.targets, self.values, self.config.target_rate)

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        return self.actor(observations, goals)

    def value(self, observations: Tensor, goals: Tensor) -> Tensor:
        """V(s, g) [S, E]: the larger, the nearer."""
        return self.values(observations, goals).mean(1)
