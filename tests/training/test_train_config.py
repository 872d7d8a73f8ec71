import math
from dataclasses import fields

import pytest

from compdiffuser.training.config import TrainConfig
from compdiffuser.types import UserError


def test_the_rate_climbs_to_its_peak_and_falls_to_zero_along_a_cosine():
    config = TrainConfig(steps=1000, learning_rate=2e-3, warmup=100)
    assert config.rate(0, 0.0) == pytest.approx(2e-5)
    assert config.rate(49, 0.0) == pytest.approx(1e-3)
    assert config.rate(99, 0.0) == pytest.approx(2e-3)
    assert config.rate(250, 0.25) == pytest.approx(2e-3 * (1 + math.sqrt(0.5)) / 2)
    assert config.rate(500, 0.5) == pytest.approx(1e-3)
    assert config.rate(1000, 1.0) == pytest.approx(0, abs=1e-12)


def test_no_warm_up_begins_at_the_peak():
    assert TrainConfig(warmup=0, learning_rate=1e-3).rate(0, 0.0) == pytest.approx(1e-3)


def test_the_average_forgets_faster_at_first():
    config = TrainConfig(ema=0.99)
    assert config.decay(0) == pytest.approx(0.1)
    assert config.decay(90) == pytest.approx(0.91)
    assert config.decay(889) == pytest.approx(890 / 899)
    assert config.decay(891) == config.decay(10**6) == 0.99


def test_progress_follows_the_sooner_of_steps_and_time():
    config = TrainConfig(steps=100, time_limit=50.0)
    assert config.progress(20, 5.0) == pytest.approx(0.2)
    assert config.progress(20, 25.0) == pytest.approx(0.5)
    assert config.progress(20, 60.0) == 1.0
    assert TrainConfig(steps=100).progress(20, 1e9) == pytest.approx(0.2)
    assert TrainConfig(steps=100).progress(130, 0.0) == 1.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"batch": -3}, "batch must be at least 1, not -3"),
        ({"checkpoint_every": 0}, "checkpoint_every must be at least 1, not 0"),
        ({"log_every": 0}, "log_every must be at least 1, not 0"),
        ({"time_limit": 0.0}, "time_limit must be positive, not 0.0"),
        ({"time_limit": math.nan}, "time_limit must be a finite number or nothing, not nan"),
        ({"steps": 2.5}, "steps must be a whole number, not 2.5"),
        ({"learning_rate": math.nan}, "learning_rate must be a finite number, not nan"),
        ({"learning_rate": math.inf}, "learning_rate must be a finite number, not inf"),
        ({"weight_decay": math.nan}, "weight_decay must be a finite number, not nan"),
        ({"learning_rate": 0}, "learning_rate must be positive, not 0"),
        ({"clip": -1.0}, "clip must be positive, not -1.0"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0 and less than inf, not -0.1"),
        ({"warmup": -1}, "warmup must be at least 0, not -1"),
        ({"beta2": 1.0}, "beta2 must be at least 0 and less than 1, not 1.0"),
        ({"ema": math.nan}, "ema must be a finite number or nothing, not nan"),
        ({"clip": math.nan}, "clip must be a finite number or nothing, not nan"),
        ({"precision": "fp8"}, "unknown precision 'fp8'; choose bf16, tf32, float32"),
        ({"schedule": "step"}, "unknown schedule 'step'; choose cosine or constant"),
    ],
)
def test_settings_that_cannot_be_are_named(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        TrainConfig(**changes)


@pytest.mark.parametrize("value", [[1], "1", True, {}])
@pytest.mark.parametrize("name", [field.name for field in fields(TrainConfig)])
def test_values_of_another_kind_are_named(name, value):
    with pytest.raises(UserError):
        TrainConfig(**{name: value})


@pytest.mark.parametrize("name", ["learning_rate", "weight_decay", "beta2", "precision"])
def test_what_a_training_needs_cannot_be_nothing(name):
    with pytest.raises(UserError):
        TrainConfig(**{name: None})
