"""A training that begins with a planner: with its weights and units, as a run of its own, and with nothing else."""

import shutil
from dataclasses import replace

import pytest
import torch
from test_planner_runs import OWN, SMALL, cut, lines

from compdiffuser.cli.contestants import trained
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.diffusion.objective import ObjectiveConfig
from compdiffuser.domains import Group, Space
from compdiffuser.planning.beginning import Beginning, trained_so_far
from compdiffuser.planning.checkpoint import Checkpoint, load
from compdiffuser.planning.problem import within
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.planning.sharing.publishing import card
from compdiffuser.planning.sharing.soundness import random_pairs
from compdiffuser.planning.training import Making, train_planner
from compdiffuser.presets import own_preset, preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.updater import Updater
from compdiffuser.types import UserError

pytestmark = [pytest.mark.usefixtures("few_windows"), pytest.mark.slow]
QUICK = TrainConfig(steps=4, batch=4, learning_rate=1e-2, warmup=0, log_every=2)


def train(out, begin_with=None, config=QUICK, episodes=None, **options):
    options = {"preset": OWN, **options}
    return train_planner(
        episodes or lines(), out=out, config=config, begin_with=begin_with, progress=False, **options
    )  # fmt: skip


@pytest.fixture(scope="module")
def first(tmp_path_factory, few_windows):
    """The folder of a planner of another objective than the default one, with a snapshot."""
    out = tmp_path_factory.mktemp("runs") / "first"
    objective = replace(recipe_for("default", OWN).objective, drop=0.25)
    train(out, model=SMALL, objective=objective, snapshots=(1e-4,))
    return out


def weights(checkpoint: Checkpoint) -> list[torch.Tensor]:
    return [weight.detach().half() for weight in checkpoint.denoiser.parameters()]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_it_begins_with_the_planners_bits_and_learns_on(first, tmp_path, monkeypatch):
    seen, see = [], Making.see

    def look(made, moment, average, record):
        seen.append((moment.update, [weight.detach().clone() for weight in average]))
        see(made, moment, average, record)

    monkeypatch.setattr(Making, "see", look)
    train(tmp_path, first, replace(QUICK, steps=1, log_every=1))
    assert [update for update, _ in seen] == [0, 1]
    begun = list(load(first).denoiser.parameters())
    assert same(seen[0][1], begun)
    assert not same(seen[1][1], begun)


