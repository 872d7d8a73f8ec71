"""How a body holds itself as it goes: recorded snippets of whole states, kept with planners that plan postures.

Roadmaps, reach and support ask positions alone, since in many dimensions everything is far from everything. Two
questions remain. Which postures belong to a way? Those of snippets that went as far in about the same direction, each
chosen so that it goes on where the one before it ended. And could joints move as a plan says? A *transition* is a
posture, what one step changes of it, and how far the agent goes meanwhile. A chunk is as *odd* as its transitions are,
on average, far from the nearest recorded ones. Episodes that the snippets were not taken from say what is usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from compdiffuser.checks import typed
from compdiffuser.data.windows import Windows
from compdiffuser.domains.space import Space
from compdiffuser.planning.recorded.calibration import WINDOWS, check_quantiles, quantiles, value_at
from compdiffuser.planning.recorded.support import ELEMENTS, HELD_OUT, apart
from compdiffuser.types import UserError

SNIPPET_SPAN = 8  # steps of a snippet
SNIPPETS = 2_048
EVERY = 4  # steps of a chunk, of which one is asked about
ALIKE = 64  # snippets that go about as far in about the same direction, of which the best joined is taken
HERE = 0.1  # how much the place of a snippet counts beside its direction and pace
LEAST_SPREAD = 1e-3  # normalized: a number that varies less counts as if it varied so much


@dataclass(frozen=True)
class Postures:
    """Recorded snippets of planned states, and how odd windows of other episodes are."""

    snippets: Tensor
    """[N, SNIPPET_SPAN + 1, D], normalized."""
    oddities: tuple[float, ...]
    """Quantiles, at `LEVELS`, of how odd windows of the data are."""
    space: Space

    def to(self, device: torch.device) -> Postures:
        return replace(self, snippets=self.snippets.to(device))

    def described(self) -> dict[str, Any]:
        """Everything but the snippets, ready for JSON."""
        return {"oddities": self.oddities}

    @classmethod
    def restored(cls, snippets: Tensor, described: dict[str, Any], space: Space) -> Postures:
        """What `described` tells, with the snippets. Raises UserError where they are not of this space."""
        found = cls(snippets, tuple(described.get("oddities", ())), space)
        typed(found)
        check_quantiles("oddities", found.oddities)
        wanted = (SNIPPET_SPAN + 1, len(space.dims))
        if snippets.ndim != 3 or not len(snippets) or tuple(snippets.shape[1:]) != wanted:
            raise UserError(f"snippets are [N, {wanted[0]}, {wanted[1]}] here, not {list(snippets.shape)}")
        return found

    def threshold(self, quantile: float) -> float:
        """The oddity that this share of the data's windows stays below."""
        return value_at(quantile, self.oddities)

    def oddity(self, chunks: Tensor) -> Tensor:
        """How far, on average, transitions of each chunk are from the nearest recorded ones: [M, H, D] -> [M]."""
        own = self._scaled(self._transitions(chunks)[:, ::EVERY])
        rows = max(1, ELEMENTS // (own.shape[1] * len(self._recorded)))
        return torch.cat([apart(part, self._recorded).mean(dim=1) for part in own.split(rows)])

    def along(self, places: Tensor, starts: Tensor) -> Tensor:
        """States [B, T, D] at `places` [B, T, P], in postures of snippets, from those of `starts` [B, D] on.

        Equal numbers of states; a way that is shorter rests at its end.
        """
        batch, count, _ = places.shape
        space, posture = self.space, list(self._posture)
        states = starts[:, None].repeat(1, count, 1)
        states[:, :, space.columns] = places
        agent = self.space.agent(states)
        last = starts[:, posture]
        begins = torch.arange(0, count, SNIPPET_SPAN, device=places.device)
        here = agent[:, begins]
        gone = agent[:, (begins + SNIPPET_SPAN).clamp(max=count - 1)] - here
        wanted = torch.cat([gone / self._pace, HERE * here], dim=-1)  # [B, n, 4]
        near = torch.cdist(wanted, self._going).topk(min(ALIKE, len(self._going)), largest=False).indices
        for begin, alike in zip(begins.tolist(), near.unbind(dim=1), strict=True):
            apart = (self._first[alike] - last[:, None]) / self._spread
            chosen = alike[torch.arange(batch, device=alike.device), apart.square().mean(dim=-1).argmin(dim=1)]
            there = slice(begin, min(begin + SNIPPET_SPAN, count))
            snippet = self.snippets[chosen][:, :, posture]
            states[:, there, posture] = snippet[:, : states[:, there].shape[1]]
            last = snippet[:, -1]
        states[:, 0, posture] = starts[:, posture]
        return states

    def near(self, places: Tensor, count: int) -> Tensor:
        """For each of the agent's places [P, 2], `count` recorded states [P, count, D] from around there."""
        states = self.snippets[:, 0]
        rows = (
            torch.cdist(places.to(states), self.space.agent(states))
            .topk(min(count, len(states)), largest=False)
            .indices
        )
        return states[rows]

    @cached_property
    def _posture(self) -> Sequence[int]:
        """Columns of a planned state that are no positions."""
        places = set(self.space.columns)
        return [column for column in range(len(self.space.dims)) if column not in places]

    @cached_property
    def _first(self) -> Tensor:
        """The posture [N, Q] that each snippet begins with."""
        return self.snippets[:, 0][:, list(self._posture)]

    @cached_property
    def _spread(self) -> Tensor:
        return self._first.std(dim=0).clamp(min=LEAST_SPREAD)

    @cached_property
    def _gone(self) -> Tensor:
        """How far [N, 2] the agent goes in each snippet."""
        return self.space.agent(self.snippets[:, -1]) - self.space.agent(self.snippets[:, 0])

    @cached_property
    def _pace(self) -> Tensor:
        return self._gone.std(dim=0).clamp(min=LEAST_SPREAD)

    @cached_property
    def _going(self) -> Tensor:
        """Direction and pace of each snippet, and a little of where it begins. [N, 4]"""
        return torch.cat([self._gone / self._pace, HERE * self.space.agent(self.snippets[:, 0])], dim=-1)

    def _transitions(self, states: Tensor) -> Tensor:
        """Of states [M, H, D], each posture, its change, and the agent's: [M, H − 1, 2·Q + 2]."""
        posture = states[..., list(self._posture)]
        parts = [posture[:, :-1], posture.diff(dim=1), self.space.agent(states).diff(dim=1)]
        return torch.cat(parts, dim=-1)

    @cached_property
    def _scales(self) -> tuple[Tensor, Tensor]:
        """Mean and weight of each number of a transition: postures count as much as changes do."""
        found = self._transitions(self.snippets).flatten(0, 1)
        postures = len(self._posture)
        shares = torch.cat([found.new_full((n,), n**-0.5) for n in (postures, found.shape[1] - postures)])
        return found.mean(dim=0), shares / found.std(dim=0).clamp(min=LEAST_SPREAD)

    def _scaled(self, transitions: Tensor) -> Tensor:
        middle, weight = self._scales
        return (transitions - middle) * weight

    @cached_property
    def _recorded(self) -> Tensor:
        return self._scaled(self._transitions(self.snippets)).flatten(0, 1)


def measure_postures(windows: Windows, seed: int = 0, count: int = SNIPPETS) -> Postures | None:
    """Sample `count` snippets of the data, and measure windows of other episodes by their transitions.

    None where nothing but positions is planned, or chunks are shorter than a snippet.
    """
    space = windows.space
    if space.only_places or windows.horizon <= SNIPPET_SPAN:
        return None
    generator = torch.Generator(windows.states.device).manual_seed(seed + 2)
    kept, held = windows.held_out(HELD_OUT, generator)
    chunks = kept.sample(count, generator)
    begin = torch.randint(windows.horizon - SNIPPET_SPAN, (count,), generator=generator, device=chunks.device)
    rows = begin[:, None] + torch.arange(SNIPPET_SPAN + 1, device=chunks.device)
    snippets = chunks[torch.arange(count, device=chunks.device)[:, None], rows]
    postures = Postures(snippets.half().float(), (), space)
    oddities = postures.oddity(held.sample(WINDOWS, generator)).cpu().numpy()
    return replace(postures, oddities=quantiles(oddities))
