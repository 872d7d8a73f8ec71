"""The denoising loop on problems whose answers are known in closed form."""

from dataclasses import replace

import pytest
import torch
from hand_made import DIM, HORIZON, OVERLAP, chains_of, coupled, schedule_of, untold, variance_reached, walk

from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.orders import ORDERS, parallel
from compdiffuser.compose.sample import INITIAL, guided, sample
from compdiffuser.compose.score import overlap_distance
from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.types import UserError

SIZES = {"horizon": HORIZON, "overlap": OVERLAP}


@pytest.mark.parametrize("repeats", [1, 4])
@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_samples_of_a_gaussian_have_its_mean_and_covariance(eta, repeats):
    truth = walk(4, spread=0.8)
    chains = chains_of(*[1] * 4000, dim=1)
    schedule = schedule_of(steps=100, eta=eta, repeats=repeats)
    x = sample(untold(truth), chains, schedule, parallel(chains), horizon=4, overlap=2)[..., 0].double()
    values, axes = torch.linalg.eigh(truth.covariance)
    expected = axes @ torch.diag(variance_reached(schedule, values)) @ axes.T
    assert torch.allclose(x.mean(dim=0), truth.mean[:, 0], atol=0.05)
    assert torch.allclose(torch.cov(x.T), expected, atol=0.05)
    assert torch.allclose(expected, truth.covariance, rtol=0.12)


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_noise_around_a_known_answer_has_the_next_level_after_every_step(eta, repeats):
    chains, schedule = chains_of(*[1] * 500), schedule_of(steps=8, eta=eta, repeats=repeats)
    spreads = []

    def knowing(x, sigma, conditions):
        assert (sigma == sigma[0]).all()
        spreads.append((x - 3).std() / sigma[0])
        return torch.full_like(x, 3.0)

    x = sample(knowing, chains, schedule, parallel(chains), **SIZES)
    assert torch.equal(x, torch.full_like(x, 3.0))
    assert len(spreads) == len(schedule)
    assert torch.allclose(torch.stack(spreads), torch.ones(len(spreads)), atol=0.03)


def test_a_single_chunk_runs_from_its_start_to_its_goal():
    truth = walk(HORIZON, dim=DIM)
    chains = chains_of(1, 1, 1)
    x = sample(truth, chains, schedule_of(steps=30), parallel(chains), **SIZES)
    assert torch.allclose(x[:, 0], chains.start, atol=1e-3)
    assert torch.allclose(x[:, -1], chains.goal, atol=1e-3)


@pytest.mark.parametrize("name", ORDERS)
def test_two_gaussian_chunks_meet_and_reach_both_ends(name):
    truth = replace(walk(HORIZON), mean=torch.zeros(HORIZON, 1, dtype=torch.float64))
    count = 400
    chains = chains_of(*[2] * count, dim=1)
    chains = replace(chains, start=torch.full_like(chains.start, 2.0), goal=torch.full_like(chains.goal, -2.0))
    schedule = schedule_of(steps=40, repeats=4)
    x = sample(truth, chains, schedule, ORDERS[name](chains), **SIZES).view(count, 2, HORIZON, 1)
    assert torch.allclose(x[:, 0, 0], torch.tensor(2.0), atol=1e-3)
    assert torch.allclose(x[:, 1, -1], torch.tensor(-2.0), atol=1e-3)
    # Both versions of the overlap agree far better than two samples do, and plans still differ.
    shuffled = torch.stack([x[:, 0], x[:, 1].roll(1, dims=0)], dim=1)
    assert overlap_distance(x, OVERLAP).mean() < 0.1 * overlap_distance(shuffled, OVERLAP).mean()
    # The plan is symmetric under exchanging start and goal, so its middle is zero on average.
    middle = (x[:, 0, -OVERLAP:] + x[:, 1, :OVERLAP]) / 2
    assert middle.mean() == pytest.approx(0, abs=0.1)
    assert middle.std() > 0.4


def test_guidance_is_the_formula_and_one_asks_once():
    chains = chains_of(3)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, HORIZON, DIM, generator=generator)
    seen = torch.randn(2, 3, OVERLAP, DIM, generator=generator)
    sigma = torch.tensor([0.5, 1.0, 2.0])
    has = chains.has_left.float(), chains.has_right.float()
    c = Conditions(seen[0], sigma, seen[1], sigma, chains.start, chains.goal, *has, 1 - has[0], 1 - has[1])
    told, nothing = coupled(x, sigma, c), coupled(x, sigma, c.dropped())
    calls = []

    def counting(x, sigma, conditions):
        calls.append(len(x))
        return coupled(x, sigma, conditions)

    assert torch.equal(guided(counting, x, sigma, c, 1.0), told)
    for weight in (0.0, 0.5, 2.0):
        assert torch.allclose(guided(counting, x, sigma, c, weight), (1 - weight) * nothing + weight * told, atol=1e-6)
    assert calls == [3, 6, 6, 6]
    assert not torch.allclose(told, nothing)


def test_guidance_reaches_the_samples():
    chains, schedule = chains_of(3), schedule_of()
    plain, same, strong = (
        sample(coupled, chains, schedule, parallel(chains), guidance=w, **SIZES) for w in (1.0, 1.0 + 1e-9, 2.0)
    )
    assert torch.allclose(plain, same, atol=1e-5)
    assert not torch.allclose(plain, strong, atol=1e-2)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), 1j, "2"])
def test_guidance_is_a_finite_number(weight):
    chains = chains_of(2)
    with pytest.raises(UserError, match="guidance must be a finite number, not"):
        sample(coupled, chains, schedule_of(), parallel(chains), guidance=weight, **SIZES)


def test_the_seed_decides_the_sample():
    chains, schedule = chains_of(3, 2), schedule_of()
    first = sample(coupled, chains, schedule, parallel(chains), **SIZES)
    assert torch.equal(first, sample(coupled, chains, schedule, parallel(chains), **SIZES))
    other = replace(chains, key=chains.key + (100 << 12))
    assert not torch.allclose(first, sample(coupled, other, schedule, parallel(chains), **SIZES), atol=1e-2)


def test_given_samples_are_where_denoising_begins_and_stay_untouched():
    chains, schedule = chains_of(3, 2), schedule_of()
    noise = gaussian(chains.key, torch.full_like(chains.key, INITIAL), HORIZON, DIM)
    initial = noise * (1 + schedule.sigma[0] ** 2).sqrt()
    kept = initial.clone()
    given = sample(coupled, chains, schedule, parallel(chains), initial=initial, **SIZES)
    assert torch.equal(given, sample(coupled, chains, schedule, parallel(chains), **SIZES))
    assert torch.equal(initial, kept)


@pytest.mark.parametrize("name", ORDERS)
def test_a_watcher_sees_every_round_and_at_last_the_plan(name):
    chains, schedule = chains_of(3, 2), schedule_of()
    order = ORDERS[name](chains)
    seen = []
    x = sample(
        coupled, chains, schedule, order, watch=lambda *event: seen.append((*event[:2], event[2].clone())), **SIZES
    )
    rounds = len(order.rounds(len(schedule)))
    assert [event[:2] for event in seen] == [(index, rounds) for index in range(rounds)]
    assert torch.equal(seen[-1][2], x)
