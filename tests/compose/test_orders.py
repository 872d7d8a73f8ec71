from dataclasses import replace

import pytest
import torch
from hand_made import DIM, HORIZON, OVERLAP, SMALL, chains_of, coupled, schedule_of

from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.orders import ORDERS, Order, order
from compdiffuser.compose.sample import INITIAL, sample
from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.models import Denoiser, DenoiserConfig
from compdiffuser.types import UserError

SIZES = {"horizon": HORIZON, "overlap": OVERLAP}


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("lengths", [(1,), (2,), (5,), (4, 1, 6)])
def test_the_wavefront_equals_the_sequential_order(lengths, eta, repeats):
    chains, schedule = chains_of(*lengths), schedule_of(eta=eta, repeats=repeats)
    wave, twin = (
        sample(coupled, chains, schedule, ORDERS[name](chains), **SIZES) for name in ("autoregressive", "sequential")
    )
    assert torch.equal(wave, twin)
    if max(lengths) > 1:
        assert not torch.allclose(wave, sample(coupled, chains, schedule, ORDERS["parallel"](chains), **SIZES))


def test_the_backward_wavefront_equals_its_sequential_twin():
    chains, schedule = chains_of(4, 1, 6), schedule_of(repeats=2)
    backward = ORDERS["autoregressive-backward"](chains)
    one_by_one = Order(backward.offset, stride=6)
    assert torch.equal(
        sample(coupled, chains, schedule, backward, **SIZES), sample(coupled, chains, schedule, one_by_one, **SIZES)
    )


def mirrored(x, sigma, c):
    """`coupled` in a world where time runs the other way."""
    seen = Conditions(
        left=c.right.flip(1), left_sigma=c.right_sigma, right=c.left.flip(1), right_sigma=c.left_sigma,
        start=c.goal, goal=c.start,
        has_left=c.has_right, has_right=c.has_left, has_start=c.has_goal, has_goal=c.has_start,
    )  # fmt: skip
    return coupled(x.flip(1), sigma, seen).flip(1)


@pytest.mark.parametrize("lengths", [(1,), (5,), (3, 6)])
def test_backward_is_forward_in_the_mirror(lengths):
    chains, schedule = chains_of(*lengths), schedule_of(eta=0.0)
    initial = 80 * torch.randn(len(chains), HORIZON, DIM, generator=torch.Generator().manual_seed(3))
    backward = sample(coupled, chains, schedule, ORDERS["autoregressive-backward"](chains), initial=initial, **SIZES)
    flip = torch.cat([torch.arange(len(chains))[chains.rows(c)].flip(0) for c in range(len(lengths))])
    mirror = replace(chains, start=chains.goal, goal=chains.start)
    forward = sample(
        mirrored, mirror, schedule, ORDERS["autoregressive"](mirror), initial=initial[flip].flip(1), **SIZES
    )
    assert torch.equal(backward, forward[flip].flip(1))


@pytest.mark.parametrize(("steps", "chunks"), [(50, 9), (1, 1), (7, 1), (3, 20)])
def test_number_of_rounds(steps, chunks):
    chains = chains_of(chunks, max(1, chunks - 1))
    count = {name: len(make(chains).rounds(steps)) for name, make in ORDERS.items()}
    wave = 2 * steps + chunks - 2 if chunks > 1 else steps
    assert count["parallel"] == count["gsc"] == steps
    assert count["autoregressive"] == count["autoregressive-backward"] == wave
    assert count["sequential"] == steps * chunks


