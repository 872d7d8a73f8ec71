"""Estimates that are moved while chunks are denoised, and chunks that are held."""

import torch
from hand_made import DIM, HORIZON, OVERLAP, chains_of, schedule_of

from compdiffuser.compose.orders import ORDERS
from compdiffuser.compose.sample import noised, sample

SIZES = {"horizon": HORIZON, "overlap": OVERLAP}


def zero(x, sigma, conditions):
    return torch.zeros_like(x)


def test_what_steers_moves_every_estimate():
    chains = chains_of(2, 3)
    x = sample(
        zero, chains, schedule_of(steps=4), ORDERS["autoregressive"](chains), steer=lambda x, r, s: x + 2, **SIZES
    )
    assert torch.equal(x, torch.full_like(x, 2.0))


def test_rows_that_are_held_come_back_as_they_were_and_are_not_denoised():
    chains, asked = chains_of(3), []
    schedule = schedule_of(steps=4)
    known = torch.randn(3, HORIZON, DIM, generator=torch.Generator().manual_seed(0))
    held = torch.tensor([True, False, True])

    def counting(x, sigma, conditions):
        asked.append(len(x))
        return torch.zeros_like(x)

    for name in ("autoregressive", "parallel"):
        initial = noised(known, chains, schedule.sigma[0])
        x = sample(counting, chains, schedule, ORDERS[name](chains), initial=initial, held=(held, known), **SIZES)
        torch.testing.assert_close(x[held], known[held])
        assert torch.equal(x[1], torch.zeros_like(x[1]))
    assert asked == [1] * (2 * len(schedule))
