"""Plans to choose from: the best one, and others that take other ways."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from compdiffuser.planning.plan import Plan
from compdiffuser.planning.steering.steering import Steering
from compdiffuser.planning.steering.ways import WAYS_APART, differ

if TYPE_CHECKING:
    from compdiffuser.planning.planner import Planner


def choice(
    planner: Planner,
    starts: Any,
    goals: Any,
    steering: Steering,
    count: int,
    n_chunks: Any = "auto",
    n_candidates: int = 64,
    seed: int = 0,
    keep_candidates: bool = False,
    watch: Any = None,
) -> Plan:
    """The plan of one problem whose `others` take other ways; fewer than `count` where there are not so many."""
    begun = time.perf_counter()
    searches = planner.searches(starts, goals, n_chunks, n_candidates, seed, steering, count)
    planner.finish(searches, watch)
    plans = [planner.result(search, time.perf_counter() - begun, keep_candidates) for search in searches]
    return chosen(plans, planner)


def chosen(plans: Sequence[Plan], planner: Planner) -> Plan:
    """The first certified of some plans; its `others` are certified too, and no two of them take the same way."""
    first = next((plan for plan in plans if plan.ok), plans[0])
    kept = [first]
    if len(plans) > 1:
        apart = 0.0 if planner.roadmap is None else WAYS_APART * planner.roadmap.radius
        for plan in plans:
            if plan.ok and all(differ(_places(planner, plan), _places(planner, other), apart) for other in kept):
                kept.append(plan)
    return replace(first, others=tuple(kept[1:])) if len(kept) > 1 else first


def _places(planner: Planner, plan: Plan) -> Tensor:
    return planner.space.places(planner.normalizer.normalize(torch.from_numpy(plan.states)))