def test_the_same_seed_gives_the_same_planner(first, tmp_path):
    one, same_seed, other = (train(tmp_path / str(n), first, replace(QUICK, seed=n // 2)) for n in range(3))
    assert same(weights(one), weights(same_seed))
    assert not same(weights(one), weights(other))


def test_a_planner_from_memory_is_the_one_on_disk(first, tmp_path):
    made = train(tmp_path / "memory", load(first))
    assert same(weights(made), weights(train(tmp_path / "disk", str(first))))
    assert made.record["begun_with"]["planner"] == "mine"
    with pytest.raises(UserError, match="cannot begin with a network in ONNX"):
        Beginning.of(replace(load(first), denoiser=object()))


def test_a_killed_run_continues(first, tmp_path, monkeypatch):
    config, update = replace(QUICK, checkpoint_every=2), Updater.update

    def killed(self, step, done):
        if step == 3:
            raise InterruptedError
        update(self, step, done)

    monkeypatch.setattr(Updater, "update", killed)
    with pytest.raises(InterruptedError):
        train(tmp_path / "killed", first, config)
    monkeypatch.setattr(Updater, "update", lambda self, step, done: [steps.append(step), update(self, step, done)])
    steps: list[int] = []
    shutil.copytree(first, tmp_path / "copy")  # the weights count, not where they lie
    made = train(tmp_path / "killed", tmp_path / "copy", config)
    assert steps == [2, 3]
    assert same(weights(made), weights(train(tmp_path / "whole", first, config)))


def test_a_run_that_began_otherwise_is_refused(first, tmp_path):
    begun = train(tmp_path / "begun", first)
    assert begun.record["objective"] == load(first).record["objective"]
    settings = {"model": SMALL, "objective": ObjectiveConfig(**begun.record["objective"])}
    train(tmp_path / "random", **settings)
    for out, other in (("begun", None), ("begun", begun), ("random", first)):
        with pytest.raises(UserError, match=f"{out}' holds a run that began with other weights; choose another folder"):
            train(tmp_path / out, other, **settings)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": replace(SMALL, network=replace(SMALL.network, width=64))}, "width 32, not 64"),
        ({"model": replace(SMALL, neighbours="encoder")}, "neighbours channels, not encoder"),
        ({"model": replace(SMALL, frame="chunk")}, "frame world, not chunk"),
        ({"model": recipe_for("paper", OWN).model}, "architecture dit1d, not unet1d"),
        ({"recipe": "paper"}, "formulation default, not paper"),
        ({"preset": cut(horizon=24)}, "horizon 16, not 24"),
        ({"preset": cut(overlap=6)}, "overlap 4, not 6"),
        ({"preset": cut(stride=2)}, "stride 1, not 2"),
        ({"preset": OWN.planning((1, 0))}, "dims 0,1, not 1,0"),
        ({"method": "dd"}, "method compdiffuser, not dd"),
    ],
)
def test_what_contradicts_the_planner_is_named(first, tmp_path, options, sentence):
    with pytest.raises(UserError, match=f"the training begins with 'first', which has {sentence}$"):
        train(tmp_path, first, **options)


def test_a_planner_in_the_folder_of_the_run_is_refused(first):
    for own, name in ((first, "first"), (first / "after-0.0001", "first/after-0.0001")):
        with pytest.raises(UserError, match=f"begins with '{name}', which lies in '{first}'; choose another --out"):
            train(first, own)


def test_a_line_of_trainings_is_summed_up(first, tmp_path):
    second = train(tmp_path / "second", first, snapshots=(1e-4,))
    outcome, before = second.record["outcome"], load(first).record["outcome"]
    assert second.record["begun_with"] == {"planner": "first", "updates": 4, "seconds": before["seconds"]}
    whole = {"updates": 8, "seconds": before["seconds"] + outcome["seconds"]}
    assert trained_so_far(second.record) == whole
    assert trained(second.record) == {**whole, "parameters": second.record["parameters"], "seed": 0}

    kept = load(tmp_path / "second" / "after-0.0001").record
    updates = kept["after_updates"]
    third = train(tmp_path / "third", tmp_path / "second" / "after-0.0001")
    begun = {"planner": "second/after-0.0001", "updates": 4 + updates, "seconds": before["seconds"] + 1e-4}
    assert third.record["begun_with"] == begun
    assert trained_so_far(third.record)["updates"] == 8 + updates
    told = f"Training began with the weights of `second/after-0.0001`, after {4 + updates} updates."
    assert told in card(third, "owner/name")


def test_what_a_record_does_not_tell_is_not_summed_up():
    assert trained_so_far({}) == {"updates": None, "seconds": None}
    outcome = {"steps": 3, "seconds": 2.0}
    assert trained_so_far({"outcome": outcome, "begun_with": {"updates": "many", "seconds": 1}}) == {
        "updates": None, "seconds": 3.0,
    }  # fmt: skip


def test_units_stay_whatever_the_limits_of_the_data(first, tmp_path):
    assert train(tmp_path / "small", first, episodes=lines(0.5)).normalizer == load(first).normalizer
    model = replace(SMALL, frame="chunk")
    wide = train(tmp_path / "wide", model=model, episodes=lines(3.0))
    wide = replace(wide, normalizer=replace(wide.normalizer, span=(4.0, 4.0)))
    assert train(tmp_path / "in-it", wide, episodes=lines(2.0)).normalizer == wide.normalizer


def test_soundness_is_told_of_data_that_reaches_further_than_the_planner_it_begins_with(first, tmp_path, capsys):
    wider = train(tmp_path, first, episodes=lines(1.5), soundness_told=True)
    assert "finished: " in capsys.readouterr().err
    inside = within(lines(1.5).observations, OWN.space, wider.normalizer)
    assert 0.5 < inside.mean() < 1
    starts, goals = random_pairs(lines(1.5).observations, wider, 500)
    assert within(starts, OWN.space, wider.normalizer).all()
    assert within(goals, OWN.space, wider.normalizer).all()


def test_an_objective_of_ones_own_has_the_overlap_of_the_chunks(first, tmp_path):
    made = train(tmp_path, model=SMALL, objective=ObjectiveConfig(state=0.5))
    assert made.record["objective"]["overlap"] == OWN.chunks.overlap


def test_data_of_another_place_is_refused(first, tmp_path):
    with pytest.raises(UserError, match=r"'first' was trained in another place .*: \d\d% of the states lie outside"):
        train(tmp_path, first, episodes=lines(9.0))


def test_a_dataset_is_cut_as_the_planner_was(first):
    begun = Beginning.of(first)
    giant = preset("pointmaze-giant-stitch-v0")
    seen = begun.preset_for(giant)
    assert (seen.domain, seen.chunks) == (giant.domain, replace(giant.chunks, horizon=16, overlap=4))
    # Data without a world lies in the planner's, and is planned in as many chunks.
    there = Beginning("giant", replace(begun.checkpoint, preset=seen))
    mine = there.preset_for(own_preset("other"))
    assert (mine.name, mine.domain, mine.chunks) == ("other", giant.domain, seen.chunks)
    assert mine.evaluation == giant.evaluation
    # Places of three numbers stay places.
    flying = Space.of((0, 1, 2), [Group("agent", (0, 1, 2))])
    high = Beginning("high", replace(begun.checkpoint, preset=replace(OWN, domain=replace(OWN.domain, space=flying))))
    assert high.preset_for(own_preset("other")).space == flying
    # A plan in one chunk has its length from another dataset.
    alone = Beginning("dd", replace(begun.checkpoint, preset=cut(horizon=64, overlap=8, most=1)))
    assert alone.preset_for(giant).chunks == cut(horizon=64, overlap=8, most=1).chunks


def test_the_recipe_is_the_planners_unless_another_is_named(first):
    begun = Beginning.of(first)
    assert begun.recipe(None, OWN).objective.drop == 0.25
    assert begun.recipe("default", OWN).objective.drop == 0.15
    assert begun.recipe(None, OWN).training == recipe_for("default", OWN).training
    paper = recipe_for("paper", OWN).model
    record = {"recipe": "paper"}
    theirs = Beginning("theirs", replace(begun.checkpoint, denoiser=_Shape(paper), record=record))
    assert theirs.recipe_name == "paper"
    assert theirs.recipe(None, OWN) == recipe_for("paper", OWN)
    assert theirs.recipe("authors", OWN).objective == recipe_for("authors", OWN).objective
    broken = Beginning("broken", replace(begun.checkpoint, record={"objective": {"colour": 1}}))
    with pytest.raises(UserError, match=r"broken/config\.json' does not describe a planner"):
        broken.recipe(None, OWN)


class _Shape:
    """The part of a network that a recipe asks."""

    def __init__(self, config):
        self.config = config


def test_units_that_never_changed_are_left_by_any_change(first):
    flat = replace(load(first), normalizer=Normalizer((-5.0, 1.0), (5.0, 1.0)))
    with pytest.raises(UserError, match="agent y is "):
        Beginning.of(flat).check_data(lines(), OWN.space)
