"""Decision Transformer (DT): a causal transformer over the last states and actions that imitates, given a goal.

Chen et al., Decision Transformer: Reinforcement Learning via Sequence Modeling (2021), with a goal in place of the
return, as in Ghugare et al. (2024). Tokens are g, s₁, a₁, s₂, a₂, …, s_T: the goal is the same for the whole context,
so it comes once, first, where every later token sees it. The answer to state sᵢ is read off its own token.

A context shorter than T, at the start of an episode, fills the first places; causality makes the rest irrelevant. Once
it is full, every state moves one place to the left each step, and with its place all keys and values change: there is
nothing to cache but the goal's token and the context itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.config import AgentConfig
from compdiffuser.baselines.goals import Experience, Trajectories
from compdiffuser.baselines.networks import Linear, gelu, randomness
from compdiffuser.training.config import Schedule
from compdiffuser.types import UserError


@dataclass(frozen=True)
class DTConfig(AgentConfig):
    """Settings of DT; the defaults are those of Ghugare et al., but for the schedule. Gradients are not clipped."""

    learning_rate: float = 1e-3
    """AdamW's rate after the warm-up."""
    schedule: Schedule = "cosine"
    """cosine: the rate falls to 0 over the run; constant, as Ghugare et al. have it."""
    batch: int = 256
    """Contexts per update and seed."""
    context: int = 5
    """T, states that the transformer sees."""
    blocks: int = 3
    """Transformer blocks."""
    width: int = 128
    """Numbers per token."""
    heads: int = 1
    """Attention heads."""
    dropout: float = 0.1
    """Share of each branch's outputs that are dropped in training, the same ones in all tokens of a context."""
    warmup: int = 1000
    """Updates of linear warm-up."""
    weight_decay: float = 1e-4
    """AdamW's decay, of all weights."""
    by_episode: bool = True
    """Draw an episode and then one of its steps; else all recorded steps are as likely: long episodes count more."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise UserError(f"a width of {self.width} cannot be divided among {self.heads} heads")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout is a share from 0 to below 1, not {self.dropout}")


class Contexts(NamedTuple):
    """Pieces of episodes, and a goal beyond each."""

    observations: Tensor
    """[S, B, T, obs]"""
    actions: Tensor
    """[S, B, T, act]"""
    goals: Tensor
    """[S, B, goal]"""
    recorded: Tensor
    """[S, B, T], 1 where a state has an action in the data, 0 beyond an episode's end."""
    kept: Tensor
    """[S, B, blocks, 2, width], true where a branch's output is not dropped."""


