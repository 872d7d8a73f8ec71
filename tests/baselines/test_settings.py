"""Settings of methods that nothing can be learned with, each refused in a sentence that names it."""

import math
import re

import pytest

from compdiffuser.baselines import METHODS
from compdiffuser.baselines.gciql import GCIQLConfig
from compdiffuser.baselines.hiql import HIQLConfig
from compdiffuser.baselines.qrl import QRLConfig
from compdiffuser.types import UserError


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"discount": 1.0}, r"discount lies between 0 and 1, not at 1\.0"),
        ({"discount": 0.0}, r"discount lies between 0 and 1, not at 0\.0"),
        ({"batch": 0}, "batch is a whole number of at least 1, not 0"),
        ({"batch": 2.5}, r"batch is a whole number of at least 1, not 2\.5"),
        ({"learning_rate": -1.0}, r"learning_rate is more than 0, not -1\.0"),
    ],
)
def test_settings_that_cannot_be_are_named(name, changes, sentence):
    with pytest.raises(UserError, match=sentence):
        METHODS[name].config(**changes)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "dt"])  # a transformer has no such layers
@pytest.mark.parametrize("hidden", [(), (16, 0)])
def test_hidden_layers_that_cannot_be_are_named(name, hidden):
    with pytest.raises(UserError, match=re.escape(f"one or more whole numbers of at least 1, not {list(hidden)}")):
        METHODS[name].config(hidden=hidden)


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("gcivl", "expectile", 2.0), ("gcivl", "alpha", math.nan), ("gciql", "target_rate", 7.0),
        ("gciql", "alpha", -1.0), ("qrl", "component", 0), ("qrl", "latent", 0), ("qrl", "margin", 0.0),
        ("crl", "latent", 0), ("hiql", "subgoal_steps", -5), ("hiql", "representation", 0), ("dt", "context", 0),
        ("dt", "width", 0), ("dt", "blocks", 0), ("dt", "heads", 0), ("dt", "warmup", -1), ("dt", "warmup", 2.5),
        ("dt", "weight_decay", -0.1),
    ],
)  # fmt: skip
def test_a_setting_of_one_method_that_cannot_be_is_named(name, setting, value):
    with pytest.raises(UserError, match=f"^{setting} .* {value}$"):
        METHODS[name].config(**{setting: value})


def test_latents_are_whole_components():
    with pytest.raises(UserError, match=r"a latent of 20 numbers .* components of 8"):
        QRLConfig(latent=20, component=8)


def test_of_several_wrong_settings_the_same_is_named_every_time():
    with pytest.raises(UserError, match=r"^batch is"):
        HIQLConfig(batch=0, subgoal_steps=0, representation=0)


def test_targets_may_follow_at_once():
    assert GCIQLConfig(target_rate=1.0).target_rate == 1.0
