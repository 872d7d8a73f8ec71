"""A recipe is network, objective and training under one name; every field of it can be changed."""

from dataclasses import fields, replace

import pytest
import torch
from test_planner_runs import OWN, lines

from compdiffuser.cli.train import Train
from compdiffuser.models import DenoiserConfig, DiT1dConfig, UNet1dConfig
from compdiffuser.planning.checkpoint import load
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.recipes import CHUNKS, RECIPES, Recipe, recipe_for
from compdiffuser.planning.training import Making, Snapshots, train_planner
from compdiffuser.presets import preset
from compdiffuser.types import UserError

pytestmark = pytest.mark.usefixtures("few_windows")
GIANT = preset("pointmaze-giant-stitch-v0")
PAPER = recipe_for("paper", GIANT)
SMALL = {"width": 8, "depth": 2, "batch": 4, "steps": 3, "log_every": 1}
OTHER = {
    "formulation": "default", "neighbours": "channels", "ends": "channels", "frame": "chunk", "sides": "apart",
    "ahead_by": "uniform", "schedule": "cosine", "precision": "tf32", "width": 64, "depth": 3,
    "drop": 0.05, "state": 0.25, "ahead": 0.25, "nothing": 0.125, "ahead_ratio": 0.25,
    "batch": 7, "learning_rate": 0.001,
    "warmup": 3, "weight_decay": 0.5, "beta2": 0.5, "clip": 2.0, "ema": 0.5, "ema_every": 3,
    "updates_per_replay": 5, "checkpoint_every": 11, "log_every": 13, "positions": 0.25, "steps": 17,
    "seed": 19, "time_limit": 23.0,
}  # fmt: skip
"""Another value than the paper's for every field."""


def parts(recipe: Recipe) -> tuple[object, ...]:
    return recipe.model, recipe.model.network, recipe.objective, recipe.training


def test_the_paper_is_one_name():
    model, _, objective, training = parts(PAPER)
    assert model == DenoiserConfig(160, 56, 2, "paper", "encoder", UNet1dConfig(width=128, depth=4), "inpaint")
    assert (objective.sides, objective.nothing, objective.drop) == ("losses", 0.2, 0.0)
    assert (objective.ahead, objective.ahead_by) == (0.5, "step")
    assert (training.steps, training.batch, training.learning_rate) == (1_200_000, 128, 2e-4)
    assert (training.schedule, training.warmup, training.weight_decay) == ("constant", 0, 0.0)
    assert (training.clip, training.ema) == (None, 0.995)


def test_many_dimensions_take_the_transformer():
    whole = preset("antmaze-giant-stitch-v0").planning(tuple(range(15)))
    assert isinstance(recipe_for("paper", whole).model.network, DiT1dConfig)


@pytest.mark.parametrize("name", RECIPES)
def test_a_single_chunk_has_no_neighbours_to_learn_from(name):
    objective = recipe_for(name, replace(GIANT, chunks=replace(GIANT.chunks, most=1))).objective
    assert objective.sides == "apart"
    assert objective.state >= 0.85


FIELDS = [field.name for part in parts(PAPER) for field in fields(part) if field.name not in CHUNKS]


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_can_be_reached_from_the_command_line(name):
    value = OTHER[name]
    along = {"formulation": ("ahead_by=uniform",), "updates_per_replay": ("ema_every=1",)}.get(name, ())
    if name in ("steps", "seed", "time_limit"):
        command = Train("any", preset="paper", **{name: value})
    else:
        command = Train("any", preset="paper", set=(f"{name}={value}", *along))
    changed = parts(command._recipe(GIANT, {}))
    assert [getattr(part, name) for part in changed if hasattr(part, name)] == [value]
    assert [getattr(part, name) for part in parts(PAPER) if hasattr(part, name)] != [value]


