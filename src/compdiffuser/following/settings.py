"""How plans are followed, and when they are given up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from compdiffuser.checks import whole
from compdiffuser.types import UserError

By = Literal["progress", "time", "phase"]


@dataclass(frozen=True)
class Following:
    """How plans are followed and when they are given up."""

    by: By = "progress"
    """By progress along the plan, rid of its loops; the paper's way: at step t planned state t + h, as far ahead as the
    controller was trained for; or by phase: h states after the planned one that is nearest in place and posture."""
    replan: bool = True
    """Whether a lost agent gets a new plan."""
    n_chunks: int | Literal["auto"] = "auto"
    """K of the first plan. A fixed K recedes when replanning; "auto" finds the K that fits at every plan."""
    look_ahead: float | None = None
    """Metres ahead along the plan; the controller's own number where None."""
    window: int = 12
    """States ahead, loops cut out, among which the nearest is looked for."""
    patience: int | None = None
    """Steps without progress after which an agent counts as stuck; the controller's own number where None."""
    rise: bool = True
    """Whether a fallen agent gets up, where its body knows how: an ant rocks until it rolls over (`domains.rising`)."""
    seed: int = 0
    """Of the first plans; each episode's later ones count up from it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Passed on to the planner's `plan_batch`, such as n_candidates."""

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise UserError(f"plans are followed by 'progress', by 'time' or by 'phase', not by '{self.by}'")
        for name in ("replan", "rise"):
            if (value := getattr(self, name)) not in (True, False):
                raise UserError(f"{name} must be true or false, not {value}")
        if self.n_chunks != "auto":
            whole(self, "n_chunks")
        whole(self, "window", least=2)  # with a single state nobody gets ahead
        whole(self, *(["patience"] if self.patience is not None else []))
        whole(self, "seed", least=0)
        if self.look_ahead is not None and not 0 < self.look_ahead < math.inf:
            raise UserError(f"look_ahead must be positive and finite, not {self.look_ahead}")
