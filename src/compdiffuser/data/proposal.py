"""What to train on data that nobody has tuned anything for: planned dimensions, chunks, and the size of the network.

Everything is read off the data and the machine, so that the same file gives the same proposal, and every choice comes
with its reason. What a user asks for stays.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from compdiffuser.domains import Group, Space
from compdiffuser.presets import ChunkConfig, Preset
from compdiffuser.types import Array, Episodes

SHARE = 0.7
"""Of a short episode (the lower quartile), that a chunk takes."""
GRAIN, LEAST, MOST = 8, 16, 64
"""States of a chunk: a multiple of the first, between the others."""
FEWEST, LARGEST = 8, 48
"""Chunks that automatic planning tries at most."""
SCAFFOLD = 0.25
"""σ of scaffolds: half of the candidates begin along recorded segments."""
ON_GPU = {"width": 256, "depth": 6, "batch": 1024, "steps": 40_000}
ON_CPU = {"width": 128, "depth": 3, "batch": 128, "steps": 6_000}


@dataclass(frozen=True)
class Proposal:
    """A preset for data of one's own, the sizes that suit the machine, and why."""

    preset: Preset
    sizes: dict[str, int]
    """width, depth, batch and steps."""
    reasons: tuple[str, ...]


def propose(
    episodes: Episodes,
    preset: Preset,
    on_gpu: bool,
    *,
    dims_given: bool = False,
    horizon: int | None = None,
    overlap: int | None = None,
    stride: int | None = None,
    sizes_given: Collection[str] = (),
) -> Proposal:
    """The proposal for `episodes`. Chunks stay where they are given, dimensions also where their world is known.

    No reason tells of the sizes that are given, which take the place of those proposed.
    """
    reasons = []
    if not dims_given and preset.domain.make is None and preset.domain.maze is None:
        preset, why = _planned(episodes, preset)
        reasons.append(why)
    chunks, why = _chunks(episodes, preset.space, horizon, overlap, stride)
    sizes, told = sized(on_gpu, sizes_given)
    return Proposal(replace(preset, chunks=chunks), sizes, (*reasons, why, *told))


def sized(on_gpu: bool, given: Collection[str]) -> tuple[dict[str, int], list[str]]:
    """Sizes that suit the machine, and why, of those that are not given."""
    sizes = ON_GPU if on_gpu else ON_CPU
    machine = "there is a GPU" if on_gpu else "there is no GPU"
    told = {name: f"{name} {size}" for name, size in sizes.items()} | {"steps": f"{sizes['steps']:,} updates"}
    network = ", ".join(text for name, text in told.items() if name not in given)
    return dict(sizes), [f"{network}: {machine}"] if network else []


def _planned(episodes: Episodes, preset: Preset) -> tuple[Preset, str]:
    """Which dimensions are planned, and why: a place in the plane or in space, where an observation is nothing else."""
    width = episodes.observations.shape[1]
    named = ", ".join(episodes.names[:width]) if episodes.names else f"{width} numbers"
    third = Space((2,), (Group("height", (0,)),))
    if width == 3 and not wraps(third.planned(episodes.observations)):
        place = (Group("agent", (0, 1, 2)),)
        world = replace(preset.domain, space=Space.of((0, 1, 2), place), position_dims=place)
        return replace(preset, domain=world), f"--dims 0,1,2: observations are {named}, taken for x, y and z"
    dims = tuple(range(min(2, width)))
    told = ",".join(map(str, dims))
    kept = "taken for the agent's place" if width <= 2 else "of which the first two are taken for the agent's place"
    return preset.planning(dims), f"--dims {told}: observations are {named}, {kept}"


def wraps(numbers: Array) -> bool:
    """Whether recorded numbers are an angle that wraps: within a circle, near both ends of it."""
    low, high = float(numbers.min()), float(numbers.max())
    for begin, end in ((-math.pi, math.pi), (0.0, 2 * math.pi), (-180.0, 180.0), (0.0, 360.0)):
        edge = 0.03 * (end - begin)
        if begin - 1e-3 <= low <= begin + edge and end - edge <= high <= end + 1e-3:
            return True
    return False


def _chunks(
    episodes: Episodes, space: Space, horizon: int | None, overlap: int | None, stride: int | None
) -> tuple[ChunkConfig, str]:
    """H, O, stride and the most chunks, and why; those that are given stay."""
    short = float(np.quantile(episodes.lengths, 0.25))
    span = max(SHARE * short, LEAST)
    stride = stride or max(1, math.ceil(span / MOST))
    fitting = int(np.clip(GRAIN * int(span / stride / GRAIN), LEAST, MOST))
    horizon = horizon or max(fitting, GRAIN * math.ceil(2 * (overlap or 0) / GRAIN))
    overlap = 2 * round(3 * horizon / 16) if overlap is None else overlap
    taken = (horizon - 1) * stride + 1
    padding = max(horizon * stride // 4, math.ceil((taken - short) / 2))
    most = _most_chunks(episodes, space, max((horizon - overlap) * stride, 0))  # ChunkConfig names what cannot be
    scaffold = SCAFFOLD if space.only_positions and horizon > GRAIN else None
    why = (
        f"--horizon {horizon} --overlap {overlap} --stride {stride}: three quarters of the episodes have {short:g} "
        f"states or more, and a chunk takes {taken} steps; at most {most} chunks a plan"
    )
    return ChunkConfig(horizon, overlap, stride, 3, most, scaffold, padding, padding), why


def _most_chunks(episodes: Episodes, space: Space, steps: int) -> int:
    """Three times as many chunks as lie on a straight line through all the data, at the pace of its episodes."""
    places = space.places(space.planned(episodes.observations))
    ends = episodes.starts + np.minimum(episodes.lengths, steps + 1) - 1
    gone = space.furthest(places[ends] - places[episodes.starts])
    far = space.furthest(np.ptp(places, axis=0)[None])[0]
    each = max(float(np.median(gone)), 1e-9)
    return int(np.clip(math.ceil(3 * far / each), FEWEST, LARGEST))
