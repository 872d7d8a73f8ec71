"""Batches for goal-conditioned learning, drawn on the device: transitions, and goals chosen for them in hindsight.

Goals are rows of the recorded states: the state itself, a later one of the same episode, or any. Which row, a
`GoalSampler` decides; another one (data augmentation, say) takes the place of `hindsight` and nothing else changes.
Drawing is a handful of tensor operations that do not synchronize with the CPU, so that a CUDA graph can contain it.

Letters: S seeds trained side by side · B transitions per seed · N recorded states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from compdiffuser.checks import brief, is_finite, typed
from compdiffuser.types import Episodes, UserError


@dataclass(frozen=True)
class GoalMix:
    """Where goals come from: shares that add up to 1."""

    current: float = 0.0
    """Share of goals that are the present state."""
    trajectory: float = 1.0
    """Share of goals that lie later in the same episode."""
    random: float = 0.0
    """Share of goals that are any recorded state."""
    geometric: bool = True
    """Later states geometrically by their distance in steps (mean 1 / (1 − γ)), or uniformly up to the end."""

    def __post_init__(self) -> None:
        shares = (self.current, self.trajectory, self.random)
        if not (all(map(is_finite, shares)) and all(share >= 0 for share in shares) and abs(sum(shares) - 1) <= 1e-6):
            raise UserError(f"shares of goals are at least 0 and add up to 1, not {brief(shares)}")
        typed(self)


VALUE_GOALS = GoalMix(current=0.2, trajectory=0.5, random=0.3)
"""What OGBench trains most value functions on."""
ACTOR_GOALS = GoalMix(trajectory=0.5, random=0.5, geometric=False)
"""What OGBench trains actors on, where episodes are short and have to be stitched."""
RANDOM_GOALS = GoalMix(trajectory=0.0, random=1.0)
"""Any recorded state."""
LATER = GoalMix(trajectory=1.0, geometric=False)
"""Any later state of the same episode."""


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Recorded episodes as tensors on the device."""

    observations: Tensor
    """[N, obs]"""
    actions: Tensor
    """[N, act]"""
    first: Tensor
    """[N] row of the first state of the same episode."""
    last: Tensor
    """[N] row of the last state of the same episode."""
    transitions: Tensor
    """Rows that have a next state in their episode."""
    begins: Tensor
    """Those of them where an episode begins."""
    goal_dims: tuple[int, ...]
    """Observation dimensions that make a goal."""

    @classmethod
    def from_episodes(
        cls, episodes: Episodes, goal_dims: Sequence[int] | None = None, device: torch.device | str = "cpu"
    ) -> Trajectories:
        """Goals are whole observations where `goal_dims` is None."""
        lengths, starts = episodes.lengths, episodes.starts
        rows = np.concatenate([np.arange(start, start + length) for start, length in zip(starts, lengths, strict=True)])
        order = np.cumsum(lengths) - lengths
        first, last = np.repeat(order, lengths), np.repeat(order + lengths - 1, lengths)
        transitions = np.flatnonzero(np.arange(len(rows)) < last)
        if len(transitions) == 0:
            raise UserError("a dataset needs an episode of at least 2 states, this one has none")
        width = episodes.observations.shape[1]
        dims = tuple(range(width)) if goal_dims is None else tuple(goal_dims)
        if wrong := [dim for dim in dims if not 0 <= dim < width]:
            raise UserError(f"observations have dimensions 0 to {width - 1}, there is no dimension {wrong[0]}")

        def tensor(array: np.ndarray, kind: torch.dtype) -> Tensor:
            return torch.as_tensor(np.ascontiguousarray(array).copy(), dtype=kind, device=device)

        return cls(
            tensor(episodes.observations[rows], torch.float32),
            tensor(episodes.actions[rows], torch.float32),
            tensor(first, torch.int64),
            tensor(last, torch.int64),
            tensor(transitions, torch.int64),
            tensor(transitions[first[transitions] == transitions], torch.int64),
            dims,
        )

    def draw(self, shape: tuple[int, ...], generator: torch.Generator, by_episode: bool = False) -> Tensor:
        """Rows of transitions: each is as likely, or each episode is and then each of its own."""
        population, device = self.begins if by_episode else self.transitions, self.transitions.device
        rows = population[torch.randint(len(population), shape, device=device, generator=generator)]
        if not by_episode:
            return rows
        steps = self.last[rows] - rows
        ahead = (torch.rand(shape, device=device, generator=generator) * steps).long()
        return rows + torch.minimum(ahead, steps - 1)

    def goals(self, observations: Tensor) -> Tensor:
        """The part of observations [..., obs] that makes a goal [..., goal]."""
        start, stop = self.goal_dims[0], self.goal_dims[-1] + 1
        if self.goal_dims == tuple(range(start, stop)):
            return observations[..., start:stop]
        return torch.stack([observations[..., dim] for dim in self.goal_dims], -1)


GoalSampler = Callable[[Trajectories, Tensor, GoalMix, float, torch.Generator], Tensor]
"""(data, rows [S, B], mix, discount, generator) → the rows [S, B] whose states are the goals."""


