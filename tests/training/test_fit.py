import csv
import math
import time

import pytest
import torch
from small_run import CPU, learner, lines, settings, train
from torch import nn

from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.training.loop import fit
from compdiffuser.training.updater import Learner, Updater


def rows_of(out) -> list[dict[str, str]]:
    with open(out / "log.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_toy_problem_is_learned(tmp_path):
    trained = learner()
    outcome, _ = train(tmp_path, trained, steps=300, log_every=10, checkpoint_every=300, ema=0.98)
    losses = [float(row["loss"]) for row in rows_of(tmp_path)]
    assert sum(losses[-5:]) / 5 < 0.65 * losses[0]
    assert outcome.loss == pytest.approx(losses[-1], rel=1e-4)
    assert outcome.steps == 300
    # The averaged weights denoise lines better than shrinking them towards zero, the best without learning.
    clean = lines(200, torch.Generator().manual_seed(99))
    sigma = torch.full((200,), 0.5)
    noisy = clean + 0.5 * torch.randn(clean.shape, generator=torch.Generator().manual_seed(98))
    nothing = Conditions(*[torch.zeros(200, 2, 2), sigma] * 2, *[torch.zeros(200, 2)] * 2, *[torch.zeros(200)] * 4)
    with torch.no_grad():
        error = (trained.module(noisy, sigma, nothing) - clean).square().mean()
    assert error < 0.7 * (0.5 * noisy - clean).square().mean()


def test_one_update_by_hand(tmp_path):
    """The first update of AdamW moves every weight by the rate against the sign of its gradient."""

    class Slope(Learner):
        module = nn.Linear(1, 1, bias=False)

        def loss(self, module, generator):
            return -3 * module.weight.sum()

    slope = Slope()
    nn.init.constant_(slope.module.weight, 2.0)
    config = settings(steps=1, warmup=0, learning_rate=0.1, weight_decay=0.01, clip=1.0)
    updater = Updater(slope, config, CPU)
    updater.update(0, 0.0)
    moved = 2.0 * (1 - 0.1 * 0.01) + 0.1
    assert slope.module.weight.item() == pytest.approx(moved, rel=1e-5)
    assert updater.average[0].item() == pytest.approx(0.1 * 2.0 + 0.9 * moved, rel=1e-5)  # decay(0) = 1/10
    assert updater.total == -6.0
    updater.adopt_average()
    assert slope.module.weight.item() == updater.average[0].item()


def test_an_update_leaves_nothing_behind():
    """What autograd remembered of one update would grow with every further one."""
    updater = Updater(learner(), settings(ema=0.9), CPU)
    for step in range(3):
        updater.update(step, 0.0)
    kept = [*updater.average, updater.total, *(v for state in updater.optimizer.state.values() for v in state.values())]
    assert not any(tensor.requires_grad for tensor in kept if isinstance(tensor, torch.Tensor))
    assert all(p.grad is None and p.grad_fn is None for p in updater.parameters)


def test_weights_averaged_now_and_then_average_in_those_updates_alone():
    updater = Updater(learner(), settings(ema=0.5, ema_every=3), CPU)
    before = [weight.clone() for weight in updater.average]
    changed = []
    for step in range(5):
        updater.update(step, 0.0)
        changed.append(any(not torch.equal(a, b) for a, b in zip(updater.average, before, strict=True)))
        before = [weight.clone() for weight in updater.average]
    assert changed == [True, False, False, True, False]


def test_only_matrices_decay():
    updater = Updater(learner(), settings(weight_decay=0.3), CPU)
    groups = updater.optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]
    assert all(p.ndim > 1 for p in groups[0]["params"])
    assert all(p.ndim <= 1 for p in groups[1]["params"])
    assert sum(len(group["params"]) for group in groups) == len(updater.parameters)


@pytest.mark.parametrize("seed", [1, 20_260_101, 2**40 + 3, -5])
def test_any_seed_decides_the_batches(tmp_path, seed):
    weights = [train(tmp_path / str(n), steps=3, seed=s)[1] for n, s in enumerate((seed, seed, 0))]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert any(not torch.equal(weights[0][name], weights[2][name]) for name in weights[0])


def test_a_time_limit_stops_training(tmp_path):
    outcome, _ = train(tmp_path, learner(pause=0.01), steps=10**6, time_limit=0.5, log_every=7)
    assert 0.5 <= outcome.seconds < 10
    assert 1 <= outcome.steps <= 50
    rows = rows_of(tmp_path)
    assert int(rows[-1]["step"]) == outcome.steps
    assert [int(row["step"]) for row in rows[:-1]] == list(range(7, outcome.steps, 7))
    rates = [float(row["learning_rate"]) for row in rows]
    assert rates[-1] < 0.2 * max(rates)


def test_the_log_has_every_line_and_the_mean_losses(tmp_path):
    train(tmp_path / "each", steps=12, log_every=1)
    train(tmp_path / "five", steps=12, log_every=5)
    each = [float(row["loss"]) for row in rows_of(tmp_path / "each")]
    five = rows_of(tmp_path / "five")
    assert [int(row["step"]) for row in five] == [5, 10, 12]
    expected = [sum(each[:5]) / 5, sum(each[5:10]) / 5, sum(each[10:]) / 2]
    assert [float(row["loss"]) for row in five] == pytest.approx(expected, rel=1e-4)
    assert all(math.isfinite(loss) for loss in each)
    assert list((tmp_path / "five" / "tensorboard").glob("events.*"))


def test_progress_goes_to_stderr(tmp_path, capsys):
    fit(learner(), settings(steps=5), CPU, tmp_path, progress=True)
    assert capsys.readouterr().out == ""


def test_a_watcher_sees_the_averaged_weights_at_every_line_of_the_log(tmp_path):
    seen = []

    def watch(moment, average):
        seen.append((moment, [weights.clone() for weights in average]))

    trained = learner()
    fit(trained, settings(steps=15, log_every=5), CPU, tmp_path, progress=False, watch=watch)
    assert [moment.update for moment, _ in seen] == [0, 5, 10, 15]
    assert [moment.done for moment, _ in seen] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert seen.pop(0)[0].seconds == 0
    assert [f"{moment.seconds:.2f}" for moment, _ in seen] == [row["seconds"] for row in rows_of(tmp_path)]
    assert all(torch.equal(a, b) for a, b in zip(seen[-1][1], trained.module.parameters(), strict=True))
    assert not torch.equal(seen[0][1][0], seen[-1][1][0])


def test_a_watcher_of_a_continued_run_is_told_all_of_its_updates(tmp_path):
    seen = []
    train(tmp_path, steps=10)
    fit(learner(), settings(steps=20), CPU, tmp_path, progress=False, watch=lambda moment, _: seen.append(moment))
    assert [(moment.update, moment.done) for moment in seen] == [(10, 0.5), (15, 0.75), (20, 1.0)]


def test_the_share_done_follows_a_time_limit_and_watching_is_no_training(tmp_path):
    seen = []

    def watch(moment, average):
        seen.append(moment)
        time.sleep(0.3)

    limited = settings(steps=10**6, time_limit=0.2, log_every=1)
    outcome = fit(learner(pause=0.05), limited, CPU, tmp_path, progress=False, watch=watch)
    assert 0.2 <= outcome.seconds < 0.2 + 0.3
    assert len(seen) > 2
    assert all(moment.done == pytest.approx(min(moment.seconds / 0.2, 1)) for moment in seen)
