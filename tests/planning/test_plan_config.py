"""Configs of planning and following refuse what means nothing, NaN above all."""

from dataclasses import fields, replace

import pytest

from compdiffuser import PlanConfig, SamplerConfig
from compdiffuser.following.network import InverseDynamicsConfig
from compdiffuser.following.settings import Following
from compdiffuser.types import UserError

NAN = float("nan")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"score": "overlp"}, "unknown score 'overlp'; choose one of reconstruction, overlap"),
        ({"blending": "nope"}, "unknown blending 'nope'; choose one of exponential, cosine, linear"),
        ({"certify": 3}, "certify is a share above 0 and at most 1, not 3"),
        ({"certify": 0.0}, "certify is a share above 0 and at most 1, not 0.0"),
        ({"wave": 0}, "a wave is a whole number of at least 1 candidate, not 0"),
        ({"refine": -1}, "refined candidates are noised up to a level above 0, not to -1"),
        ({"sampler": "paper"}, "sampler must be a SamplerConfig, not paper"),
        ({"sampler": None}, "sampler must be a SamplerConfig, not None"),
        ({"scaffold": "some"}, "a scaffold is noised up to a level above 0, not to some"),
    ],
)
def test_a_planner_is_not_set_up_for_nonsense(changes, sentence):
    """All of these were accepted; a search then failed, ended at once, or never."""
    with pytest.raises(UserError, match=sentence):
        PlanConfig(**changes)


@pytest.mark.parametrize("changes", [{"order": "sideways"}, {"steps": 0}, {"rule": "leap"}, {"window": (2.0, 1.0)}])
def test_a_sampler_is_not_set_up_for_nonsense(changes):
    with pytest.raises(UserError):
        SamplerConfig(**changes)


CONFIGS = (PlanConfig(), SamplerConfig(), Following(), InverseDynamicsConfig(observation=29, action=8))
KEPT = {"sampler", "options", "space", "hidden"}
"""Fields that hold no number."""


@pytest.mark.parametrize(
    ("config", "name"),
    [
        pytest.param(config, field.name, id=f"{type(config).__name__}.{field.name}")
        for config in CONFIGS
        for field in fields(config)
        if field.name not in KEPT
    ],
)
def test_nothing_is_set_to_what_is_not_a_number(config, name):
    value = (NAN, NAN) if isinstance(getattr(config, name), tuple) else NAN
    with pytest.raises(UserError):
        replace(config, **{name: value})


def test_the_papers_way_is_a_config():
    paper = PlanConfig.paper("parallel")
    assert (paper.sampler.order, paper.score, paper.refine, paper.scaffold) == ("parallel", "overlap", None, None)
    assert paper.sampler == SamplerConfig.paper("parallel")
