"""From what a planner is asked to searches: checked problems with their K, their ways and what steers them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from compdiffuser.checks import brief
from compdiffuser.compose.merge import merged_length, split
from compdiffuser.planning.problem import (
    MOST_CANDIDATES,
    Chunks,
    check_pairs,
    checked,
    chunk_choices,
    distances,
    each_chunks,
    one_each,
)
from compdiffuser.planning.recorded.moves import split_groups
from compdiffuser.planning.roads.goals import endings, whole_goals
from compdiffuser.planning.roads.roadmap import length, paced
from compdiffuser.planning.search import Search
from compdiffuser.planning.steering.steering import Course, Steering
from compdiffuser.planning.steering.ways import Router
from compdiffuser.presets import MOST_CHUNKS
from compdiffuser.types import Array, UserError

if TYPE_CHECKING:
    from compdiffuser.planning.planner import Planner

WAVE = {"cuda": 64, "cpu": 8}
"""Candidates at a time that a device makes well."""
OPENING = {"cuda": 32, "cpu": 4}
"""Scaffolds of a first wave: half of one that follows."""
DRAWS = 8
"""How many of these share a K. The K whose even pace comes nearest to the data's are tried, two at least."""
LONGER = 2
"""Times as many chunks as bridge the way of a steered plan may be tried, also where that is more than usual."""
POSTURE_LEVEL = 1.0
"""σ up to which scaffolds are noised where postures are planned, which are found on the way."""


def usual_level(planner: Planner) -> float | None:
    """σ up to which scaffolds are noised where nothing else is asked for."""
    usual = planner.preset.chunks.scaffold
    return usual if usual is None or planner.space.only_places else POSTURE_LEVEL


def scaffold_level(planner: Planner) -> float | None:
    """σ up to which scaffolds are noised; None where all fresh candidates begin from pure noise.

    Raises UserError where one is asked for by its level, but postures are planned and none are known.
    """
    asked = planner.config.scaffold
    if asked not in ("auto", None) and not planner.lays:
        raise UserError(f"a scaffold of level {asked} was asked for, but no recorded postures are known here")
    if planner.support is None or not planner.lays:
        return None
    return usual_level(planner) if asked == "auto" else asked


@dataclass(frozen=True)
class Setting:
    """One problem with what the data knows of it."""

    problem: int
    way: Tensor | None = None
    """[n, P], normalized."""
    course: Course | None = None


def set_out(
    planner: Planner,
    starts: Any,
    goals: Any,
    n_chunks: Chunks,
    n_candidates: int | Sequence[int],
    seed: int | Sequence[int],
    steering: Steering | Sequence[Steering | None] | None = None,
    n_ways: int = 1,
) -> list[Search]:
    """A search for each problem and each of its ways. Raises UserError for what cannot be."""
    space, normalizer = planner.space, planner.normalizer
    starts = checked(starts, "start", space, normalizer)
    goals = whole_goals(goals, starts, space, planner.asked)
    goals = checked(goals, "goal", space, normalizer, planner.asked)
    check_pairs(starts, goals)
    most = one_each(n_candidates, len(starts), "numbers of candidates", 1, MOST_CANDIDATES)
    seeds = one_each(seed, len(starts), "seeds")
    chunks = each_chunks(n_chunks, len(starts))
    steered = each_steering(steering, planner.known, len(starts))
    ends = endings(goals, normalizer, planner._recorded, space, planner.asked, planner._recorded_postures)
    targets = np.stack([found[0] for found in ends]) if ends else goals
    places = [space.places(normalizer.normalize(torch.from_numpy(each))) for each in (starts, targets)]
    settings = _settings(planner, starts, goals, places, steered, n_ways)
    choices = _choices(planner, settings, chunks, places)
    wave = planner.config.wave or WAVE.get(planner.device.type, WAVE["cpu"])
    refine, score = planner.config.refine is not None, planner.config.score
    openings = [_opening(planner, each, ks) for each, ks in zip(settings, choices, strict=True)]
    normalized = normalizer.normalize(torch.from_numpy(starts))
    laid = _scaffolds(planner, settings, choices, openings, normalized)
    return [
        Search(
            starts[p], goals[p], ks, most[p], seeds[p], wave, refine, score, scaffolds, opening,
            endings=ends[p], course=each.course, still=_still(planner, starts[p], goals[p], each, chunks),
        )
        for each, ks, opening, scaffolds in zip(settings, choices, openings, laid, strict=True)
        for p in (each.problem,)
    ]  # fmt: skip


