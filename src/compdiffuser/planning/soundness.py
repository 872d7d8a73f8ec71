"""How good a planner is by now, told while it is trained: plans between random recorded states, none of a benchmark's.

Nobody should plan with a model that has learned nothing, and a loss says little to people.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from compdiffuser.compose.schedule import SamplerConfig
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.planner import Planner
from compdiffuser.types import Episodes, counted

PAIRS, CANDIDATES = 8, 4
SHARES = (0.25, 0.5, 0.75)
"""Of the training, after which soundness is told; it is told of the finished planner too."""


def soundness(checkpoint: Checkpoint, episodes: Episodes, device: str, seed: int = 0) -> str:
    """A sentence: how many of some random recorded pairs are planned, certified and, where walls are known, sound."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(episodes.observations), size=(2, PAIRS))
    starts, goals = (checkpoint.preset.space.planned(episodes.observations[each]) for each in rows)
    planner = Planner(checkpoint, device, PlanConfig(SamplerConfig(steps=8, repeats=3), refine=None))
    plans = planner.plan_batch(starts, goals, n_candidates=CANDIDATES, seed=list(range(PAIRS)))
    certified = [plan for plan in plans if plan.ok]
    walls = "" if checkpoint.preset.maze is None else f", {sum(p.fault() is None for p in certified)} of these sound"
    return f"{len(certified)} of {counted(PAIRS, 'random recorded pair')} certified{walls}"


@dataclass
class Reports:
    """Tells soundness, on stderr, whenever a share of the training is done, and at its end."""

    steps: int
    every: int
    """Updates between two looks."""
    episodes: Episodes
    device: str
    looks: int = 0
    told: list[float] = field(default_factory=list)

    def see(self, checkpoint: Callable[[], Checkpoint]) -> None:
        """Look after some more updates; the checkpoint of then is made where it is due."""
        self.looks += 1
        done = self.looks * self.every / self.steps
        due = [share for share in SHARES if share <= done and share not in self.told]
        if due and done < 1:
            self.told += due
            self._tell(f"after {self.looks * self.every:,} updates", checkpoint())

    def finished(self, checkpoint: Checkpoint) -> None:
        self._tell("finished", checkpoint)

    def _tell(self, when: str, checkpoint: Checkpoint) -> None:
        print(f"{when}: {soundness(checkpoint, self.episodes, self.device)}", file=sys.stderr)
