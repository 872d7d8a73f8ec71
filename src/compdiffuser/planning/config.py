"""How a planner makes and chooses its candidates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from compdiffuser.compose.schedule import SamplerConfig
from compdiffuser.types import UserError


@dataclass(frozen=True)
class PlanConfig:
    """How candidates are made and chosen."""

    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    score: Literal["reconstruction", "overlap"] = "reconstruction"
    """Choose by reconstruction error, or by overlap distance as the paper does."""
    blending: str = "exponential"
    """How overlapping chunks are merged."""
    certify: float = 0.995
    """A plan is certified when its worst chunk errs, and strays, no more than this quantile of the data's chunks."""
    wave: int | None = None
    """Candidates per wave; by default 64 on a GPU and 8 on a CPU."""
    refine: float | None = 1.0
    """After each wave the best candidates are noised up to this σ and denoised again. None: never."""
    scaffold: float | Literal["auto"] | None = "auto"
    """Half of the fresh candidates begin from a way through the recorded states, noised up to this σ, or the schedule's
    next level below. None: all from pure noise; "auto": as the planner's preset says."""

    def __post_init__(self) -> None:
        known = self.scaffold is None or self.scaffold == "auto"
        if not known and not (isinstance(self.scaffold, float | int) and self.scaffold > 0):
            raise UserError(f"a scaffold is noised up to a level above 0, not to {self.scaffold}")