def each_steering(
    steering: Steering | Sequence[Steering | None] | None, known: Steering, count: int
) -> list[Steering | None]:
    """What steers each problem, what is known for good included; None where nothing does. Raises UserError."""
    if isinstance(steering, Steering) or steering is None:
        joined = (steering or Steering()).joined(known)
        return [joined if joined else None] * count
    if isinstance(steering, str) or not isinstance(steering, Sequence):
        raise UserError(f"steering is a Steering, or a list of them, not {brief(steering)}")
    if len(steering) != count:
        raise UserError(f"{len(steering)} steerings were given for {count} problems")
    if wrong := [each for each in steering if not isinstance(each, Steering | None)]:
        raise UserError(f"each problem is steered by a Steering or None, not by {brief(wrong[0])}")
    every = [(each or Steering()).joined(known) for each in steering]
    return [each if each else None for each in every]


def _settings(
    planner: Planner,
    starts: Array,
    goals: Array,
    places: Sequence[Tensor],
    steered: Sequence[Steering | None],
    n_ways: int,
) -> list[Setting]:
    free = [p for p, steering in enumerate(steered) if steering is None and n_ways == 1]
    ways: list[Tensor | None] = [None] * len(steered)
    if planner.scaffold is not None and planner.roadmap is not None and free:
        found = planner.roadmap.ways(*(each[free] for each in places))
        for p, way in zip(free, found, strict=True):
            ways[p] = way
    if len(free) == len(steered):
        return [Setting(p, way) for p, way in enumerate(ways)]
    laid = planner.lays and planner.config.scaffold is not None
    router = Router(planner.ground, lambda finer: planner.finer_roadmap if finer else planner.roadmap, laid)
    settings = []
    for p, asked in enumerate(steered):
        if p in free:
            settings.append(Setting(p, ways[p]))
            continue
        steering = asked or Steering()
        planner.ground.check(steering, starts[p], goals[p], planner.asked, planner.preset.maze)
        routes = router.routes(steering, starts[p], places[0][p], places[1][p], n_ways)
        settings += [Setting(p, route.way, route.course) for route in routes]
    return settings


def _choices(
    planner: Planner, settings: Sequence[Setting], chunks: Literal["auto"] | Sequence[int], places: Sequence[Tensor]
) -> list[list[int]]:
    """The K that each setting tries."""
    rows = [each.problem for each in settings]
    given = chunks if chunks == "auto" else [chunks[p] for p in rows]
    lines = distances(places[0][rows], places[1][rows], planner.space, planner.calibration)
    sizes = planner.space.sizes
    far = [
        each.way if each.way is None else [length(part) for part in split_groups(each.way, sizes)] for each in settings
    ]
    usual, most = planner.calibration, planner.preset.chunks.most
    choices = chunk_choices(given, lines, far, usual, most)
    if given == "auto":
        for place, (each, way) in enumerate(zip(settings, far, strict=True)):
            if each.course is not None and way is not None:
                enough = min(max(most, LONGER * usual.fewest_chunks(*way)), MOST_CHUNKS)
                (choices[place],) = chunk_choices("auto", [lines[place]], [way], usual, enough)
    return choices


