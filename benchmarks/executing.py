"""How far a body is from its plan of whole states while it executes it: metres of its place, radians of its joints.

    python benchmarks/executing.py --names antmaze-giant-stitch-v0-15d antmaze-giant-stitch-v0-29d --problems 100

Random problems, one plan each, followed in each of the three ways. After 10, 50 and 200 steps the body is compared with
the planned state at which its follower has it: by time, that of the moment; by progress and by phase, the nearest one.
Joints and torso are compared by the mean of the absolute differences of their angles. Episodes that have ended before
are left out. With `--controllers` other controllers than the planner's own follow the same plans.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import tyro
from figures import Figures
from world_speed import far_apart

from compdiffuser import Planner
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.rollout import evaluate
from compdiffuser.following.controllers import controller_for
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.inverse_dynamics import load_controller
from compdiffuser.following.settings import By, Following
from compdiffuser.types import Array

MOMENTS = (10, 50, 200)
TORSO, JOINTS = slice(3, 7), slice(7, 15)
"""Columns of an ant's observation: the quaternion of its torso, and the angles of its legs."""


@dataclass(frozen=True)
class Benchmark:
    names: tuple[str, ...] = ("antmaze-giant-stitch-v0-15d", "antmaze-giant-stitch-v0-29d")
    ways: tuple[By, ...] = ("progress", "phase", "time")
    controllers: tuple[Path, ...] = ()
    """Folders of controllers; by default each planner's own."""
    problems: int = 100
    candidates: int = 64
    workers: int | None = None
    out: Path = Path("results/executing.json")
    hardware: str = "this machine"
    device: str = "auto"


@dataclass
class Watched:
    """A follower whose distance from its plans is noted at some moments."""

    follower: PlanFollower
    step: int = 0
    off: dict[int, Array] = field(default_factory=dict)
    """By moment: metres, radians of joints and of the torso, [n, 3] of the n episodes that last."""

    def reset(self, observations: Array, goals: Array) -> None:
        self.follower.reset(observations, goals)
        self.step, self.off = 0, {}

    def act(self, observations: Array, active: Array) -> Array:
        actions = self.follower.act(observations, active)
        if self.step in MOMENTS:
            self.off[self.step] = np.array([self.away(observations, e) for e in np.flatnonzero(active)]).reshape(-1, 3)
        self.step += 1
        return actions

    def away(self, observations: Array, e: int) -> tuple[float, float, float]:
        """Metres, radians of the joints, radians of the torso between an agent and its planned state."""
        plan, space = self.follower.plans[e], self.follower.space
        planned, reached = plan.states[self.follower.executed(e)], space.planned(observations[e : e + 1])[0]
        metres = float(np.linalg.norm(space.agent(planned) - space.agent(reached)))
        joints = float(np.abs(planned[JOINTS] - reached[JOINTS]).mean())
        one, other = (state[TORSO] / np.linalg.norm(state[TORSO]) for state in (planned, reached))
        return metres, joints, 2 * float(np.arccos(np.clip(abs(one @ other), 0, 1)))


def main() -> None:
    options = tyro.cli(Benchmark)
    figures = Figures(options.out, "python benchmarks/executing.py", options.hardware, "executing", add=True)
    for name in options.names:
        planner = Planner.from_pretrained(name, device=options.device)
        world = planner.preset
        controllers = [load_controller(folder) for folder in options.controllers] or [controller_for(world)]
        problems = [(problem.start, problem.goal) for problem in far_apart(world, options.problems)]
        with EnvironmentPool(world.domain, options.workers) as pool:
            for controller in controllers:
                read = len((controller.space or world.space).dims)
                for way in options.ways:
                    following = Following(by=way, replan=False, options={"n_candidates": options.candidates})
                    watched = Watched(PlanFollower(planner, world, following, controller))
                    evaluate(
                        watched, replace(world, domain=pool.domain), None, 1, 0, max(MOMENTS) + 1, pool=pool,
                        placements=problems,
                    )  # fmt: skip
                    note(figures, f"{name}, by {way}, controller of {read}D", watched)


def note(figures: Figures, row: str, watched: Watched) -> None:
    for moment, off in watched.off.items():
        units = (("place, m", "m"), ("joints, rad", "rad"), ("torso, rad", "rad"))
        for (what, unit), value in zip(units, off.mean(axis=0), strict=True):
            figures.note(
                f"{row}: {what} after {moment}", float(value), unit, row=row, column=f"{what} after {moment}",
                episodes=len(off),
            )  # fmt: skip


if __name__ == "__main__":
    main()
