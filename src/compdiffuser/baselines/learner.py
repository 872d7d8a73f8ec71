"""An agent and its data as the training loop wants them: a loss that draws its own batches.

Drawing a batch takes dozens of tiny operations, a good part of an update of networks this small. So the batches of
all updates of a replay are drawn at once and handed out one by one.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from compdiffuser.baselines.agent import Agent
from compdiffuser.baselines.goals import Experience
from compdiffuser.training.updater import Learner


class GoalLearner(Learner):
    """The learner of any agent."""

    module: Agent

    def __init__(self, agent: Agent, experience: Experience, updates: int = 1, compiled: bool = False) -> None:
        """`updates` are drawn at once; they must be the loop's updates per replay, or divide them."""
        self.module, self.experience, self.updates = agent, experience, updates
        self.parts = agent.parts
        self.loss_of = torch.compile(agent.loss, dynamic=False) if compiled else agent.loss
        # The same agent, asking for the rows of all updates.
        self.drawer = copy.copy(agent)
        self.drawer.config = replace(agent.config, batch=updates * agent.config.batch)
        self.waiting: list[Any] = []

    def loss(self, module: nn.Module, generator: torch.Generator) -> Tensor:
        if not self.waiting:
            drawn = self.drawer.draw(self.experience, generator)
            shares = zip(*(field.chunk(self.updates, 1) for field in drawn), strict=True)
            self.waiting = [type(drawn)(*share) for share in shares]
        return self.loss_of(self.waiting.pop())

    def after_update(self) -> None:
        self.module.after_update()
