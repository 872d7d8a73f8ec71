"""The paper's preset, field by field: every field is told, and has the value that the paper or its code gives it."""

import pytest

from compdiffuser.cli.choices import CANDIDATES
from compdiffuser.reporting.fidelity import NOT_STATED, ROWS, render_fields, values

OURS = values()
LISTED = [name for row in ROWS for name in row.fields]
ELSEWHERE = {
    # Follow from the dataset, and are told of its chunks.
    "model.horizon", "model.overlap", "model.dim", "model.network", "objective.overlap", "chunks.stride", "chunks.most",
    "chunks.scaffold", "chunks.back_padding", "chunks.frame", "model.frame",
    # Without effect on what is learned or planned by the paper's way.
    "objective.ahead_ratio", "sampler.window", "plan.sampler", "plan.certify", "plan.wave", "plan.support",
    "training.precision", "training.updates_per_replay", "training.checkpoint_every", "training.log_every",
    "training.seed", "training.time_limit",
}  # fmt: skip

PAPER = {
    "chunks.horizon": 160, "chunks.count": 8, "network.architecture": "unet1d", "network.width": 128,
    "network.depth": 4, "model.neighbours": "encoder", "model.formulation": "paper", "objective.sides": "losses",
    "objective.nothing": 0.2, "objective.ahead_by": "step", "training.steps": 1_200_000, "training.batch": 128,
    "training.learning_rate": 2e-4, "training.schedule": "constant", "training.weight_decay": 0.0,
    "sampler.order": "autoregressive", "plan.score": "overlap", "plan.blending": "exponential",
}  # fmt: skip
"""What the paper states."""
CODE = {
    "chunks.overlap": 56, "chunks.front_padding": 64, "model.ends": "inpaint", "objective.ahead": 0.5,
    "objective.positions": None,
    "training.beta2": 0.999, "training.warmup": 0, "training.clip": None, "training.ema": 0.995,
    "training.ema_every": 10, "sampler.steps": 50, "sampler.repeats": 1, "sampler.guidance": 2.0, "sampler.hold": True,
    "sampler.clamp": True, "sampler.told": "step", "candidates": 40, "plan.refine": None, "plan.scaffold": None,
}  # fmt: skip
"""What the paper leaves open, from its authors' code."""


def test_every_field_is_listed_or_has_a_reason_not_to_be():
    assert set(LISTED) | ELSEWHERE == set(OURS)
    assert not set(LISTED) & ELSEWHERE


@pytest.mark.parametrize(("name", "value"), [*PAPER.items(), *CODE.items()])
def test_a_field_is_the_papers_or_its_codes(name, value):
    assert OURS[name] == value
    assert name in LISTED


@pytest.mark.parametrize("name", CODE)
def test_what_is_not_stated_is_marked(name):
    rows = [row for row in ROWS if name in row.fields]
    stated = {"objective.ahead", "training.beta2", "training.warmup", "candidates"}  # in part
    assert all((row.paper is None) == (name not in stated) for row in rows)
    assert f"*{NOT_STATED}*" in render_fields(())


def test_candidates_are_those_of_the_command():
    assert CANDIDATES["paper"] == OURS["candidates"]
