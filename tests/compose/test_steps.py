"""Step rules: their order, measured on problems with a known solution, and the loop around them."""

from itertools import pairwise

import pytest
import torch
from hand_made import DIM, HORIZON, OVERLAP, chains_of, coupled, schedule_of

from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.orders import ORDERS, Order, parallel
from compdiffuser.compose.sample import INITIAL, sample
from compdiffuser.compose.steps import STEPS, euler, heun, step_rule
from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.types import UserError

SIZES = {"horizon": HORIZON, "overlap": OVERLAP}
FALLS = {"euler": 2, "heun": 4}  # how often smaller the error is with twice the steps
LADDERS = (65, 129, 257)  # levels above 0: each ladder has twice the steps of the one before


def drawn(count: int, sigma: torch.Tensor) -> torch.Tensor:
    """Samples at the highest level, in double precision."""
    noise = torch.randn(count, HORIZON, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return sigma * noise


@pytest.mark.parametrize("rule", STEPS)
def test_the_order_of_a_rule_on_a_gaussian(rule):
    """x₀ ~ N(0, v): x(σ) is proportional to √(v + σ²), and the last step, to σ = 0, is x₀(x) = v/(v + σ²)·x."""
    variance, chains = 0.3, chains_of(1, 1)
    errors = []
    for steps in LADDERS:
        schedule = schedule_of(steps=steps, eta=0.0)
        initial, (high, low) = drawn(2, schedule.sigma[0]), schedule.sigma[[0, -2]].double()
        exact = initial * ((variance + low**2) / (variance + high**2)).sqrt() * variance / (variance + low**2)
        x = sample(
            lambda x, sigma, c: variance / (variance + sigma.double() ** 2)[:, None, None] * x,
            chains, schedule, parallel(chains), rule=STEPS[rule], initial=initial, **SIZES,
        )  # fmt: skip
        errors.append((x - exact).norm() / exact.norm())
    falls = [float(before / after) for before, after in pairwise(errors)]
    assert falls == pytest.approx([FALLS[rule]] * 2, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("rule", STEPS)
def test_the_order_of_a_rule_on_chunks_that_move_together(rule):
    """Neighbours enter the second call as they have become, so coupled chunks are integrated to second order too."""
    chains = chains_of(3, 2)

    def reached(steps: int, name: str) -> torch.Tensor:
        schedule = schedule_of(steps=steps, eta=0.0)
        initial = drawn(5, schedule.sigma[0])
        return sample(coupled, chains, schedule, parallel(chains), rule=STEPS[name], initial=initial, **SIZES)

    exact = reached(1025, "heun")
    errors = [(reached(steps, rule) - exact).norm() for steps in LADDERS]
    falls = [float(before / after) for before, after in pairwise(errors)]
    assert falls == pytest.approx([FALLS[rule]] * 2, rel=0.2)


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_algorithm_one_written_out(eta, repeats):
    """Karras et al. 2022 on one chunk: the correction belongs to the deterministic move; fresh noise comes after it."""
    chains, schedule = chains_of(1), schedule_of(eta=eta, repeats=repeats)
    yes, no, unseen = torch.ones(1), torch.zeros(1), torch.zeros(1, OVERLAP, DIM)
    ends = Conditions(unseen, yes, unseen, yes, chains.start, chains.goal, no, no, yes, yes)
    x = (1 + schedule.sigma[0] ** 2).sqrt() * gaussian(chains.key, torch.tensor([INITIAL]), HORIZON, DIM)
    for i in range(len(schedule)):
        sigma = schedule.sigma[i : i + 1]
        lower = schedule.keep[i] * sigma
        d = (x - coupled(x, sigma, ends)) / sigma
        after = x + (lower - sigma) * d
        if lower > 0:
            d_after = (after - coupled(after, lower, ends)) / lower
            after = x + (lower - sigma) * (d + d_after) / 2
        x = after + schedule.noise[i] * gaussian(chains.key, torch.tensor([i]), HORIZON, DIM)
    result = sample(coupled, chains, schedule, parallel(chains), rule=heun, **SIZES)
    assert torch.allclose(result, x, atol=1e-4)


@pytest.mark.parametrize("lengths", [(2,), (5,), (4, 1, 6)])
@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_the_wavefront_equals_the_sequential_order_with_heun(lengths, eta):
    chains, schedule = chains_of(*lengths), schedule_of(eta=eta, repeats=2)
    wave, twin = (
        sample(coupled, chains, schedule, ORDERS[name](chains), rule=heun, **SIZES)
        for name in ("autoregressive", "sequential")
    )
    assert torch.equal(wave, twin)
    assert not torch.allclose(wave, sample(coupled, chains, schedule, ORDERS["autoregressive"](chains), **SIZES))


@pytest.mark.parametrize("name", ORDERS)
def test_a_ragged_batch_equals_its_chains_one_by_one_with_heun(name):
    chains, schedule = chains_of(3, 1, 5, 2), schedule_of(repeats=3)
    together = sample(coupled, chains, schedule, ORDERS[name](chains), rule=heun, guidance=1.5, **SIZES)
    for c in range(4):
        part, rows = chains.select(torch.tensor([c]))
        alone = sample(coupled, part, schedule, ORDERS[name](part), rule=heun, guidance=1.5, **SIZES)
        assert torch.equal(alone, together[rows])


@pytest.mark.parametrize(("rule", "calls"), [(euler, 6), (heun, 11)])
def test_the_last_step_of_heun_is_eulers(rule, calls):
    chains, levels = chains_of(3), []

    def counting(x, sigma, conditions):
        levels.append(float(sigma[0]))
        return coupled(x, sigma, conditions)

    schedule = schedule_of(steps=6, eta=0.0)
    sample(counting, chains, schedule, parallel(chains), rule=rule, **SIZES)
    assert len(levels) == calls
    assert min(levels) == pytest.approx(float(schedule.sigma[-2]))


def test_a_row_that_finishes_next_to_one_that_does_not_is_left_alone():
    """Offsets that differ with a stride of 1: in some round one chunk arrives at σ = 0 and its neighbour does not."""
    chains, schedule = chains_of(3), schedule_of(eta=0.0)
    order = Order(chains.position, 1)
    seen = []
    x = sample(coupled, chains, schedule, order, rule=heun, watch=lambda *e: seen.append(e[2].clone()), **SIZES)
    assert torch.isfinite(x).all()
    assert torch.equal(seen[-3][0], x[0])
    assert torch.equal(seen[-1], x)


def test_euler_is_the_default():
    chains, schedule = chains_of(3, 2), schedule_of()
    plain = sample(coupled, chains, schedule, parallel(chains), **SIZES)
    assert torch.equal(plain, sample(coupled, chains, schedule, parallel(chains), rule=euler, **SIZES))


def test_an_unknown_step_rule_is_named():
    with pytest.raises(UserError, match="unknown step rule 'midpoint'; choose one of euler, heun"):
        step_rule("midpoint")
    assert step_rule("heun") is heun
