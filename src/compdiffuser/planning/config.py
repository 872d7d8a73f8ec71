"""How a planner makes and chooses its candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from compdiffuser.checks import brief, is_finite, member
from compdiffuser.compose.merge import BLENDINGS
from compdiffuser.compose.orders import ORDERS
from compdiffuser.compose.schedule import SamplerConfig
from compdiffuser.planning.search import SCORES
from compdiffuser.types import UserError


@dataclass(frozen=True)
class PlanConfig:
    """How candidates are made and chosen."""

    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    score: str = "reconstruction"
    """Choose by reconstruction error, or by overlap distance as the paper does; a key of `SCORES`."""
    blending: str = "exponential"
    """How overlapping chunks are merged; a key of `BLENDINGS`."""
    certify: float = 0.995
    """A plan is certified when its worst chunk errs, and strays, no more than this quantile of the data's chunks."""
    wave: int | None = None
    """Candidates per wave; by default 64 on a GPU and 8 on a CPU."""
    refine: float | None = 1.0
    """After each wave the best candidates are noised up to this σ, or the schedule's next level below, and denoised
    again. None: never."""
    scaffold: float | Literal["auto"] | None = "auto"
    """Every other fresh candidate begins from a scaffold, a way through the recorded states, noised up to this σ or the
    schedule's next level below. None: all from pure noise; "auto": as the planner's preset says."""

    support: bool = True
    """Whether candidates are also judged by the recorded segments, and not by the model alone."""

    def __post_init__(self) -> None:
        if not isinstance(self.sampler, SamplerConfig):
            raise UserError(f"sampler must be a SamplerConfig, not {brief(self.sampler)}")
        if not isinstance(self.support, bool):
            raise UserError(f"support must be true or false, not {self.support}")
        member("score", self.score, SCORES)
        member("blending", self.blending, BLENDINGS)
        if not (is_finite(self.certify) and 0 < self.certify <= 1):
            raise UserError(f"certify is a share above 0 and at most 1, not {self.certify}")
        if self.wave is not None and not (type(self.wave) is int and self.wave >= 1):
            raise UserError(f"a wave is a whole number of at least 1 candidate, not {self.wave}")
        if self.refine is not None and not (is_finite(self.refine) and self.refine > 0):
            raise UserError(f"refined candidates are noised up to a level above 0, not to {self.refine}")
        named = self.scaffold is None or self.scaffold == "auto"
        if not named and not (is_finite(self.scaffold) and float(self.scaffold or 0) > 0):
            raise UserError(f"a scaffold is noised up to a level above 0, not to {self.scaffold}")

    @classmethod
    def paper(cls, order: str = "autoregressive") -> PlanConfig:
        """The paper's way: its sampler in this order, all candidates from pure noise, chosen by overlap distance."""
        return cls(SamplerConfig.paper(order), score="overlap", refine=None, scaffold=None)

    @classmethod
    def authors(cls) -> PlanConfig:
        """As `paper`, with the sampler of its authors' code."""
        return replace(cls.paper(), sampler=SamplerConfig.authors())


SAMPLERS: dict[str, Callable[[], PlanConfig]] = {
    "default": PlanConfig, "paper": PlanConfig.paper, "authors": PlanConfig.authors,
}  # fmt: skip
"""Ways to plan that have a name."""


def configured(sampler: str, changes: Mapping[str, Any]) -> PlanConfig:
    """A way to plan by its name, or the paper's in an order by the order's, with other values of some fields.

    Fields may be the sampler's own. Raises UserError for an unknown name.
    """
    member("sampler", sampler, (*SAMPLERS, *ORDERS))
    config = SAMPLERS[sampler]() if sampler in SAMPLERS else PlanConfig.paper(sampler)
    own = {each.name for each in fields(SamplerConfig)}
    inner = {name: value for name, value in changes.items() if name in own}
    outer = {name: value for name, value in changes.items() if name not in own}
    return replace(config, sampler=replace(config.sampler, **inner), **outer)
