"""Plans in use that have to change.

A repair keeps what is still good. The chunks that a new region or a shove concerns, and no others, are noised and
denoised between their neighbours; where a detour is longer than what it replaces, chunks are added. The rest of the
plan is held as it was certified.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from compdiffuser.planning.in_use.detours import Rest
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.problem import MOST_CANDIDATES, checked, one_each
from compdiffuser.planning.search import Search
from compdiffuser.planning.steering.regions import Region
from compdiffuser.planning.steering.steering import Cost, Steering, Valid, Waypoint

if TYPE_CHECKING:
    from compdiffuser.planning.planner import Planner

REPAIR_WAVE = {"cuda": 32, "cpu": 1}
"""Candidates at a time: about every second one is certified, and a GPU makes many in the time of one."""
DETOUR_LEVEL = 0.25
"""σ up to which a detour is noised: few levels, also where new plans begin higher and are denoised longer."""


def repaired(
    planner: Planner,
    plan: Plan,
    at: Any = None,
    *,
    avoid: Sequence[Region] = (),
    valid: Valid | None = None,
    prefer: Cost | None = None,
    margin: float = 0.0,
    executed: int | None = None,
    passed: int | None = None,
    n_candidates: int = 16,
    seed: int = 0,
) -> Plan:
    """The plan from the state `at` [D] on, made to keep out of further regions; its own regions and waypoints hold on.

    How many of its states are `executed`, and how many of its waypoints `passed`, is known to who follows it; otherwise
    the state nearest to `at` decides, which a plan that turns back comes by twice.

    Where `at` is on the plan and nothing ahead has to change, the plan is returned as it is; otherwise what lies behind
    is left out. The verdict says whether the repaired plan is certified; where it is not, plan anew.
    """
    begun = time.perf_counter()
    search = renewal(
        planner, plan, at, avoid=avoid, valid=valid, prefer=prefer, margin=margin, executed=executed, passed=passed,
        n_candidates=n_candidates, seed=seed,
    )  # fmt: skip
    if isinstance(search, Plan):
        return replace(search, seconds=time.perf_counter() - begun)
    mender = mending(planner)
    mender.finish([search])
    return mender.result(search, time.perf_counter() - begun)


def rest(plan: Plan, executed: int, left: tuple[Waypoint, ...]) -> Plan:
    """A plan without the chunks that lie behind an agent that has so many states behind it, and waypoints `left`."""
    stride = plan.chunks.shape[1] - plan.overlap
    first = min(executed // stride, plan.n_chunks - 1)
    states = plan.states[first * stride :]
    return replace(plan, states=states, chunks=plan.chunks[first:], start=states[0], via=left)


def mending(planner: Planner) -> Planner:
    """The planner as what `renewal` tells is made with; the same one where it begins with as little noise by itself."""
    usual = planner.config.scaffold == "auto" and planner.space.only_places
    if not usual or planner.scaffold is None or planner.scaffold <= DETOUR_LEVEL:
        return planner
    return planner.with_config(scaffold=DETOUR_LEVEL)


def renewal(
    planner: Planner,
    plan: Plan,
    at: Any = None,
    *,
    avoid: Sequence[Region] = (),
    valid: Valid | None = None,
    prefer: Cost | None = None,
    margin: float = 0.0,
    executed: int | None = None,
    passed: int | None = None,
    n_candidates: int = 16,
    seed: int = 0,
) -> Search | Plan:
    """What `repaired` has to search for, with `mending`; the plan itself where nothing ahead has to change.

    Raises UserError for what cannot be.
    """
    given = Steering.of((), avoid, valid, prefer, margin)
    new = tuple(each for each in (*planner.known.avoid, *given.avoid) if each not in plan.avoid)
    steering = replace(given.joined(replace(planner.known, avoid=())), avoid=(*plan.avoid, *new))
    here = checked([plan.states[0] if at is None else at], "state", planner.space, planner.normalizer)[0]
    (most,) = one_each(n_candidates, 1, "numbers of candidates", 1, MOST_CANDIDATES)
    (seed,) = one_each(seed, 1, "seeds")
    rest = Rest.of(planner, plan, here, steering, executed, passed)
    planner.ground.check(rest.steering, here, plan.goal, planner.asked, planner.preset.maze)
    if not rest.concerned:
        return replace(plan, avoid=steering.avoid)
    chunks, held, closed = rest.renewed()
    wave = planner.config.wave or REPAIR_WAVE.get(planner.device.type, REPAIR_WAVE["cpu"])
    return Search(
        rest.anchor if held[0] else here, plan.goal, [len(chunks)], most, seed, min(wave, most),
        planner.config.refine is not None, planner.config.score, {len(chunks): chunks.to(planner.device)},
        course=rest.course(chunks, closed), held={len(chunks): held},
    )  # fmt: skip
