"""What a follower decided for an episode, so that a failed one can be explained."""

from __future__ import annotations

from dataclasses import dataclass

from compdiffuser.planning.plan import Plan


@dataclass(frozen=True)
class Decision:
    """What the follower decided for an episode, and why."""

    step: int
    reason: str
    """"start", "lost" (too far from its subgoal), "ball lost" (a ball is), "stuck" (no progress), "fallen" (on its
    back), "closed" (a region appeared on the way) or "changed" (regions vanished, or waypoints changed)."""
    planned: bool
    """Whether a new plan was made; false where replanning is off or used up, would not help, or is refused, as outside
    the data."""
    n_chunks: int
    """K of the plan that is followed from here on."""
    ok: bool
    """Whether that plan is certified."""
    fault: str | None
    """Why that plan cannot be followed in its maze, where it cannot."""
    origin: str | None = None
    """What that plan began from."""
    verdict: tuple[str, ...] = ()
    """Tests of the judge that it failed."""

    @classmethod
    def of(cls, step: int, reason: str, planned: bool, plan: Plan) -> Decision:
        """The decision to follow that plan from here on, new or not."""
        return cls(step, reason, planned, plan.n_chunks, plan.ok, plan.fault(), plan.origin, plan.verdict.failed)
