"""Guidance of denoising: after every estimate of the clean chunks, states are moved to where they are wanted.

Half of the squared room that a state lacks has a gradient that leads straight out of a region, exactly as far as room
is missing; so regions move states by it. A waypoint moves the state that is nearest to it, of those around its time,
and its neighbours along. A cost moves all states down its gradient, by less than a step. The next estimate makes of the
moved states what the data would make of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merged_length, split
from compdiffuser.planning.roads.roadmap import paced
from compdiffuser.planning.steering.ground import Ground
from compdiffuser.planning.steering.steering import Course, Steering, cost_of

WIDTH = 4  # a chunk over this is how many states to each side a waypoint moves, and how far off its time it looks
DOWN, EVEN = 0.25, 9  # steps that a cost moves a state at most; states over which that is evened out
LOOSE = 0.5  # σ below which positions are no longer held to a way


@dataclass(frozen=True)
class Pins:
    """Waypoints of one position group, each in a row that may pass it."""

    columns: list[int]
    rows: Tensor
    """None twice, so that a GPU adds in no order of its own. [n]"""
    at: Tensor
    """State of the row that is to be there. [n]"""
    places: Tensor
    """In metres. [n, size]"""


class Guide:
    """A `compose.sample.Steer` for the rows of chains, each with a course or none."""

    def __init__(
        self, courses: Sequence[Course | None], chains: Chains, ground: Ground, shape: tuple[int, int]
    ) -> None:
        self.ground, self.chains = ground, chains
        self.horizon, self.overlap = shape
        device = chains.chain.device
        steered = [None if course is None or course.closed else course.steering for course in courses]
        kinds: dict[int, Steering] = {id(each): each for each in steered if each is not None and each.guidance}
        self.parts = [
            (each, torch.tensor([other is each for other in steered], device=device)[chains.chain])
            for each in kinds.values()
        ]
        self.steered = torch.tensor([course is not None for course in courses], device=device)[chains.chain]
        """Rows that have a course; the others keep their bits. [M]"""
        self.alone = len(self.parts) == 1 and all(each is self.parts[0][0] for each in steered)
        guided = [None if steering is None else course for course, steering in zip(courses, steered, strict=True)]
        self.pins = self._pinned(guided)
        self.along = self._along(guided)

    def __call__(self, clean: Tensor, rows: Tensor, level: Tensor) -> Tensor:
        if self.along is not None:
            places, there = self.along
            columns = self.ground.space.columns
            held = (there[rows] & (level > LOOSE))[:, None, None]
            clean = clean.clone()
            clean[..., columns] = torch.where(held, places[rows], clean[..., columns])
        states = self.ground.normalizer.denormalize(clean)
        moved = torch.zeros_like(states)
        for steering, mine in self.parts:
            push = self._push(steering, states)
            moved += push if self.alone else push * mine[rows][:, None, None]
        for pins in self.pins:
            self._pull(pins, states, rows, moved)
        steered = self.steered[rows][:, None, None]
        return torch.where(steered, self.ground.normalizer.normalize(states + moved), clean)

    def _push(self, steering: Steering, states: Tensor) -> Tensor:
        """How far states [m, H, D] are moved out of regions and down the cost."""
        with torch.inference_mode(False), torch.enable_grad():
            states = states.clone()  # of what was made in inference mode nothing has a gradient
            moved = torch.zeros_like(states)
            if steering.avoid:
                free = states.detach().requires_grad_(True)
                lacking = (self.ground.step - self.ground.room(steering.avoid, free).amin(dim=0)).clamp(min=0)
                (slope,) = torch.autograd.grad(lacking.square().sum() / 2, free)
                moved -= steering.guidance * slope
            if steering.prefer is not None:
                free = states.detach().requires_grad_(True)
                (slope,) = torch.autograd.grad(cost_of(steering.prefer, free).sum(), free)
                # A cost may have no slope where a path stands still.
                slope = slope.nan_to_num(0, 0, 0)
                # Evened out over neighbours: what follows the trembling of single states only adds to it.
                slope = avg_pool1d(slope.transpose(1, 2), EVEN, 1, EVEN // 2, count_include_pad=False).transpose(1, 2)
                steepest = slope.norm(dim=-1).amax(dim=1).clamp(min=1e-12)[:, None, None]
                moved -= DOWN * steering.guidance * self.ground.step * slope / steepest
        return moved

    def _pull(self, pins: Pins, states: Tensor, rows: Tensor, moved: Tensor) -> None:
        """Add to `moved` how far states of `rows` are moved towards waypoints."""
        where = torch.full((len(self.chains),), -1, device=rows.device)
        where[rows] = torch.arange(len(rows), device=rows.device)
        place = where[pins.rows]
        present, place = place >= 0, place.clamp(min=0)
        width = max(self.horizon // WIDTH, 1)
        time = torch.arange(self.horizon, device=rows.device)
        away = pins.places[:, None] - states[place][..., pins.columns]  # [n, H, size]
        late = (time - pins.at[:, None]).abs() > width
        nearest = (away.norm(dim=-1) + late * 1e6).argmin(dim=1)
        weight = (1 - (time - nearest[:, None]).abs() / width).clamp(min=0) * present[:, None]
        pull = weight[..., None] * away[torch.arange(len(place), device=rows.device), nearest][:, None]
        whole = torch.zeros_like(states[place])
        whole[..., pins.columns] = pull
        moved.index_add_(0, place, whole)

    def _along(self, courses: Sequence[Course | None]) -> tuple[Tensor, Tensor] | None:
        """The places [M, H, P] of rows whose course has a way to hold them to, and which rows have one [M]."""
        if not any(course is not None and course.way is not None for course in courses):
            return None
        start = self.ground.space.places(self.chains.start)
        places = start[:, None].repeat(1, self.horizon, 1)
        there = torch.zeros_like(self.chains.has_left)
        for chain, course in enumerate(courses):
            if course is not None and course.way is not None:
                count = int(self.chains.lengths[chain])
                length = merged_length(count, self.horizon, self.overlap)
                path = paced(course.way, length, self.ground.space.sizes)
                rows = self.chains.rows(chain)
                places[rows] = split(path, count, self.horizon, self.overlap).to(places)
                there[rows] = True
        return places, there

    def _pinned(self, courses: Sequence[Course | None]) -> list[Pins]:
        found: dict[tuple[str, int], list[tuple[int, int, tuple[float, ...]]]] = {}
        groups = {group.name: group for group in self.ground.space.positions}
        stride = self.horizon - self.overlap
        for chain, course in enumerate(courses):
            if course is None or not (course.steering.guidance and course.steering.via):
                continue
            turns: Counter[tuple[str, int]] = Counter()
            first, count = int(self.chains.first[chain]), int(self.chains.lengths[chain])
            last = merged_length(count, self.horizon, self.overlap) - 1
            for stop, mark in zip(course.steering.via, course.marks, strict=True):
                time = round(mark * last)
                name = self.ground.passing(stop).name
                for k in range(count):
                    if 0 <= time - k * stride < self.horizon:
                        turn = turns[name, k]
                        turns[name, k] += 1
                        found.setdefault((name, turn), []).append((first + k, time - k * stride, stop.place))
        device, dtype = self.chains.chain.device, self.chains.start.dtype
        return [
            Pins(
                list(groups[name].columns),
                torch.tensor([row for row, _, _ in pins], device=device),
                torch.tensor([at for _, at, _ in pins], device=device),
                torch.tensor([place for _, _, place in pins], device=device, dtype=dtype),
            )
            for (name, _), pins in sorted(found.items())
        ]
