"""What a learner may bring beside its loss, and settings of the loop that baselines need."""

import csv

import pytest
import torch
from small_run import CPU, settings
from torch import nn

from compdiffuser.training.loop import fit
from compdiffuser.training.updater import Learner, Updater


class Sides(nn.Module):
    """Two independent slopes, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 3))
        self.target = nn.Parameter(torch.zeros(2, 3), requires_grad=False)


class TwoSeeds(Learner):
    """Learns random numbers; a target follows; the loss has two parts."""

    parts = ("error", "size")

    def __init__(self) -> None:
        self.module = Sides()
        self.drawn: list[torch.Tensor] = []
        self.calls = 0

    def loss(self, module, generator):
        aim = torch.rand(2, 3, generator=generator)
        self.drawn.append(aim)
        weight = self.module.weight
        return torch.stack([(weight - aim).square().mean(-1), 0.1 * weight.abs().mean(-1)], -1)

    def after_update(self):
        self.calls += 1
        with torch.no_grad():
            self.module.target.lerp_(self.module.weight, 0.5)


PLAIN = {
    "schedule": "constant", "warmup": 0, "weight_decay": 0.0, "clip": None, "ema": None, "beta2": 0.999,
    "learning_rate": 0.01, "log_every": 10, "checkpoint_every": 10,
}  # fmt: skip


def run(out, **changes) -> TwoSeeds:
    learner = TwoSeeds()
    fit(learner, settings(**{**PLAIN, "updates_per_replay": 5, **changes}), CPU, out, progress=False)
    return learner


def test_a_replay_is_several_updates_with_batches_of_their_own(tmp_path):
    learner = run(tmp_path, steps=20)
    assert learner.calls == len(learner.drawn) == 20
    assert len({tuple(aim.flatten().tolist()) for aim in learner.drawn}) == 20


def test_a_run_resumed_between_replays_ends_with_the_same_bits(tmp_path):
    whole = run(tmp_path / "whole", steps=40)
    run(tmp_path / "parts", steps=20)
    parts = run(tmp_path / "parts", steps=40)
    assert len(parts.drawn) == 20
    for name, weight in whole.module.state_dict().items():
        assert torch.equal(weight, parts.module.state_dict()[name])


def test_without_averaging_the_weights_are_the_result(tmp_path):
    learner = TwoSeeds()
    updater = Updater(learner, settings(**PLAIN), CPU)
    assert all(a is b for a, b in zip(updater.average, updater.parameters, strict=True))
    updater.update(0, 0.0)
    # Adam's first step goes by the rate against the sign of the gradient.
    torch.testing.assert_close(learner.module.weight.abs(), torch.full((2, 3), 0.01), rtol=1e-4, atol=0)
    torch.testing.assert_close(learner.module.target, learner.module.weight / 2)


def test_the_log_has_the_parts_as_means_over_seeds(tmp_path):
    learner = run(tmp_path, steps=20, log_every=7, learning_rate=1e-9)
    with open(tmp_path / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    # Lines come with the first replay that passes a multiple of 7.
    assert [int(row["step"]) for row in rows] == [10, 15, 20]
    expected = torch.stack(learner.drawn[:10]).square().mean().item()
    assert float(rows[0]["error"]) == pytest.approx(expected, rel=1e-3)
    assert float(rows[0]["loss"]) == pytest.approx(float(rows[0]["error"]) + float(rows[0]["size"]), rel=1e-4)
    assert {row["learning_rate"] for row in rows} == {"1e-09"}


def test_checkpoints_are_told_of(tmp_path):
    told = []
    fit(TwoSeeds(), settings(**PLAIN, steps=30), CPU, tmp_path, progress=False, on_checkpoint=told.append)
    assert told == [10, 20, 30]


def test_a_checkpoint_from_before_a_setting_existed_had_its_default(tmp_path):
    run(tmp_path, steps=20, precision="bf16")
    saved = torch.load(tmp_path / "resume.pt", weights_only=True)
    del saved["config"]["precision"]
    torch.save(saved, tmp_path / "resume.pt")
    assert run(tmp_path, steps=30, precision="bf16").calls == 10