def _opening(planner: Planner, setting: Setting, choices: Sequence[int]) -> list[int]:
    """The K of a first wave of scaffolds; none where one is steered, or several things move at their own paces."""
    support, model = planner._recorded, planner.model
    steered = setting.course is not None
    if setting.way is None or steered or support is None or support.sizes:
        return []
    usual = length(setting.way) / support.pace
    near = sorted(choices, key=lambda k: abs(math.log(merged_length(k, model.horizon, model.overlap) / max(usual, 1))))
    count = OPENING.get(planner.device.type, OPENING["cpu"])
    tried = near[: max(2, count // DRAWS)]
    return [tried[i % len(tried)] for i in range(count)]


@dataclass
class Scaffolds(Mapping[int, Tensor]):
    """Scaffolds [K, H, D] by their K, of which some are laid when the first of them is asked for."""

    ready: dict[int, Tensor]
    later: Sequence[int]
    lay: Callable[[Sequence[int]], dict[int, Tensor]]

    def __getitem__(self, k: int) -> Tensor:
        if k not in self.ready and k in self.later:
            self.ready |= self.lay(self.later)
            self.later = ()
        return self.ready[k]

    def __iter__(self) -> Iterator[int]:
        yield from (*self.ready, *self.later)

    def __len__(self) -> int:
        return len(self.ready) + len(self.later)


def _scaffolds(
    planner: Planner,
    settings: Sequence[Setting],
    choices: Sequence[Sequence[int]],
    openings: Sequence[Sequence[int]],
    starts: Tensor,
) -> list[Scaffolds]:
    """The scaffolds of each setting; nothing where there is no way to begin from. Openings are laid at once."""
    begun = [each.way is not None and (each.course is None or each.course.way is None) for each in settings]
    known = [sorted(set(ks)) if begun[row] else [] for row, ks in enumerate(choices)]
    first = [sorted(set(opening) or set(ks)) if ks else [] for opening, ks in zip(openings, known, strict=True)]
    ready = _laid(planner, settings, first, starts)

    def later(setting: Setting, ks: Sequence[int]) -> dict[int, Tensor]:
        return _laid(planner, [setting], [ks], starts)[0]

    return [
        Scaffolds(own, [k for k in ks if k not in own], partial(later, setting))
        for setting, own, ks in zip(settings, ready, known, strict=True)
    ]


def _laid(
    planner: Planner, settings: Sequence[Setting], choices: Sequence[Sequence[int]], starts: Tensor
) -> list[dict[int, Tensor]]:
    """Each way [n, P] at an even pace as K chunks [K, H, D], for each K."""
    horizon, overlap = planner.model.horizon, planner.model.overlap
    laid: list[dict[int, Tensor]] = [{} for _ in settings]
    wanted = [(row, k) for row, ks in enumerate(choices) for k in ks]
    ways = ((settings[row].way, merged_length(k, horizon, overlap)) for row, k in wanted)
    paths = [paced(way, count, planner.space.sizes) for way, count in ways if way is not None]
    states = _whole(planner, paths, starts[[settings[row].problem for row, _ in wanted]]) if paths else []
    for (row, k), path in zip(wanted, states, strict=True):
        laid[row][k] = split(path, k, horizon, overlap).to(planner.device)
    return laid


def _whole(planner: Planner, paths: Sequence[Tensor], starts: Tensor) -> Sequence[Tensor]:
    """Paths of places [T, P] as paths of planned states [T, D], from starts [n, D] on."""
    space, postures = planner.space, planner._recorded_postures
    if postures is None:
        order = np.argsort(space.columns).tolist()
        return paths if space.only_positions else [path[:, order] for path in paths]
    longest = max(map(len, paths))
    padded = torch.stack([torch.cat([path, path[-1:].expand(longest - len(path), -1)]) for path in paths])
    states = postures.along(padded, starts)
    return [path[: len(places)] for path, places in zip(states, paths, strict=True)]


def _still(
    planner: Planner, start: Array, goal: Array, setting: Setting, chunks: Literal["auto"] | Sequence[int]
) -> Tensor | None:
    """A chunk [1, H, D] straight to the goal, where that is no further away than the data's longest steps."""
    single = chunks == "auto" or chunks[setting.problem] == 1
    passes = setting.course is not None and bool(setting.course.steering.via)
    end, ground = start.copy(), planner.ground
    for group in planner.asked:
        columns = list(group.columns)
        end[columns] = goal[columns]
        if np.linalg.norm(end - start) > ground.gap(group) / 3:  # a gap is three of those steps
            return None
    if not single or passes:
        return None
    first, last = planner.normalizer.normalize(torch.from_numpy(np.stack([start, end])))
    chunk = torch.lerp(first, last, torch.linspace(0, 1, planner.model.horizon)[:, None])
    return chunk[None].to(planner.device)
