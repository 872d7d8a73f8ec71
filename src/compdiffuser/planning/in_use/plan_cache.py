"""A cache of plans in a folder: what a planner was asked before, it need not plan again.

Evaluations of one planner differ mostly in how its plans are followed. Their first plans are the same, since a plan
depends on nothing but the planner, the problem and the seed; and making them is most of the work.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compdiffuser.checks import brief
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.problem import Chunks, check_pairs, each_chunks, one_each, real
from compdiffuser.types import UserError


class PlanCache:
    """A planner with a folder of plans; a `BatchPlanner`."""

    def __init__(self, planner: Planner, folder: str | os.PathLike[str]) -> None:
        self.planner = planner
        self.folder = Path(folder) / fingerprint(planner)

    def plan_batch(
        self, starts: Any, goals: Any, n_chunks: Chunks = "auto", *, seed: int | Sequence[int] = 0, **options: Any
    ) -> list[Plan]:
        """As the planner's own; `options` are the same for all problems.

        Raises UserError for functions among them, and for options that are lists.
        """
        for name, value in options.items():
            if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
                raise UserError(f"{name} is the same for all problems where plans are cached, not {brief(value)}")
        starts, goals = real(starts, "starts are real numbers"), real(goals, "goals are real numbers")
        check_pairs(starts, goals)
        asked = each_chunks(n_chunks, len(starts))
        chunks = [asked] * len(starts) if isinstance(asked, str) else asked
        seeds = one_each(seed, len(starts), "seeds")
        problems = zip(starts.tolist(), goals.tolist(), chunks, seeds, strict=True)
        files = [self.folder / f"{_digest([*problem, options])}.npz" for problem in problems]
        if new := [p for p, file in enumerate(files) if not file.exists()]:
            these: Chunks = asked if isinstance(asked, str) else [asked[p] for p in new]
            made = self.planner.plan_batch(starts[new], goals[new], these, seed=[seeds[p] for p in new], **options)
            for p, plan in zip(new, made, strict=True):
                plan.save(files[p])
        return [Plan.load(file) for file in files]


def fingerprint(planner: Planner) -> str:
    """What tells planners apart: weights, calibration, recorded segments and postures, roadmap, sampler, goal and map.

    Not the device, on which the digits of a plan depend: plans made on a GPU may be followed where there is none.
    Raises UserError for a map that is a function.
    """
    settings: dict[str, Any] = {
        "calibration": planner.calibration.to_dict(),
        "normalizer": planner.normalizer.to_dict(),
        "config": {**asdict(planner.config), "scaffold": planner.scaffold},
        "space": planner.space.to_dict(),
        "asked": planner.asked,
        "chunks": {"most": planner.preset.chunks.most, "stride": planner.preset.chunks.stride},
    }
    if planner.known:
        settings["known"] = planner.known
    tensors = list(planner.denoise.denoiser.state_dict().values())
    if planner.support is not None:
        settings |= planner.support.described()
        tensors += planner.support.arrays().values()
    if planner.postures is not None:
        settings["postures"] = planner.postures.described()
        tensors.append(planner.postures.snippets)
    if planner.scaffold is not None and planner.roadmap is not None:
        tensors += planner.roadmap.tensors()
    return _digest(settings, *(tensor.half().cpu().numpy().tobytes() for tensor in tensors))


def _digest(plain: Any, *parts: bytes) -> str:
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True, default=_plain).encode())
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


def _plain(value: Any) -> Any:
    """What JSON does not know, all of it: text of an array or a function leaves out what tells it from another."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__, **{each.name: getattr(value, each.name) for each in fields(value)}}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if callable(value):
        raise UserError(f"plans cannot be cached where they depend on a function: {value!r}")
    return str(value)
