"""What the authors' code does besides DDIM, each against its own equation."""

import pytest
import torch
from hand_made import chains_of

from compdiffuser.compose.orders import ORDERS
from compdiffuser.compose.sample import guided, sample
from compdiffuser.compose.schedule import SamplerConfig, Schedule
from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.diffusion.levels import cosine_below, cosine_levels, cosine_table

HORIZON, OVERLAP, DIM = 8, 3, 2


def test_a_step_keeps_the_noise_that_eta_one_leaves_and_adds_none():
    schedule = Schedule.build(cosine_levels, SamplerConfig.authors(), "cpu")
    assert not schedule.noise.any()
    sigma = cosine_levels(50)
    power = 1 / (1 + sigma**2)  # ᾱ
    before, after = power[:-1], power[1:]
    variance = (1 - after) / (1 - before) * (1 - before / after)
    # x' = √ᾱ'·x₀ + √(1 − ᾱ' − s²)·ε, with ε = (x − √ᾱ·x₀)/√(1 − ᾱ), divided by √ᾱ'.
    kept = ((1 - after - variance).clamp(min=0) / after).sqrt() / sigma[:-1]
    assert torch.allclose(schedule.keep, kept.float(), atol=1e-6)


class Watching:
    """A denoiser that answers zero and remembers what it was told."""

    def __init__(self):
        self.calls = []

    def __call__(self, x, sigma, conditions):
        self.calls.append((sigma, conditions))
        return torch.zeros_like(x)


@pytest.mark.parametrize("order", ["autoregressive", "autoregressive-backward", "parallel"])
def test_a_neighbour_ahead_is_said_to_be_one_step_ahead(order):
    chains, watching = chains_of(3, dim=DIM), Watching()
    schedule = Schedule.build(cosine_levels, SamplerConfig(steps=4, eta=0.0, repeats=1), "cpu")
    sample(
        watching, chains, schedule, ORDERS[order](chains), horizon=HORIZON, overlap=OVERLAP, below=cosine_below
    )  # fmt: skip
    table = cosine_table().float()
    behind = 0
    for sigma, told in watching.calls:
        for level, there in ((told.left_sigma, told.has_left), (told.right_sigma, told.has_right)):
            step = torch.searchsorted(table, sigma) - torch.searchsorted(table, level)
            assert set(step[there > 0].tolist()) <= {0, 1}
            behind += int(step[there > 0].sum())
    assert (behind > 0) == (order != "parallel")


def test_guidance_can_lead_away_from_start_and_goal_alone():
    rows = 2
    some, states = torch.ones(rows), torch.zeros(rows, OVERLAP, DIM)
    told = Conditions(states, some, states, some, states[:, 0], states[:, 0], 0 * some, some, some, 0 * some)
    for unguided, start in (("ends", 1), ("nothing", 0)):
        watching = Watching()
        guided(watching, torch.zeros(rows, HORIZON, DIM), some, told, 2.0, unguided)
        _, conditions = watching.calls[0]
        assert conditions.has_right.tolist() == [1, 1, 0, 0]
        assert conditions.has_start.tolist() == [1, 1, start, start]


def test_ends_are_held_and_estimates_stay_inside_the_limits():
    chains = chains_of(3, dim=DIM)
    config = SamplerConfig(steps=4, eta=0.0, repeats=1)
    schedule = Schedule.build(cosine_levels, config, "cpu")

    def far(x, sigma, conditions):
        return torch.full_like(x, 5.0)

    made = sample(
        far, chains, schedule, ORDERS["parallel"](chains), horizon=HORIZON, overlap=OVERLAP, hold=True, clamp=True
    )  # fmt: skip
    assert torch.allclose(made[0, 0], chains.start[0])
    assert torch.allclose(made[-1, -1], chains.goal[-1])
    assert torch.allclose(made[1], torch.ones(HORIZON, DIM))
