"""Hierarchical implicit Q-learning (HIQL): one value function, two actors; the upper one proposes where to be next.

Park et al., HIQL: Offline Goal-Conditioned RL with Latent States as Actions (2023). The value sees goals through a
representation φ(s, g) of a few numbers. The high-level actor proposes the representation of a state k steps ahead, the
low-level actor goes there. Both are cloned with weights by the same value, whose errors matter less over short ways.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.config import BootstrappedConfig
from compdiffuser.baselines.goals import Experience, SubgoalBatch
from compdiffuser.baselines.losses import advantage_weights, bootstrapped_regression, weighted_cloning
from compdiffuser.baselines.networks import MLP, Actor, Value, follow, randomness


@dataclass(frozen=True)
class HIQLConfig(BootstrappedConfig):
    """Settings of HIQL; the defaults are OGBench's for point mazes with stitch data."""

    expectile: float = 0.7
    """τ of the value's regression."""
    alpha: float = 3.0
    """Inverse temperature of both actors' weights."""
    subgoal_steps: int = 25
    """k, how many steps ahead a subgoal lies."""
    representation: int = 10
    """Width of φ(s, g)."""


class HIQL(Agent):
    parts = ("value", "low_actor", "high_actor")

    def __init__(self, config: HIQLConfig, sizes: Sizes, seeds: Sequence[int]) -> None:
        super().__init__()
        self.config, self.seeds = config, len(seeds)
        generators, width = randomness(seeds), config.representation
        self.represent = MLP(generators, (sizes.observation + sizes.goal, *config.hidden, width), layer_norm=True)
        self.values = Value(generators, sizes.observation + width, config.hidden, copies=2)
        self.targets = copy.deepcopy(self.values).requires_grad_(False)
        self.low_actor = Actor(generators, sizes.observation + width, config.hidden, sizes.action)
        self.high_actor = Actor(generators, sizes.observation + sizes.goal, config.hidden, width)

    def draw(self, experience: Experience, generator: torch.Generator) -> SubgoalBatch:
        c = self.config
        shape = (self.seeds, c.batch)
        return experience.subgoal_batch(shape, c.value_goals, c.actor_goals, c.discount, c.subgoal_steps, generator)

    def loss(self, batch: SubgoalBatch) -> Tensor:
        return torch.stack([self.value_loss(batch), *self.actor_losses(batch)], -1)

    def value_loss(self, batch: SubgoalBatch) -> Tensor:
        """L(V) = Σᵢ E |τ − 1(A < 0)|·(r + γ·V⁻ᵢ(s′, g) − Vᵢ(s, g))², as in GCIVL, with V(s, φ(s, g)) for V(s, g).

        Targets see goals through the φ that is trained, and give it no gradient.
        """
        here = self.representation(batch.observations, batch.value_goals)
        with torch.no_grad():
            there = self.representation(batch.next_observations, batch.value_goals)
            states = torch.cat([batch.observations, batch.next_observations], 1)
            now, then = self.targets(states, torch.cat([here, there], 1)).chunk(2, -1)
        values, c = self.values(batch.observations, here), self.config
        return bootstrapped_regression(values, now, then, batch.reached, c.discount, c.expectile)

    def actor_losses(self, batch: SubgoalBatch) -> tuple[Tensor, Tensor]:
        """Both are weighted cloning, L(π) = −E min(exp(α·A), 100)·log π.

        Low level: π(a | s, φ(s, w)) with A = V(s′, w) − V(s, w) for the state w that lies k steps ahead.
        High level: π(φ(s, w) | s, g) with A = V(w, g) − V(s, g) for w on the way to g.
        """
        with torch.no_grad():
            states = [batch.observations, batch.next_observations, batch.observations, batch.waypoints]
            goals = [batch.subgoals, batch.subgoals, batch.actor_goals, batch.actor_goals]
            pairs = torch.cat([*states, batch.observations], 1), torch.cat([*goals, batch.waypoint_goals], 1)
            *seen, proposal = self.representation(*pairs).chunk(5, 1)
            now, then, here, there = self.values(torch.cat(states, 1), torch.cat(seen, 1)).mean(1).chunk(4, -1)
            low = advantage_weights(then - now, self.config.alpha)
            high = advantage_weights(there - here, self.config.alpha)
        return (
            weighted_cloning(self.low_actor(batch.observations, seen[0]), batch.actions, low),
            weighted_cloning(self.high_actor(batch.observations, batch.actor_goals), proposal, high),
        )

    def representation(self, observations: Tensor, goals: Tensor) -> Tensor:
        """φ(s, g) [S, B, representation], on the sphere of radius √representation."""
        return on_sphere(self.represent(observations, goals)[:, 0])

    def after_update(self) -> None:
        follow(self.targets, self.values, self.config.target_rate)

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        return self.low_actor(observations, on_sphere(self.high_actor(observations, goals)))

    def value(self, observations: Tensor, goals: Tensor) -> Tensor:
        """V(s, g) [S, E]: the larger, the nearer."""
        return self.values(observations, self.representation(observations, goals)).mean(1)


def on_sphere(x: Tensor) -> Tensor:
    """x [..., d] scaled to length √d."""
    return F.normalize(x, dim=-1) * math.sqrt(x.shape[-1])
