"""A trained agent as a `Policy`: E episodes side by side, one seed's weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from compdiffuser.baselines.agent import Agent
from compdiffuser.types import Array, UserError


class GoalPolicy:
    """Acts with the mean of the actor, clipped to [−1, 1], the range of actions in every benchmark here."""

    def __init__(
        self, agent: Agent, observation: int, goal_dims: Sequence[int], device: torch.device | str = "cpu"
    ) -> None:
        self.agent, self.observation, self.goal_dims = agent, observation, list(goal_dims)
        self.device = torch.device(device)

    def reset(self, observations: Array, goals: Array) -> None:
        """Start E episodes: observations [E, obs], goals [E, obs] or [E, goal]."""
        self._check(observations)
        width = goals.shape[-1]
        if width not in (self.observation, len(self.goal_dims)):
            expected = " or ".join(map(str, sorted({self.observation, len(self.goal_dims)})))
            raise UserError(f"a goal has {expected} numbers for this policy, not {width}")
        self.goals = self._tensor(goals[..., self.goal_dims] if width == self.observation else goals)
        self.agent.begin(self.goals)

    def act(self, observations: Array, active: Array) -> Array:
        """Actions [E, act]; rows where `active` is false are ignored by the caller."""
        self._check(observations)
        with torch.inference_mode():
            actions = self.agent.act(self._tensor(observations), self.goals)[0]
        return actions.clamp(-1, 1).cpu().numpy()

    def _tensor(self, rows: Array) -> torch.Tensor:
        return torch.as_tensor(np.ascontiguousarray(rows, np.float32), device=self.device)[None]

    def _check(self, observations: Array) -> None:
        if observations.shape[-1] != self.observation:
            raise UserError(
                f"an observation has {self.observation} numbers for this policy, not {observations.shape[-1]}"
            )
