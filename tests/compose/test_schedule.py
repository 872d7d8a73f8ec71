import json
from dataclasses import asdict, fields

import pytest
import torch
from hand_made import variance_reached
from hypothesis import given
from hypothesis import strategies as st

from compdiffuser.compose.orders import ORDERS
from compdiffuser.compose.schedule import SamplerConfig, Schedule
from compdiffuser.compose.steps import STEPS
from compdiffuser.diffusion.levels import cosine_levels, karras_levels
from compdiffuser.types import UserError


def built(levels=karras_levels, **options) -> Schedule:
    return Schedule.build(levels, SamplerConfig(**options), "cpu")


@pytest.mark.parametrize("levels", [karras_levels, cosine_levels])
@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("repeats", [1, 4])
def test_every_step_arrives_at_the_next_level(levels, eta, repeats):
    """x − x₀ of variance σ² becomes keep·(x − x₀) + noise·z, whose variance must be the next level's."""
    schedule = built(levels, steps=20, eta=eta, repeats=repeats)
    variance = schedule.keep**2 * schedule.sigma[:-1] ** 2 + schedule.noise**2
    assert torch.allclose(variance, schedule.sigma[1:] ** 2, rtol=1e-4)
    assert schedule.sigma[-1] == 0
    assert variance[-1] == 0


@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("repeats", [1, 4])
def test_the_sampler_is_of_first_order(eta, repeats):
    """With an exact denoiser, four times the steps bring the samples' variance four times nearer to the truth."""
    variance = torch.tensor([0.05, 0.3, 1.0], dtype=torch.float64)
    errors = [
        (variance_reached(built(steps=steps, eta=eta, repeats=repeats), variance) / variance - 1).abs()
        for steps in (100, 400)
    ]
    assert (errors[1] < 0.04).all()
    assert ((errors[0] / errors[1] > 3) & (errors[0] / errors[1] < 5)).all()


def test_levels_inside_the_window_are_taken_as_often_as_asked():
    ladder = karras_levels(20).float()
    schedule = built(steps=20, repeats=4, window=(0.5, 20.0))
    inside = (ladder[:-1] >= 0.5) & (ladder[:-1] <= 20)
    assert 3 < inside.sum() < 17
    levels, counts = schedule.sigma[:-1].unique_consecutive(return_counts=True)
    assert torch.equal(levels, ladder[:-1])
    assert torch.equal(counts, torch.where(inside, 4, 1))
    assert len(schedule) == 20 + 3 * int(inside.sum())


def test_a_repeated_step_goes_down_and_climbs_back():
    schedule = built(steps=20, eta=0.0, repeats=3, window=(0.5, 20.0))
    ladder = karras_levels(20).float()
    level = int((ladder > 20).sum())  # the first inside
    assert torch.allclose(schedule.sigma[level : level + 3], ladder[level])
    assert torch.allclose(schedule.keep[level : level + 3], ladder[level + 1] / ladder[level])
    back = (ladder[level] ** 2 - ladder[level + 1] ** 2).sqrt()
    assert torch.allclose(schedule.noise[level : level + 3], torch.stack([back, back, torch.tensor(0.0)]))


def test_deterministic_steps_add_no_noise_and_are_eulers():
    schedule = built(steps=10, eta=0.0, repeats=1)
    assert not schedule.noise.any()
    assert torch.allclose(schedule.keep, schedule.sigma[1:] / schedule.sigma[:-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"repeats": 0}, "repeats must be at least 1, not 0"),
        ({"eta": 1.5}, "eta must lie between 0 and 1, not 1.5"),
        ({"eta": float("nan")}, "eta must lie between 0 and 1, not nan"),
        ({"window": (2.0, 1.0)}, r"the resampling window must be given as low, high, not \(2.0, 1.0\)"),
        ({"window": (0.5, float("inf"))}, r"the resampling window must be two finite numbers, not \(0.5, inf\)"),
        ({"window": (float("nan"), 8.0)}, r"must be two finite numbers, not \(nan, 8.0\)"),
        ({"window": (1.0, 2.0, 3.0)}, r"must be two finite numbers, not \(1.0, 2.0, 3.0\)"),
        ({"window": 3.0}, "must be two finite numbers, not 3.0"),
        ({"steps": True}, "steps must be a whole number, not True"),
        ({"steps": 10.0}, "steps must be a whole number, not 10.0"),
        ({"repeats": 2.5}, "repeats must be a whole number, not 2.5"),
        ({"eta": "1"}, "eta must lie between 0 and 1, not '1'"),
        ({"guidance": float("inf")}, "guidance must be a finite number, not inf"),
        ({"order": "random"}, "unknown order 'random'; choose one of parallel, autoregressive, "),
        ({"order": ["gsc"]}, "unknown order "),
        ({"rule": "midpoint"}, "unknown step rule 'midpoint'; choose one of euler, heun"),
    ],
)
def test_impossible_settings_are_named(options, message):
    with pytest.raises(UserError, match=message):
        SamplerConfig(**options)


@pytest.mark.parametrize("field", fields(SamplerConfig), ids=lambda field: field.name)
def test_every_setting_refuses_nan(field):
    with pytest.raises(UserError, match="nan"):
        SamplerConfig(**{field.name: float("nan")})


@given(
    st.builds(
        dict,
        steps=st.integers(1, 512),
        eta=st.floats(0, 1),
        repeats=st.integers(1, 50),
        window=st.tuples(st.floats(0, 1), st.floats(1, 100)),
        guidance=st.floats(allow_nan=False, allow_infinity=False),
        order=st.sampled_from(sorted(ORDERS)),
        rule=st.sampled_from(sorted(STEPS)),
        unguided=st.sampled_from(["nothing", "ends"]),
        fresh=st.booleans(),
        hold=st.booleans(),
        clamp=st.booleans(),
        told=st.sampled_from(["level", "step"]),
    )
)
def test_every_possible_setting_is_accepted_and_makes_the_round_trip_through_json(settings):
    config = SamplerConfig(**settings)
    assert asdict(config) == settings
    assert SamplerConfig(**json.loads(json.dumps(asdict(config)))) == config


@pytest.mark.parametrize("order", ORDERS)
def test_the_papers_sampler(order):
    config = SamplerConfig.paper(order)
    assert (config.steps, config.eta, config.repeats, config.guidance) == (50, 0.0, 1, 2.0)
    assert (config.order, config.rule) == (order, "euler")
    assert len(built(cosine_levels, **asdict(config))) == 50


def test_the_papers_sampler_refuses_an_unknown_order():
    with pytest.raises(UserError, match="unknown order 'random'"):
        SamplerConfig.paper("random")
