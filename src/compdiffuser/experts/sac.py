"""Soft actor-critic (Haarnoja et al., 2018): two critics, a squashed Gaussian actor, a temperature that tunes itself.

Part of each batch is given a fresh command in hindsight; its reward is known (`experts.tasks`).
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.learner import Learner
from compdiffuser.experts.networks import Critics
from compdiffuser.experts.simulators import Simulators
from compdiffuser.types import Array

MOST_GRADIENT = 10.0
"""Norm beyond which the critics' gradient is shortened."""


class Batch(NamedTuple):
    """[B, …] states, actions, rewards, next states, and 1 where the episode goes on."""

    states: Tensor
    actions: Tensor
    rewards: Tensor
    following: Tensor
    going_on: Tensor


class Temperature(nn.Module):
    """What a unit of entropy is worth."""

    def __init__(self, first: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(first)))


class SoftActorCritic(Learner):
    """Networks, their optimizer, and the update."""

    measured = ("critic_loss", "value", "entropy", "temperature", "reward")

    def __init__(self, config: ExpertConfig, bodies: Simulators, device: torch.device) -> None:
        super().__init__(config, bodies, device)
        sizes = self.sizes
        inputs = sizes["view"] + self.task.shown + sizes["action"]
        self.critics = Critics(config, inputs).to(device)
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.temperature = Temperature(config.first_temperature).to(device)
        self.least_entropy = -config.entropy * sizes["action"]
        self.groups = [list(module.parameters()) for module in (self.critics, self.actor, self.temperature)]
        self.optimize(parameter for group in self.groups for parameter in group)
        self.rng = np.random.default_rng(config.seed)

    def modules(self) -> dict[str, nn.Module]:
        others = {"critics": self.critics, "targets": self.targets, "temperature": self.temperature}
        return {"actor": self.actor, **others}

    def state(self) -> dict[str, Any]:
        return {**super().state(), "drawn": self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if "drawn" in state:
            self.rng.bit_generator.state = state["drawn"]

    @torch.no_grad()
    def act(self, bodies: Simulators, steps: int, done: float) -> Array:
        """Random actions at first, then draws from the policy."""
        width = sum(bodies.moments.widths[name] for name in ("view", "command", "frame"))
        now = bodies.moments.split(torch.from_numpy(bodies.now[:, :width].copy()).to(self.device))
        if self.actor.normalizer is not None and steps < self.config.normalized_steps:
            self.actor.normalizer.see(now["view"])
        if steps < self.config.random_steps:
            return self.rng.uniform(-1, 1, bodies.actions.shape).astype(np.float32)
        state = self.actor.state(now["view"], self.task.show(now["command"], now["frame"][:, 0]))
        return self.actor.sample(state, self.generator)[0].cpu().numpy()

    def sample(self) -> Batch:
        """A batch, part of it with fresh commands."""
        size, task = self.config.batch, self.task
        parts = self.replay.sample(size, self.generator)
        uniform = torch.rand(4, size, device=self.device, generator=self.generator)
        command = torch.where(uniform[3, :, None] < self.config.relabel, task.fresh(uniform[:3]), parts["command"])
        displacement = parts["displacement"]
        shown = task.show(command, parts["frame"][:, 0])
        shown_later = task.show(task.later(command, displacement), parts["next_frame"][:, 0])
        states = self.actor.state(parts["view"], shown)
        following = self.actor.state(parts["following"], shown_later)
        rewards = task.reward(command, displacement, parts["ingredients"], parts["action"])
        return Batch(states, parts["action"], rewards, following, parts["going_on"][:, 0])

    def _update(self) -> None:
        config = self.config
        critic_weights, actor_weights, temperature_weights = self.groups
        temperature = self.temperature.log.exp()
        with torch.no_grad(), self.half():
            batch = self.sample()
            actions, density = self.actor.sample(batch.following, self.generator)
            future = self._value(self.targets(batch.following, actions))
            if config.values_entropy:
                future = future - temperature * density
            goal = batch.rewards + config.discount * batch.going_on * future
        with self.half():
            # Critics: the two towards the same goal.
            values = self.critics(batch.states, batch.actions)
            # Actor: high value and high entropy.
            actions, density = self.actor.sample(batch.states, self.generator)
            value = self._value(self.critics(batch.states, actions)).mean()
        critic_loss = F.smooth_l1_loss(values, goal.expand(2, -1), beta=config.huber) * config.huber
        actor_loss = (temperature.detach() * density).mean() - value
        # Temperature: up where the entropy is below its least value, down where it is above.
        entropy = -density.detach().mean()
        temperature_loss = temperature * (entropy - self.least_entropy)
        self.step(
            (critic_weights, shortened(torch.autograd.grad(critic_loss, critic_weights))),
            (actor_weights, torch.autograd.grad(actor_loss, actor_weights)),
            (temperature_weights, torch.autograd.grad(temperature_loss, temperature_weights)),
        )
        with torch.no_grad():
            torch._foreach_lerp_(list(self.targets.parameters()), [*critic_weights], config.target_rate)
            figures = [critic_loss, value, entropy, temperature, batch.rewards.mean()]
            self.means += torch.stack([figure.detach() for figure in figures])

    def _value(self, both: Tensor) -> Tensor:
        """[2, B] → [B]."""
        return both.amin(0) if self.config.critic == "min" else both.mean(0)


def shortened(gradients: tuple[Tensor, ...]) -> list[Tensor]:
    """Gradients whose common norm is at most MOST_GRADIENT."""
    share = (MOST_GRADIENT / (torch.nn.utils.get_total_norm(gradients) + 1e-6)).clamp(max=1.0)
    return [gradient * share for gradient in gradients]