class Block(nn.Module):
    """Attention to earlier tokens, then a network for each token; layer norm before both, without scale and shift."""

    def __init__(self, generators: Sequence[torch.Generator], width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention = Linear(generators, 1, width, 3 * width)
        self.projection = Linear(generators, 1, width, width, 0.1)
        self.wide = Linear(generators, 1, width, 4 * width)
        self.narrow = Linear(generators, 1, 4 * width, width, 0.1)

    def forward(self, x: Tensor, scales: Tensor | None) -> Tensor:
        """x [S, B, L, width]; `scales` [S, B, 2, width] are 0 where a branch's output is dropped."""
        attended = _each(self.projection, self._attend(_each(self.attention, _norm(x))))
        x = x + (attended if scales is None else attended * scales[:, :, :1])
        thought = _each(self.narrow, gelu(_each(self.wide, _norm(x))))
        return x + (thought if scales is None else thought * scales[:, :, 1:])

    def _attend(self, x: Tensor) -> Tensor:
        """Queries, keys and values [S, B, L, 3 · width] → [S, B, L, width]."""
        each = x.unflatten(-1, (3, self.heads, -1))
        query, key, value = each.permute(3, 0, 1, 4, 2, 5)  # [S, B, heads, L, width / heads]
        logits = query @ key.mT / math.sqrt(query.shape[-1])
        length = x.shape[2]
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = logits.masked_fill(later, -math.inf).softmax(-1)
        return (weights @ value).transpose(2, 3).flatten(3)


class DecisionTransformer(Agent):
    def __init__(self, config: DTConfig, sizes: Sizes, seeds: Sequence[int]) -> None:
        super().__init__()
        self.config, self.sizes, self.seeds = config, sizes, len(seeds)
        generators, width = randomness(seeds), config.width
        self.goal = Linear(generators, 1, sizes.goal, width, whole=True)
        self.state = Linear(generators, 1, sizes.observation, width, whole=True)
        self.action = Linear(generators, 1, sizes.action, width, whole=True)
        places = [0.02 * torch.randn(config.context, width, generator=generator) for generator in generators]
        self.places = nn.Parameter(torch.stack(places))
        self.blocks = nn.ModuleList(Block(generators, width, config.heads) for _ in range(config.blocks))
        self.head = Linear(generators, 1, width, sizes.action, 0.01, whole=True)

    def check(self, data: Trajectories) -> None:
        """Refuse data without a single whole context."""
        longest = int((data.last - data.first).max()) + 1
        if self.config.context > longest:
            context = self.config.context
            raise UserError(f"a context of {context} states is longer than any episode; the longest has {longest}")

    def draw(self, experience: Experience, generator: torch.Generator) -> Contexts:
        """A context begins anywhere in an episode and may end with it; its goal comes later than its last action."""
        c, data = self.config, experience.data
        first = data.draw((self.seeds, c.batch), generator, c.by_episode)
        rows = first[..., None] + torch.arange(c.context, device=first.device)
        last = data.last[first][..., None]
        acted = torch.minimum(rows[..., -1:], last - 1)[..., 0]
        aims = experience.sample_goals(data, acted, c.actor_goals, c.discount, generator)
        recorded, rows = (rows < last).float(), torch.minimum(rows, last)
        shape = (self.seeds, c.batch, c.blocks, 2, c.width)
        kept = torch.rand(shape, device=first.device, generator=generator) >= c.dropout
        goals = data.goals(data.observations[aims])
        return Contexts(data.observations[rows], data.actions[rows], goals, recorded, kept)

    def loss(self, batch: Contexts) -> Tensor:
        """L(π) = E ‖π(s₁, a₁, …, sᵢ, g) − aᵢ‖² / dim(a), over all states of all contexts → [S, 1]."""
        scales = batch.kept / (1 - self.config.dropout)
        answers = self.answers(batch.observations, batch.actions[:, :, :-1], self.goal_token(batch.goals), scales)
        errors = (answers - batch.actions).square().mean(-1) * batch.recorded
        return errors.sum((1, 2))[:, None] / batch.recorded.sum((1, 2))[:, None]

    def goal_token(self, goals: Tensor) -> Tensor:
        """Goals [S, B, goal] → [S, B, 1, width]."""
        return self.goal(goals)[:, :, None]

    def answers(self, observations: Tensor, actions: Tensor, goal: Tensor, scales: Tensor | None = None) -> Tensor:
        """Actions [S, B, T, act] for states [S, B, T, obs], the actions between them, and the goal's token."""
        places = self.places[:, None]
        seen = _each(self.state, observations) + places
        done = _each(self.action, actions) + places[:, :, :-1]
        pairs = torch.stack([seen[:, :, :-1], done], 3).flatten(2, 3)  # s₁, a₁, s₂, a₂, …
        x = torch.cat([goal, pairs, seen[:, :, -1:]], 2)
        for number, block in enumerate(self.blocks):
            x = block(x, None if scales is None else scales[:, :, number])
        return _each(self.head, _norm(x[:, :, 1::2])).tanh()

    @torch.no_grad()
    def begin(self, goals: Tensor) -> None:
        """Forget everything: E episodes start, with goals [S, E, goal]."""
        seeds, episodes, _ = goals.shape
        context = self.config.context
        self._goal = self.goal_token(goals)
        self._states = goals.new_zeros(seeds, episodes, context, self.sizes.observation)
        self._actions = goals.new_zeros(seeds, episodes, context - 1, self.sizes.action)
        self._previous = goals.new_zeros(seeds, episodes, self.sizes.action)
        self._steps = 0

    def act(self, observations: Tensor, goals: Tensor) -> Tensor:
        """The answer to the present state, which is remembered with it; goals are those that `begin` was given."""
        place = min(self._steps, self.config.context - 1)
        if self._steps > place:
            self._states, self._actions = self._states.roll(-1, 2), self._actions.roll(-1, 2)
        if place > 0:
            self._actions[:, :, place - 1] = self._previous
        self._states[:, :, place] = observations
        self._previous = self.answers(self._states, self._actions, self._goal)[:, :, place]
        self._steps += 1
        return self._previous


def _each(layer: nn.Module, x: Tensor) -> Tensor:
    """A linear layer on each token, [S, B, L, in] → [S, B, L, out]."""
    return layer(x.flatten(1, 2)).unflatten(1, x.shape[1:3])


def _norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=1e-5)
