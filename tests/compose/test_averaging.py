"""Generative Skill Chaining: overlaps averaged at every step, in any order."""

from dataclasses import replace

import pytest
import torch
from hand_made import DIM, HORIZON, OVERLAP, chains_of, coupled, schedule_of, walk

from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.orders import ORDERS, Order
from compdiffuser.compose.sample import INITIAL, sample
from compdiffuser.compose.score import overlap_distance
from compdiffuser.compose.steps import STEPS
from compdiffuser.diffusion.conditions import Conditions

SIZES = {"horizon": HORIZON, "overlap": OVERLAP}


@pytest.mark.parametrize("rule", STEPS)
@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_gsc_ends_with_equal_overlaps_and_never_shows_neighbours(eta, rule):
    chains, schedule = chains_of(4, 1, 2), schedule_of(eta=eta, repeats=2)
    after = chains.has_left.nonzero()[:, 0]

    def spying(x, sigma, c):
        assert torch.equal(x[after - 1, -OVERLAP:], x[after, :OVERLAP])  # at every noise level
        assert not c.has_left.any()
        assert not c.has_right.any()
        assert c.has_start.tolist() == [1, 0, 0, 0, 1, 1, 0]
        assert c.has_goal.tolist() == [0, 0, 0, 1, 1, 0, 1]
        return coupled(x, sigma, c)

    x = sample(spying, chains, schedule, ORDERS["gsc"](chains), rule=STEPS[rule], **SIZES)
    assert torch.equal(x[after - 1, -OVERLAP:], x[after, :OVERLAP])
    assert not torch.allclose(x[3, -OVERLAP:], x[4, :OVERLAP])


def alone(chains, k, x, sigma):
    """The estimate of chunk k of a single chain, conditioned on the chain's ends only."""
    count = len(chains)
    first, last, no = (torch.tensor([value]) for value in (float(k == 0), float(k == count - 1), 0.0))
    unseen = torch.zeros(1, OVERLAP, DIM)
    conditions = Conditions(unseen, no, unseen, no, chains.start[:1], chains.goal[:1], no, no, first, last)
    return coupled(x, sigma, conditions)


def noise(chains, k, step):
    """The noise of chunk k, whose first states are those of the chunk before."""
    own, left = (gaussian(chains.key[j : j + 1], torch.tensor([step]), HORIZON, DIM) for j in (k, max(k - 1, 0)))
    return own if k == 0 else torch.cat([left[:, -OVERLAP:], own[:, OVERLAP:]], dim=1)


def written_out(chains, schedule, moves):
    """Averaging as plain loops: `moves` lists which chunk takes its next step, in rounds."""
    count = len(chains)
    x = [(1 + schedule.sigma[0] ** 2).sqrt() * noise(chains, k, INITIAL) for k in range(count)]
    latest, taken = {}, [0] * count
    for moving in moves:
        for k in moving:
            latest[k] = alone(chains, k, x[k], schedule.sigma[taken[k]][None])
        for k in moving:
            clean = latest[k].clone()
            if k - 1 in latest:
                clean[:, :OVERLAP] = (latest[k - 1][:, -OVERLAP:] + latest[k][:, :OVERLAP]) / 2
            if k + 1 in latest:
                clean[:, -OVERLAP:] = (latest[k][:, -OVERLAP:] + latest[k + 1][:, :OVERLAP]) / 2
            i = taken[k]
            x[k] = clean + schedule.keep[i] * (x[k] - clean) + schedule.noise[i] * noise(chains, k, i)
            taken[k] += 1
    return torch.cat(x)


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_gsc_written_out(eta):
    chains, schedule = chains_of(4), schedule_of(eta=eta, repeats=2)
    result = sample(coupled, chains, schedule, ORDERS["gsc"](chains), **SIZES)
    assert torch.equal(result, written_out(chains, schedule, [range(4)] * len(schedule)))


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_a_staggered_order_averages_with_the_latest_estimates(eta):
    chains, schedule = chains_of(4), schedule_of(eta=eta, repeats=2)
    one_by_one = [[k] for _ in range(len(schedule)) for k in range(4)]
    expected = written_out(chains, schedule, one_by_one)
    wave, twin = (
        sample(coupled, chains, schedule, Order(chains.position, stride, average=True), **SIZES) for stride in (2, 4)
    )
    assert torch.equal(wave, expected)
    assert torch.equal(twin, expected)


@pytest.mark.parametrize("rule", STEPS)
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_ragged_batch_of_staggered_chains_equals_its_chains_one_by_one(stride, rule):
    chains, schedule = chains_of(3, 1, 5), schedule_of(repeats=2)

    def averaged(chains):
        order = Order(chains.position, stride, average=True)
        return sample(coupled, chains, schedule, order, rule=STEPS[rule], guidance=1.5, **SIZES)

    together = averaged(chains)
    for c in range(3):
        part, rows = chains.select(torch.tensor([c]))
        assert torch.equal(averaged(part), together[rows])


@pytest.mark.parametrize("rule", STEPS)
@pytest.mark.parametrize("stride", [1, 2])
def test_staggered_chunks_of_a_gaussian_meet_and_reach_both_ends(stride, rule):
    count = 200
    truth = replace(walk(HORIZON), mean=torch.zeros(HORIZON, 1, dtype=torch.float64))
    chains = chains_of(*[2] * count, dim=1)
    schedule = schedule_of(steps=40, repeats=4)
    order = Order(chains.position, stride, average=True)
    x = sample(truth, chains, schedule, order, rule=STEPS[rule], **SIZES).view(count, 2, HORIZON, 1)
    assert torch.allclose(x[:, 0, 0], chains.start.view(count, 2, 1)[:, 0], atol=1e-3)
    assert torch.allclose(x[:, 1, -1], chains.goal.view(count, 2, 1)[:, 1], atol=1e-3)
    shuffled = torch.stack([x[:, 0], x[:, 1].roll(1, dims=0)], dim=1)
    assert overlap_distance(x, OVERLAP).mean() < 0.02 * overlap_distance(shuffled, OVERLAP).mean()
