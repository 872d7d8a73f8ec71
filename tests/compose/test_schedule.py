import pytest
import torch
from hand_made import variance_reached

from compdiffuser.compose.schedule import SamplerConfig, Schedule
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
    ("options", "sentence"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"repeats": 0}, "repeats must be at least 1, not 0"),
        ({"eta": 1.5}, "eta must lie between 0 and 1, not 1.5"),
        ({"eta": float("nan")}, "eta must lie between 0 and 1, not nan"),
        ({"window": (2.0, 1.0)}, r"the resampling window \(2.0, 1.0\) must be given as low, high"),
    ],
)
def test_settings_that_cannot_be_are_named(options, sentence):
    with pytest.raises(UserError, match=sentence):
        SamplerConfig(**options)
