"""What every baseline is to the rest of the library: one contract, a base class.

A method is one file with a frozen config and an agent. The agent holds the networks of S seeds, draws its own batches,
gives its loss, and acts. Training, checkpoints, policies and commands know nothing else of it.

No agent has an optimizer of its own: the training loop updates all seeds, many updates per CUDA graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from compdiffuser.baselines.goals import Experience, Trajectories


class Sizes(NamedTuple):
    """Widths of what a method sees and does."""

    observation: int
    action: int
    goal: int


class Agent(nn.Module):
    """Networks of S seeds. Every parameter and buffer has a leading dimension S.

    Agents are made from (config, sizes, seeds). `draw`, `loss` and `act` are theirs; the rest has defaults. Agents that
    learn how near a goal is tell it by `value(observations, goals)` [S, E], larger for nearer ones.
    """

    config: Any
    """An `AgentConfig`."""
    parts: tuple[str, ...] = ("actor",)
    """Names of the parts of the loss."""
    whole_goals: bool = False
    """Whether goals must be whole observations, even where a dataset's goals are fewer dimensions."""

    def check(self, data: Trajectories) -> None:
        """Raises UserError for trajectories that the agent cannot learn from, before training begins."""

    def draw(self, experience: Experience, generator: torch.Generator) -> Any:
        """A batch for `loss`, a tuple of tensors [S, B, …]; drawing it does not synchronize with the CPU."""
        raise NotImplementedError

    def loss(self, batch: Any) -> Tensor:
        """[S, parts]; their sum is minimized. Only tensor operations of fixed shapes: it is captured and compiled."""
        raise NotImplementedError

    def after_update(self) -> None:
        """What follows a step of the optimizer, such as moving target networks."""

    def begin(self, goals: Tensor) -> None:
        """Start E episodes with goals [S, E, goal]: an agent with a memory forgets. `act` is then called every step."""

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        """Actions [S, E, act] for observations [S, E, obs] and goals [S, E, goal]."""
        raise NotImplementedError
