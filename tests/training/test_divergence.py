"""A training whose numbers are no longer finite ends at once, in a sentence, and keeps its last good checkpoint."""

import math

import pytest
import torch
from small_run import CPU, LineLearner, learner, settings, train

from compdiffuser.runs import all_finite
from compdiffuser.training.loop import fit
from compdiffuser.types import UserError


def poisoned(monkeypatch, update: int, by: float) -> None:
    """Let the loss of one update, counted from 1, be multiplied by something."""
    calls = []

    def loss(self, module, generator, of=LineLearner.loss):
        calls.append(1)
        return of(self, module, generator) * (by if len(calls) == update else 1.0)

    monkeypatch.setattr(LineLearner, "loss", loss)


def test_a_learning_rate_without_measure_ends_in_a_sentence(tmp_path):
    with pytest.raises(UserError, match=r"after 5 updates with learning rate 1e\+12, so training stopped") as error:
        train(tmp_path, steps=20, warmup=0, learning_rate=1e12)
    assert str(error.value).endswith("so training stopped; nothing is kept; choose a lower rate")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "resume.pt").exists()


@pytest.mark.parametrize("by", [math.nan, math.inf])
def test_the_last_good_checkpoint_stays(tmp_path, monkeypatch, by):
    poisoned(monkeypatch, 13, by)
    with pytest.raises(UserError, match=r"the loss is nan after 15 updates .* keeps the checkpoint of update 10"):
        train(tmp_path, steps=30, checkpoint_every=5)
    saved = torch.load(tmp_path / "resume.pt", weights_only=True)
    assert saved["step"] == 10
    assert all_finite(saved)
    assert "nan" not in (tmp_path / "log.csv").read_text()


def test_weights_are_looked_at_before_they_are_kept(tmp_path, monkeypatch):
    """A checkpoint may come before the next line of the log."""
    poisoned(monkeypatch, 7, math.nan)
    with pytest.raises(UserError, match=r"weights are not finite after 8 updates .* keeps the checkpoint of update 4"):
        train(tmp_path, steps=30, checkpoint_every=4, log_every=1000)
    assert torch.load(tmp_path / "resume.pt", weights_only=True)["step"] == 4


def test_what_ends_between_lines_of_the_log_is_looked_at(tmp_path, monkeypatch):
    poisoned(monkeypatch, 3, math.nan)
    told = []
    with pytest.raises(UserError, match="the loss is nan after 3 updates"):
        fit(learner(), settings(steps=3, log_every=50), CPU, tmp_path, progress=False, on_checkpoint=told.append)
    assert told == []
    assert not (tmp_path / "resume.pt").exists()


def test_finite_means_every_real_number_of_all_tensors():
    state = {"a": [torch.ones(3), {"b": torch.tensor([1, 2])}], "c": "nan", "d": (torch.zeros(0),)}
    assert all_finite(state)
    assert all_finite({})
    for bad in (math.nan, math.inf, -math.inf):
        state["a"][1]["b"] = torch.tensor([0.0, bad])
        assert not all_finite(state)
