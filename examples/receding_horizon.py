"""A loop at 10 Hz: plan, follow, and repair the plan when something new stands in the way.

    python examples/receding_horizon.py

The point of pointmaze-medium drives in its real simulator, whose step is 0.1 s. On the way, a region appears across the
plan. `planner.repair` denoises again only the chunks that it concerns, and the drive goes on. A run that is right ends
with "arrived", and with no state inside the region.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from compdiffuser import Disc, Plan, Planner
from compdiffuser.following.follower import PlanFollower

PERIOD = 0.1
"""Seconds between two commands."""


class Held:
    """The plan in use, in the place of a planner: a follower takes what is here, and never plans by itself."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def plan_batch(self, starts, goals, n_chunks="auto", *, seed=0) -> list[Plan]:
        return [self.plan] * len(starts)


@dataclass
class Drive:
    """What happened."""

    arrived: bool = False
    path: list[np.ndarray] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)
    """Seconds that each command took to compute."""
    region: Disc | None = None
    planning: float = 0.0
    repairing: float = 0.0
    repaired: bool = False
    """Whether the repair was certified; where it is not, the loop plans anew."""


def ahead(plan: Plan, place: np.ndarray, share: float) -> np.ndarray:
    """A planned state further on: this share of the way from the nearest one to the plan's end."""
    here = int(np.linalg.norm(plan.states - place, axis=1).argmin())
    return plan.states[here + int(share * (len(plan.states) - 1 - here))]


def drive(planner: Planner, start, goal, *, radius=0.8, appears=0.3, limit=600, paced=False, **options) -> Drive:
    """From start to goal; a region of this radius appears across the plan when a share `appears` of it is done."""
    done, preset = Drive(), planner.preset
    world = preset.domain.make()
    observation, target = world.place(np.array(start, float), np.array(goal, float), seed=0)
    begun = time.perf_counter()
    held = Held(planner.plan(start, goal, **options))
    done.planning = time.perf_counter() - begun
    follower = PlanFollower(held, preset)
    follower.reset(observation[None], target[None])
    for _ in range(limit):
        begun = time.perf_counter()
        place = preset.space.planned(observation)
        if done.region is None and follower.executed(0) >= appears * len(held.plan.states):
            done.region = Disc(tuple(ahead(held.plan, place, 0.4)), radius)
            held.plan = repaired(planner, held.plan, place, done, options)
            follower.reset(observation[None], target[None])
            begun = time.perf_counter()
        action = follower.act(observation[None], np.ones(1, bool))[0]
        done.ticks.append(time.perf_counter() - begun)
        if paced:
            time.sleep(max(0.0, PERIOD - done.ticks[-1]))
        step = world.step(action)
        observation = step.observation
        done.path.append(preset.space.planned(observation))
        if step.success:
            done.arrived = True
            break
    return done


def repaired(planner: Planner, plan: Plan, place: np.ndarray, done: Drive, options: dict) -> Plan:
    """The plan round the new region: repaired, or made anew where the repair is not certified."""
    assert done.region is not None
    begun = time.perf_counter()
    other = planner.repair(plan, at=place, avoid=[done.region], margin=0.2)
    done.repairing = time.perf_counter() - begun
    done.repaired = other.ok
    return other if other.ok else planner.plan(place, plan.goal, avoid=[done.region], margin=0.2, **options)


def main() -> None:
    planner = Planner.from_pretrained("pointmaze-medium-stitch-v0")
    done = drive(planner, (0.0, 0.0), (20.0, 20.0))
    assert done.region is not None
    nearest = min(np.linalg.norm(np.array(place) - done.region.center) for place in done.path)
    print(f"planned in {done.planning:.2f} s, repaired in {done.repairing:.2f} s (certified: {done.repaired})")
    print(f"commands took {1000 * np.median(done.ticks):.1f} ms each, at most {1000 * max(done.ticks):.1f} ms")
    print(f"kept {nearest:.2f} m from the centre of a region of radius {done.region.radius:g} m")
    print(f"{'arrived' if done.arrived else 'did not arrive'} after {len(done.path) * PERIOD:.1f} s")


if __name__ == "__main__":
    main()
