"""Soft actor-critic (Haarnoja et al., 2018): two critics, a squashed Gaussian actor, a temperature that tunes itself.

All updates that follow one step of the environments are one CUDA graph on a GPU, and a plain loop on a CPU.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.networks import Actor, Critics
from compdiffuser.experts.replay import Replay
from compdiffuser.types import Array

WARM_ROUNDS = 3  # eager ones before capture: they allocate what the graph will reuse
MEASURES = ("critic_loss", "value", "entropy", "temperature")


class SoftActorCritic:
    """Networks, their optimizer, and the update."""

    def __init__(self, config: ExpertConfig, replay: Replay, device: torch.device) -> None:
        self.config, self.replay, self.device = config, replay, device
        sizes = replay.sizes
        torch.manual_seed(config.seed)
        self.actor = Actor(sizes.inputs, config.actor_hidden, sizes.action).to(device)
        self.critics = Critics(sizes.inputs + sizes.action, config.critic_hidden, config.layer_norm).to(device)
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_temperature = nn.Parameter(torch.tensor(math.log(0.1), device=device))
        self.least_entropy = -config.entropy * sizes.action
        self.parameters: list[nn.Parameter] = [
            *self.critics.parameters(), *self.actor.parameters(), self.log_temperature
        ]  # fmt: skip
        self.optimizer = torch.optim.Adam(
            self.parameters, lr=config.learning_rate, fused=True, capturable=device.type == "cuda"
        )
        self.generator = torch.Generator(device).manual_seed(config.seed)
        self.measures = torch.zeros(len(MEASURES), device=device)
        self.updates = self.measured = self.warm = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None

    def act(self, states: Array) -> Array:
        """Actions [E, act] drawn from the policy for states [E, inputs]."""
        with torch.no_grad():
            actions, _ = self.actor.sample(torch.from_numpy(states).to(self.device), self.generator)
        return actions.cpu().numpy()

    def update(self) -> None:
        """The updates that belong to one step of all environments."""
        if self.stream is not None and self.graph is None:
            self._prepare()
        elif self.graph is not None:
            self.graph.replay()
        else:
            self._round()
        self.updates += int(self.config.updates_per_round)
        self.measured += int(self.config.updates_per_round)

    def mean_measures(self) -> dict[str, float]:
        """Means since the last call; reading them waits for the GPU."""
        means = (self.measures / max(self.measured, 1)).tolist()
        self.measures.zero_()
        self.measured = 0
        return dict(zip(MEASURES, means, strict=True))

    def state(self) -> dict[str, Any]:
        return {
            "actor": self.actor.state_dict(),
            "critics": self.critics.state_dict(),
            "targets": self.targets.state_dict(),
            "temperature": self.log_temperature.detach(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "updates": self.updates,
        }

    def restore(self, state: dict[str, Any]) -> None:
        for name in ("actor", "critics", "targets"):
            getattr(self, name).load_state_dict(state[name])
        with torch.no_grad():
            self.log_temperature.copy_(state["temperature"])
        # A run may change from a CPU to a GPU: Adam's counts go where this flag wants them, and noise starts anew.
        saved, on_gpu = state["optimizer"], self.device.type == "cuda"
        groups = [group | {"capturable": on_gpu} for group in saved["param_groups"]]
        self.optimizer.load_state_dict(saved | {"param_groups": groups})
        if len(state["generator"]) == len(self.generator.get_state()):
            self.generator.set_state(state["generator"])
        self.updates = int(state["updates"])

    def _prepare(self) -> None:
        """A round of updates on the stream of the capture; after a few of them, the capture."""
        assert self.stream is not None
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self._round()
        torch.cuda.current_stream().wait_stream(self.stream)
        self.warm += 1
        if self.warm == WARM_ROUNDS:
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph, stream=self.stream):
                self._round()
            self.graph = graph

    def _round(self) -> None:
        for _ in range(int(self.config.updates_per_round)):
            self._update()

    def _update(self) -> None:
        config = self.config
        batch = self.replay.sample(
            config.batch, self.generator, relabel=config.relabel, scale=config.reward_scale, most=config.top_speed
        )
        with torch.no_grad():
            actions, _ = self.actor.sample(batch.following, self.generator)
            future = self._value(self.targets(batch.following, actions))
            goal = batch.rewards + config.discount * batch.goes_on * future
        # Critics: the two towards the same goal.
        critic_loss = (self.critics(batch.states, batch.actions) - goal).square().mean(1).sum()
        # Actor: high value and high entropy.
        actions, density = self.actor.sample(batch.states, self.generator)
        value = self._value(self.critics(batch.states, actions)).mean()
        temperature = self.log_temperature.exp()
        actor_loss = (temperature.detach() * density).mean() - value
        # Temperature: up where the entropy is below its least value, down where it is above.
        entropy = -density.detach().mean()
        temperature_loss = temperature * (entropy - self.least_entropy)
        self._step((critic_loss, self.critics), (actor_loss, self.actor), (temperature_loss, None))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.targets.parameters()), list(self.critics.parameters()), config.target_rate)
            self.measures += torch.stack([critic_loss, value, entropy, temperature]).detach()

    def _step(self, *losses: tuple[Tensor, nn.Module | None]) -> None:
        """One step of the optimizer; each loss moves its own weights only."""
        for loss, module in losses:
            weights = [self.log_temperature] if module is None else list(module.parameters())
            for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight.grad = gradient
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _value(self, both: Tensor) -> Tensor:
        """[2, B] → [B]."""
        return both.amin(0) if self.config.critic == "min" else both.mean(0)