@pytest.mark.parametrize("order", [*ORDERS, Order(torch.tensor([7, 0, 0, 9, 2, 2, 30, 0]), 4)], ids=str)
def test_rounds_hold_the_rows_whose_turn_it_is(order):
    chains = chains_of(4, 1, 3)
    order = ORDERS[order](chains) if isinstance(order, str) else order
    turns = [
        [(row, (index - begun) // order.stride) for row, begun in enumerate(order.offset.tolist())
         if begun <= index < begun + 5 * order.stride and (index - begun) % order.stride == 0]
        for index in range(order.most_rounds(5))
    ]  # fmt: skip
    rounds = [list(zip(rows.tolist(), steps.tolist(), strict=True)) for rows, steps in order.rounds(5)]
    assert rounds == [turn for turn in turns if turn]
    assert turns[-1]


@pytest.mark.parametrize("name", ORDERS)
def test_every_row_takes_every_step_once_and_in_order(name):
    chains = chains_of(4, 1, 3)
    taken = {row: [] for row in range(len(chains))}
    for rows, steps in ORDERS[name](chains).rounds(5):
        assert len(rows) > 0
        for row, step in zip(rows.tolist(), steps.tolist(), strict=True):
            taken[row].append(step)
    assert all(steps == [0, 1, 2, 3, 4] for steps in taken.values())


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("name", ORDERS)
def test_a_ragged_batch_equals_its_chains_one_by_one(name, repeats):
    chains, schedule = chains_of(3, 1, 5, 2), schedule_of(repeats=repeats)
    together = sample(coupled, chains, schedule, ORDERS[name](chains), guidance=1.5, **SIZES)
    for c in range(4):
        alone, rows = chains.select(torch.tensor([c]))
        assert torch.equal(sample(coupled, alone, schedule, ORDERS[name](alone), guidance=1.5, **SIZES), together[rows])


@pytest.mark.parametrize("architecture", SMALL)
def test_the_wavefront_equals_the_sequential_order_with_a_network(architecture):
    torch.manual_seed(0)
    config = DenoiserConfig(horizon=16, overlap=6, network=SMALL[architecture])
    denoiser = Denoiser(config).eval()
    with torch.no_grad():
        for parameter in denoiser.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    chains, schedule = chains_of(4, 2), schedule_of(steps=8, eta=0.5)
    wave, twin = (
        sample(denoiser, chains, schedule, ORDERS[name](chains), guidance=2.0, horizon=16, overlap=6)
        for name in ("autoregressive", "sequential")
    )
    assert torch.allclose(wave, twin, atol=1e-4)


def test_algorithm_two_written_out():
    """The paper's algorithm 2 as plain loops: at every step each chunk sees the left one as it has just become."""
    count, schedule = 4, schedule_of(eta=1.0)
    chains = chains_of(count)
    x = [
        (1 + schedule.sigma[0] ** 2).sqrt() * gaussian(chains.key[k : k + 1], torch.tensor([INITIAL]), HORIZON, DIM)
        for k in range(count)
    ]
    level = [schedule.sigma[:1]] * count
    for step in range(len(schedule)):
        for k in range(count):
            before, after = max(k - 1, 0), min(k + 1, count - 1)
            first, last = torch.tensor([float(k == 0)]), torch.tensor([float(k == count - 1)])
            conditions = Conditions(
                x[before][:, -OVERLAP:], level[before], x[after][:, :OVERLAP], level[after],
                chains.start[:1], chains.goal[:1], 1 - first, 1 - last, first, last,
            )  # fmt: skip
            clean = coupled(x[k], schedule.sigma[step : step + 1], conditions)
            fresh = gaussian(chains.key[k : k + 1], torch.tensor([step]), HORIZON, DIM)
            x[k] = clean + schedule.keep[step] * (x[k] - clean) + schedule.noise[step] * fresh
            level[k] = schedule.sigma[step + 1 : step + 2]
    result = sample(coupled, chains, schedule, ORDERS["autoregressive"](chains), **SIZES)
    assert torch.allclose(result, torch.cat(x), atol=1e-5)


def test_an_unknown_order_is_named():
    with pytest.raises(UserError, match="unknown order 'random'; choose one of parallel, autoregressive,"):
        order("random")
    assert order("gsc") is ORDERS["gsc"]


@pytest.mark.parametrize("stride", [0, 1.5, float("nan")])
def test_an_order_needs_a_stride(stride):
    with pytest.raises(UserError, match="stride must be"):
        Order(chains_of(2).position, stride)