def hindsight(data: Trajectories, rows: Tensor, mix: GoalMix, discount: float, generator: torch.Generator) -> Tensor:
    """The present row, a later one of the same episode, or any row, as `mix` says."""
    source, ahead = torch.rand(2, *rows.shape, device=rows.device, generator=generator)
    goals = later(data, rows, ahead, discount if mix.geometric else None) if mix.trajectory > 0 else rows
    if mix.random > 0:
        anywhere = data.draw(tuple(rows.shape), generator)
        goals = torch.where(source < mix.current + mix.trajectory, goals, anywhere)
    return torch.where(source < mix.current, rows, goals) if mix.current > 0 else goals


def later(data: Trajectories, rows: Tensor, uniform: Tensor, discount: float | None) -> Tensor:
    """Later rows of the same episodes, from `uniform` numbers in [0, 1).

    With a discount γ the distance k ≥ 1 has probability (1 − γ)·γᵏ⁻¹, and what lies beyond the end is the end; without
    one, every later row is as likely.
    """
    last = data.last[rows]
    if discount is None:
        ahead = (uniform * (last - rows)).long() + 1
    else:
        # P(k > n) = γⁿ, so k = 1 + ⌊log u / log γ⌋ for u uniform in (0, 1].
        ahead = (torch.log1p(-uniform) * (1 / math.log(discount))).long() + 1
    return torch.minimum(rows + ahead, last)


class Batch(NamedTuple):
    """What most methods learn from."""

    observations: Tensor
    """[S, B, obs]"""
    next_observations: Tensor
    """[S, B, obs]"""
    actions: Tensor
    """[S, B, act]"""
    value_goals: Tensor
    """[S, B, goal]"""
    reached: Tensor
    """[S, B], 1 where the value goal is the present state, else 0."""
    actor_goals: Tensor
    """[S, B, goal]"""


class Imitation(NamedTuple):
    """What was done, and a goal for which it was right."""

    observations: Tensor
    """[S, B, obs]"""
    actions: Tensor
    """[S, B, act]"""
    goals: Tensor
    """[S, B, goal]"""


class SubgoalBatch(NamedTuple):
    """What hierarchical methods learn from; letters as in `Batch`."""

    observations: Tensor
    next_observations: Tensor
    actions: Tensor
    value_goals: Tensor
    reached: Tensor
    subgoals: Tensor
    """[S, B, goal] the state k steps ahead, or the last one: the low level's goals."""
    actor_goals: Tensor
    """[S, B, goal] the high level's goals."""
    waypoints: Tensor
    """[S, B, obs] the state k steps ahead on the way to the high level's goal, not beyond it."""
    waypoint_goals: Tensor
    """[S, B, goal] the same states as goals."""


@dataclass(frozen=True, eq=False)
class Experience:
    """Recorded episodes and the way goals are chosen for them."""

    data: Trajectories
    sample_goals: GoalSampler = hindsight

    def imitation(
        self, shape: tuple[int, int], mix: GoalMix, discount: float, generator: torch.Generator,
        by_episode: bool = False,
    ) -> Imitation:  # fmt: skip
        """S × B actions with goals for an actor alone."""
        rows = self.data.draw(shape, generator, by_episode)
        aims = self.sample_goals(self.data, rows, mix, discount, generator)
        now, aim = self.data.observations[torch.stack([rows, aims])]
        return Imitation(now, self.data.actions[rows], self.data.goals(aim))

    def batch(
        self, shape: tuple[int, int], value: GoalMix, actor: GoalMix, discount: float, generator: torch.Generator
    ) -> Batch:
        """S × B transitions with goals for a value function and for an actor."""
        rows = self.data.draw(shape, generator)
        aims = self.sample_goals(self.data, rows, value, discount, generator)
        targets = self.sample_goals(self.data, rows, actor, discount, generator)
        now, then, aim, target = self.data.observations[torch.stack([rows, rows + 1, aims, targets])]
        reached = (rows == aims).float()
        goals = self.data.goals
        return Batch(now, then, self.data.actions[rows], goals(aim), reached, goals(target))

    def subgoal_batch(
        self, shape: tuple[int, int], value: GoalMix, actor: GoalMix, discount: float, steps: int,
        generator: torch.Generator,
    ) -> SubgoalBatch:  # fmt: skip
        """S × B transitions with goals for a value function, and goals and states `steps` ahead for two actors."""
        rows = self.data.draw(shape, generator)
        aims = self.sample_goals(self.data, rows, value, discount, generator)
        targets = self.sample_goals(self.data, rows, actor, discount, generator)
        ahead = torch.minimum(rows + steps, self.data.last[rows])
        on_the_way = (targets >= rows) & (targets < ahead)
        waypoints = torch.where(on_the_way, targets, ahead)
        picked = torch.stack([rows, rows + 1, aims, ahead, targets, waypoints])
        now, then, aim, subgoal, target, waypoint = self.data.observations[picked]
        reached = (rows == aims).float()
        goals = self.data.goals
        return SubgoalBatch(
            now, then, self.data.actions[rows], goals(aim), reached,
            goals(subgoal), goals(target), waypoint, goals(waypoint),
        )  # fmt: skip
