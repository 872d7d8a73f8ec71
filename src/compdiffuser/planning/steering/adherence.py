"""Whether plans keep to what steers them: out of regions, valid everywhere, through their waypoints in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merged_length
from compdiffuser.planning.steering.ground import Ground, on_lines
from compdiffuser.planning.steering.steering import Course, Steering, told_room

CLOSED = "the regions close every way that the data knows"


@dataclass
class Kept:
    """What one chain was measured to do; measures as in a verdict."""

    measures: dict[str, float] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    """For each test that it fails, where."""
    broken: list[int] = field(default_factory=list)
    """Its chunks that are where they must not be."""


def kept(chunks: Tensor, chains: Chains, courses: Sequence[Course | None], ground: Ground, overlap: int) -> list[Kept]:
    """How each chain keeps to its course; chunks [M, H, D] agree where they overlap, and are normalized."""
    found = [Kept() for _ in courses]
    states = ground.normalizer.denormalize(chunks)
    kinds = {id(course.steering): course.steering for course in courses if course is not None}
    for steering in kinds.values():
        mine = [c for c, course in enumerate(courses) if course is not None and course.steering is steering]
        part, rows = (chains, slice(None)) if len(mine) == len(courses) else chains.select(torch.tensor(mine))
        for test in (_avoided, _valid, _passed):
            test(states[rows], part, steering, ground, overlap, [found[c] for c in mine])
    for course, one in zip(courses, found, strict=True):
        if course is not None and course.closed and "avoid" in one.where:
            one.where["avoid"] += f"; {CLOSED}"
    return found


def _avoided(
    states: Tensor, chains: Chains, steering: Steering, ground: Ground, overlap: int, found: list[Kept]
) -> None:
    """Metres of room that each chain has too little, in units of how exactly plans end."""
    if not steering.avoid:
        return
    points, apart = ground.between(states, ground.parts)
    rooms = ground.room(steering.avoid, points)  # [R, M, n]
    # Nobody is asked for more room than its own start and goal have.
    ends = torch.stack([ground.normalizer.denormalize(end) for end in (chains.start, chains.goal)])
    allowed = ground.room(steering.avoid, ends).amin(dim=1).clamp(max=0)  # [R, M]
    rooms = on_lines(rooms, apart) - allowed[..., None]
    least, place = rooms.flatten(2).min(dim=2)  # [R, M]
    room, which = least.min(dim=0)
    # Numbers of regions and points are exact as floats: a GPU is waited for once for all three.
    numbers = torch.stack([room, which.to(room), place.gather(0, which[None])[0].to(room)]).tolist()
    rows = ((metres, int(region), int(point)) for metres, region, point in zip(*numbers, strict=True))
    told = [(metres, steering.avoid[region], point // ground.parts) for metres, region, point in rows]
    unit = ground.gap(ground.space.positions[0])
    for chain, one in enumerate(found):
        own = told[chains.rows(chain)]
        k, (metres, region, state) = min(enumerate(own), key=lambda each: each[1][0])
        one.measures["avoid"] = max(1 - metres / unit, 0.0)
        one.broken += [number for number, each in enumerate(own) if each[0] < 0]
        if metres < 0:
            at, count = _time(k, state, len(own), states.shape[1], overlap)
            one.where["avoid"] = f"{region} at state {at} of {count}, by {-metres:.2f} m"


def _valid(states: Tensor, chains: Chains, steering: Steering, ground: Ground, overlap: int, found: list[Kept]) -> None:
    """The same for a validity function, at points along each step."""
    if steering.valid is None:
        return
    points, _ = ground.between(states, ground.most_parts)
    flat = points.flatten(0, 1).cpu().numpy().astype(np.float32)
    rooms = told_room(steering.valid(flat), len(flat)).reshape(points.shape[:2])
    unit = ground.gap(ground.space.positions[0])
    for chain, one in enumerate(found):
        own = rooms[chains.rows(chain)]
        k, point = (int(place) for place in np.unravel_index(own.argmin(), own.shape))
        metres = float(own[k, point])
        one.measures["valid"] = max(1 - metres / unit, 0.0)
        one.broken += np.flatnonzero(own.min(axis=1) < 0).tolist()
        if metres < 0:
            at, count = _time(k, point // ground.most_parts, len(own), states.shape[1], overlap)
            one.where["valid"] = f"at state {at} of {count}"


def _passed(
    states: Tensor, chains: Chains, steering: Steering, ground: Ground, overlap: int, found: list[Kept]
) -> None:
    """How far a chain misses the waypoint that it misses most, passing all in order."""
    if not steering.via:
        return
    stride = states.shape[1] - overlap
    states = states.cpu()  # once; each chain is decided by numbers
    for chain, one in enumerate(found):
        own = states[chains.rows(chain)]
        path = torch.cat([own[:-1, :stride].flatten(0, 1), own[-1]])
        worst = path.new_zeros(len(path))
        missed = []
        for stop in steering.via:
            group = ground.passing(stop)
            away = (path[:, list(group.columns)] - path.new_tensor(stop.place)).norm(dim=-1)
            # The best moment up to now for this one, after all before it.
            worst = torch.maximum(worst, away / (stop.within or ground.gap(group))).cummin(dim=0).values
            missed.append((float(worst[-1]), float(away.min()), stop))
        one.measures["via"] = missed[-1][0]
        if missed[-1][0] > 1:
            _, metres, stop = next(each for each in missed if each[0] > 1)
            one.where["via"] = f"{stop}, which it passes at {metres:.2f} m"


def _time(chunk: int, state: int, count: int, horizon: int, overlap: int) -> tuple[int, int]:
    """The state of a plan that is a chunk's, and how many there are."""
    return chunk * (horizon - overlap) + state, merged_length(count, horizon, overlap)
