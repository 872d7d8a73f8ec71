"""Quasimetric RL (QRL): distances that obey the triangle inequality, pushed apart as far as single steps allow.

Wang et al., Optimal Goal-Reaching Reinforcement Learning via Quasimetric Learning (2023). The largest quasimetric in
which no recorded step is longer than 1 is the number of steps between states, also across episodes. A model of latent
steps turns the distance into something an actor can climb.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.config import ValueConfig
from compdiffuser.baselines.goals import RANDOM_GOALS, Batch, Experience, GoalMix
from compdiffuser.baselines.losses import climb_and_clone
from compdiffuser.baselines.networks import MLP, Actor, Quasimetric, randomness
from compdiffuser.types import UserError


@dataclass(frozen=True)
class QRLConfig(ValueConfig):
    """Settings of QRL; the defaults are OGBench's for point mazes with stitch data."""

    latent: int = 512
    """Width of the latents that distances are between, a multiple of `component`."""
    component: int = 8
    """Numbers per component of the quasimetric."""
    margin: float = 0.05
    """ε, how much the squared excess of single steps over 1 may be."""
    alpha: float = 0.0003
    """Weight of the actor's cloning term."""
    value_goals: GoalMix = RANDOM_GOALS
    """Where the states come from that are pushed apart."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.latent % self.component:
            raise UserError(f"a latent of {self.latent} numbers cannot be divided into components of {self.component}")


class QRL(Agent):
    parts = ("value", "multiplier", "dynamics", "actor")
    whole_goals = True  # one encoder serves states and goals

    def __init__(self, config: QRLConfig, sizes: Sizes, seeds: Sequence[int]) -> None:
        super().__init__()
        self.config, self.seeds = config, len(seeds)
        generators, latent = randomness(seeds), config.latent
        self.encoder = MLP(generators, (sizes.observation, *config.hidden, latent), layer_norm=True)
        self.dynamics = MLP(generators, (latent + sizes.action, *config.hidden, latent), layer_norm=True)
        self.metric = Quasimetric(len(seeds), config.component)
        self.log_multiplier = nn.Parameter(torch.zeros(len(seeds)))
        self.actor = Actor(generators, sizes.observation + sizes.goal, config.hidden, sizes.action)

    def draw(self, experience: Experience, generator: torch.Generator) -> Batch:
        c = self.config
        return experience.batch((self.seeds, c.batch), c.value_goals, c.actor_goals, c.discount, generator)

    def loss(self, batch: Batch) -> Tensor:
        """The losses below, and the model's: L(f) = E [d(z′, z + f(z, a)) + d(z + f(z, a), z′)] / 2."""
        states = torch.cat([batch.observations, batch.next_observations, batch.value_goals], 1)
        now, then, goal = self.encoder(states)[:, 0].chunk(3, 1)
        expected = self._step(now, batch.actions)
        # All four distances in one pass: to the goal, to the next state, and between it and the expected one.
        left, right = torch.cat([now, now, then, expected], 1), torch.cat([goal, then, expected, then], 1)
        far, near, ahead, back = self.metric(left, right).chunk(4, 1)
        value, multiplier = self.value_losses(far, near)
        dynamics = (ahead + back).mean(-1) / 2
        return torch.stack([value, multiplier, dynamics, self.actor_loss(batch, now.detach())], -1)

    def value_losses(self, far: Tensor, near: Tensor) -> tuple[Tensor, Tensor]:
        """Maximize d(s, g) subject to E relu(d(s, s′) − 1)² ≤ ε, with a multiplier λ:

        L(d) = E 100·softplus(5 − d(s, g) / 100) + λ·E relu(d(s, s′) − 1)², L(λ) = λ·(ε − E relu(d(s, s′) − 1)²).
        """
        apart = (100 * F.softplus(5 - far / 100)).mean(-1)
        excess = F.relu(near - 1).square().mean(-1)
        multiplier = self.log_multiplier.exp()
        return apart + multiplier.detach() * excess, multiplier * (self.config.margin - excess.detach())

    def actor_loss(self, batch: Batch, now: Tensor) -> Tensor:
        """L(π) = E d(z + f(z, μ(s, g)), z_g) / E|d| − α·E log π(a | s, g), with latents z = φ(s), z_g = φ(g)."""
        with torch.no_grad():
            goal = self.encoder(batch.actor_goals)[:, 0]
        mean = self.actor(batch.observations, batch.actor_goals)
        q = -self.metric(self._step(now, mean.clamp(-1, 1), frozen=True), goal, frozen=True)
        return climb_and_clone(q, mean, batch.actions, self.config.alpha)

    def _step(self, latent: Tensor, actions: Tensor, frozen: bool = False) -> Tensor:
        """Where an action leads, in latents: z + f(z, a)."""
        return latent + self.dynamics(latent, actions, frozen=frozen)[:, 0]

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        return self.actor(observations, goals)

    def value(self, observations: Tensor, goals: Tensor) -> Tensor:
        """−d(s, g) [S, E]: the larger, the nearer."""
        return -self.metric(self.encoder(observations)[:, 0], self.encoder(goals)[:, 0])
