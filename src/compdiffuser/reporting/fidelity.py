"""Field by field: what the paper says, what its authors' code does, what `--preset paper` and `--sampler paper` do.

The first two columns were read in the paper and in the code; the third is asked of the configs themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.presets import preset
from compdiffuser.reporting.grid import Result, markdown

GIANT = "pointmaze-giant-stitch-v0"
CANDIDATES = 40
"""As `compdiffuser eval --sampler paper` makes them."""
NOT_STATED = "not stated"


@dataclass(frozen=True)
class Row:
    """One field or a few that belong together."""

    what: str
    paper: str | None
    """None: the paper does not state it."""
    code: str
    fields: tuple[str, ...]
    """Names of our fields, `part.name`; their values are shown."""


ROWS: tuple[Row, ...] = (
    Row("states per chunk H", "160", "160", ("chunks.horizon",)),
    Row("states shared by neighbours O", None, "56", ("chunks.overlap",)),
    Row("chunks K", "8", "9 in the first release, then 8", ("chunks.count",)),
    Row("copies of the first state before an episode", None, "64", ("chunks.front_padding",)),
    Row("network for x and y", "conditional U-Net", "conditional U-Net", ("network.architecture",)),
    Row("channels of its levels", "128, 256, 512, 1024", "128, 256, 512, 1024", ("network.width", "network.depth")),
    Row("noisy neighbours", "encoded, then given to the denoiser", "an encoder for each side", ("model.neighbours",)),
    Row("start and goal", None, "written over the noisy chunk's ends", ("model.ends",)),
    Row("network predicts", "τ⁰", "τ⁰", ("model.formulation",)),
    Row("diffusion steps", "512", "512, cosine", ("model.formulation",)),
    Row("losses", "neighbours + start + end", "each side by itself, start and goal together too",
        ("objective.sides", "objective.state")),
    Row("share of positions in the loss", None, "all dimensions count alike", ("objective.positions",)),
    Row("condition dropout", "0.2", "0.2 for each side by itself", ("objective.nothing", "objective.drop")),
    Row("noise of neighbours", "t, and t − 1", "t or t − 1, each as often", ("objective.ahead", "objective.ahead_by")),
    Row("optimizer", "Adam", "Adam, β₂ 0.999", ("training.weight_decay", "training.beta2")),
    Row("learning rate", "2e-4, no schedule", "2e-4, constant",
        ("training.learning_rate", "training.schedule", "training.warmup")),
    Row("batch", "128", "128", ("training.batch",)),
    Row("updates", "1.2M", "2M", ("training.steps",)),
    Row("gradient clipping", None, "none", ("training.clip",)),
    Row("averaged weights", None, "0.995 every 10 updates, from update 2,000 on",
        ("training.ema", "training.ema_every")),
    Row("order", "autoregressive", "autoregressive", ("sampler.order",)),
    Row("sampler", None, "DDIM with η = 1, its noise left out", ("sampler.rule", "sampler.eta", "sampler.fresh")),
    Row("denoising steps", None, "50", ("sampler.steps", "sampler.repeats")),
    Row("guidance", None, "2, away from start and goal alone", ("sampler.guidance", "sampler.unguided")),
    Row("known ends of an estimate", None, "written over it", ("sampler.hold",)),
    Row("estimates", None, "clipped to the data's limits", ("sampler.clamp",)),
    Row("level told of a neighbour ahead", None, "t − 1, whatever it is", ("sampler.told",)),
    Row("candidates", "B", "40", ("candidates",)),
    Row("choice", "smallest mean distance of overlaps", "the same", ("plan.score",)),
    Row("merging", "exponential, β = 2", "exponential, β = 2", ("plan.blending",)),
    Row("what we add", None, "–", ("plan.refine", "plan.scaffold")),
)  # fmt: skip


def render_fields(results: Sequence[Result]) -> str:
    """The table; it needs no results."""
    ours = values()
    body = [
        [row.what, row.paper or f"*{NOT_STATED}*", row.code,
         ", ".join(f"`{name.rpartition('.')[2]}` {shown(ours[name])}" for name in row.fields)]
        for row in ROWS
    ]  # fmt: skip
    return markdown(["field", "paper", "authors' code", "ours"], body)


def values() -> dict[str, Any]:
    """Every value of the paper's recipe for the giant maze and of its sampler, as `part.name`."""
    dataset = preset(GIANT)
    recipe, plan = recipe_for("paper", dataset), PlanConfig.paper()
    parts = {
        "chunks": dataset.chunks, "model": recipe.model, "network": recipe.model.network, "objective": recipe.objective,
        "training": recipe.training, "sampler": plan.sampler, "plan": plan,
    }  # fmt: skip
    found = {f"{part}.{name}": value for part, config in parts.items() for name, value in vars(config).items()}
    return {**found, "network.architecture": recipe.model.network.architecture, "candidates": CANDIDATES}


def shown(value: Any) -> str:
    """A value as the table has it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