def test_options_change_what_they_name():
    command = Train("any", preset="paper", drop=0.3, ema="none", clip=1.0, width=64, batch=16, schedule="cosine")
    recipe = command._recipe(GIANT, {})
    assert (recipe.objective.nothing, recipe.training.ema, recipe.training.clip) == (0.3, None, 1.0)
    assert (recipe.model.network.width, recipe.training.batch, recipe.training.schedule) == (64, 16, "cosine")
    other = Train("any", preset="paper", architecture="dit1d")._recipe(GIANT, {})
    assert other.model.network == DiT1dConfig()
    loop = Train("any", set=("steps=7", "seed=3", "time_limit=5"))._recipe(GIANT, {}).training
    assert (loop.steps, loop.seed, loop.time_limit) == (7, 3, 5.0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"set": ("colour=1",)}, "a planner has no setting 'colour'; it has ahead, ahead_by, "),
        ({"set": ("beta2=high",)}, "setting 'beta2' cannot be 'high'; its default is 0.99"),
        ({"set": ("width=8",), "width": 16}, "width is given twice, 16 and by --set 8"),
        ({"set": ("steps=8",), "steps": 16}, "steps is given twice, 16 and by --set 8"),
        ({"set": ("width=8", "width=16")}, "width is given twice by --set, at last as '16'"),
        ({"set": ("learning_rate=none",)}, "learning_rate must be a finite number, not None"),
        ({"set": ("learning_rate=true",)}, "learning_rate must be a finite number, not True"),
        ({"set": ("beta2=[1]",)}, "beta2 must be a finite number, not "),
        ({"set": ("clip=" + "9" * 400,)}, "setting 'clip' cannot be '9999"),
        ({"set": ("clip=" + "[" * 3_000,)}, "setting 'clip' cannot be '"),
        ({"formulation": "default"}, "ahead_by step needs the steps of formulation paper"),
        ({"preset": "ours"}, "unknown preset 'ours'; choose one of default, paper, authors"),
    ],
)
def test_settings_that_are_none_are_named(options, sentence):
    with pytest.raises(UserError, match=sentence):
        Train("any", **{"preset": "paper", **options})._recipe(GIANT, {})


@pytest.fixture(scope="module", autouse=True)
def small_encoder():
    """Sizes that a busy CPU does not notice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("compdiffuser.models.encoder.WIDTHS", (8,))
        patch.setattr("compdiffuser.models.encoder.HIDDEN", (16,))
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the paper's recipe, small, with a snapshot."""
    out = tmp_path_factory.mktemp("paper")
    train(out, snapshots=(1e-4,))
    return out


def train(out, name="paper", changes=SMALL, **options):
    recipe = recipe_for(name, OWN).changed(changes)
    return train_planner(
        lines(), OWN, out, model=recipe.model, config=recipe.training, objective=recipe.objective, recipe=name,
        progress=False, **options,
    )  # fmt: skip


def test_another_recipe_does_not_continue_a_run(run):
    with pytest.raises(UserError, match="holds a run with sides losses, not apart; choose another folder"):
        train(run, "authors", {**SMALL, "steps": 6})
    with pytest.raises(UserError, match=r"holds a run with ema 0\.995, not 0\.9; choose another folder"):
        train(run, changes={**SMALL, "steps": 6, "ema": 0.9})


@pytest.mark.parametrize("sampler", ["paper", "authors"])
def test_the_papers_planner_plans_with_its_sampler(run, sampler):
    planner = Planner.from_pretrained(run, "cpu", getattr(PlanConfig, sampler)())
    assert planner.record["recipe"] == "paper"
    plan = planner.plan([0.0, 0.0], [3.0, 3.0], n_chunks=3, n_candidates=2)
    assert plan.states[0] == pytest.approx([0, 0], abs=1e-3)
    assert plan.states[-1] == pytest.approx([3, 3], abs=1e-3)


def test_a_snapshot_is_a_planner(run):
    record = Planner.from_pretrained(run / "after-0.0001", "cpu").record
    assert record["after_seconds"] == 1e-4
    assert 0 < record["after_updates"] <= SMALL["steps"]


def test_who_ends_a_training_at_once_keeps_its_snapshots(tmp_path, monkeypatch):
    see = Making.see

    def pulled(made, moment, average, record):
        see(made, moment, average, record)
        if moment.update == 2:
            raise SystemExit

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(whole, changes={**SMALL, "steps": 3, "log_every": 1})
    monkeypatch.setattr(Making, "see", pulled)
    with pytest.raises(SystemExit):
        train(cut, changes={**SMALL, "steps": 3, "log_every": 1}, snapshots=(1e-6,))
    assert not (cut / "config.json").exists()
    then = Planner.from_pretrained(cut / "after-1e-06", "cpu")
    assert then.record["after_updates"] == 1
    monkeypatch.setattr(Making, "see", see)
    train(cut, changes={**SMALL, "steps": 3, "log_every": 1}, snapshots=(1e-6,))
    ends = [load(folder).denoiser.state_dict() for folder in (whole, cut)]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0]), "a snapshot changes nothing"


@pytest.mark.parametrize("after", [0, -1.0, float("nan")])
def test_a_snapshot_is_of_some_time(after):
    with pytest.raises(UserError, match="a snapshot is kept after a number of seconds above 0, not after"):
        Snapshots((5.0, after))


def test_snapshots_belong_to_the_run_that_passed_their_time():
    fresh, continued = Snapshots((5.0, 10.0, 30.0)), Snapshots((5.0, 10.0, 30.0))
    assert [fresh.passed(seconds) for seconds in (0.0, 4.0, 12.0, 20.0)] == [[], [], [5, 10], []]
    assert [continued.passed(seconds) for seconds in (20.0, 21.0, 30.0)] == [[], [], [30]]
