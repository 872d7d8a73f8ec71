"""How good a planner is by now, told while it is trained: plans between random recorded states, none of a benchmark's.

Nobody should plan with a model that has learned nothing, and a loss says little to people.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compdiffuser.compose.schedule import SamplerConfig
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.problem import within
from compdiffuser.training.loop import Moment
from compdiffuser.types import Array, Episodes, counted

PAIRS, CANDIDATES = 8, 4
QUICK = PlanConfig(SamplerConfig(steps=8, repeats=3), refine=None)
SHARES = (0.25, 0.5, 0.75)
"""Of the training, after which soundness is told; it is told of the finished planner too."""


@dataclass(frozen=True)
class Soundness:
    """How many plans between random recorded states can be had."""

    pairs: int
    certified: int
    sound: int | None
    """Of the certified ones, those that enter no wall; None where no walls are known."""

    def __str__(self) -> str:
        walls = "" if self.sound is None else f", {self.sound} of these sound"
        return f"{self.certified} of {counted(self.pairs, 'random recorded pair')} certified{walls}"


def soundness(
    checkpoint: Checkpoint,
    starts: Array,
    goals: Array,
    device: str,
    config: PlanConfig = QUICK,
    candidates: int = CANDIDATES,
) -> Soundness:
    """Plan between some pairs of recorded states [P, D]; quickly, unless another config says otherwise."""
    planner = Planner(checkpoint, device, config)
    plans = planner.plan_batch(starts, goals, n_candidates=candidates, seed=list(range(len(starts))))
    certified = [plan for plan in plans if plan.ok]
    walls = checkpoint.preset.maze is not None
    return Soundness(len(plans), len(certified), sum(p.fault() is None for p in certified) if walls else None)


def random_pairs(states: Array, checkpoint: Checkpoint, pairs: int, seed: int = 0) -> tuple[Array, Array]:
    """Starts and goals [P, D] among states [n, D] where the planner can plan: its units may be those of other data."""
    inside = states[within(states, checkpoint.preset.space, checkpoint.normalizer)]
    starts, goals = inside[np.random.default_rng(seed).integers(len(inside), size=(2, pairs))]
    return starts, goals


@dataclass
class Reports:
    """Tells soundness, on stderr, whenever a share of the training is done, and at its end."""

    episodes: Episodes
    device: str
    seen: float = math.inf
    """Share done when it last looked; what was due before the first look belongs to the run that this one continues."""

    def see(self, moment: Moment, checkpoint: Callable[[], Checkpoint]) -> None:
        """Look after some more updates; the checkpoint of then is made where it is due."""
        due = any(self.seen < share <= moment.done for share in SHARES)
        self.seen = moment.done
        if due and moment.done < 1:
            self._tell(f"after {moment.update:,} updates", checkpoint())

    def finished(self, checkpoint: Checkpoint) -> None:
        self._tell("finished", checkpoint)

    def _tell(self, when: str, checkpoint: Checkpoint) -> None:
        states = checkpoint.preset.space.planned(self.episodes.observations)
        pairs = random_pairs(states, checkpoint, PAIRS)
        print(f"{when}: {soundness(checkpoint, *pairs, self.device)}", file=sys.stderr)
