"""Settings of methods: those of each dataset, and those that nothing can be learned with."""

import json
import math
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from compdiffuser.baselines import METHODS, method
from compdiffuser.baselines.agent import Agent
from compdiffuser.baselines.config import AgentConfig
from compdiffuser.baselines.gciql import GCIQLConfig
from compdiffuser.baselines.goals import GoalMix
from compdiffuser.baselines.hiql import HIQLConfig
from compdiffuser.baselines.presets import config_for, goal_dims
from compdiffuser.baselines.qrl import QRLConfig
from compdiffuser.baselines.training import train_config
from compdiffuser.presets import PRESETS
from compdiffuser.types import UserError

KNOWN = json.loads((Path(__file__).parent / "golden" / "settings.json").read_text())
"""OGBench's settings: of each method, and where a dataset has others."""


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dataset", KNOWN["changes"])
def test_every_dataset_has_its_settings(name, dataset):
    expected = KNOWN["defaults"][name] | KNOWN["loops"][name] | KNOWN["changes"][dataset].get(name, {})
    found = json.loads(json.dumps(asdict(config_for(name, PRESETS[dataset]))))
    assert found == expected
    loop = train_config(config_for(name, PRESETS[dataset]), 100)
    assert {key: getattr(loop, key) for key in KNOWN["loops"][name]} == KNOWN["loops"][name]


@pytest.mark.parametrize("dataset", KNOWN["goal_dims"])
def test_goals_are_positions_where_tasks_ask_for_nothing_else(dataset):
    """Whatever is planned: velocities too, say."""
    for record in (PRESETS[dataset], PRESETS[dataset].planning((3, 1, 0, 2))):
        assert sorted(goal_dims(record, 4, whole=False)) == KNOWN["goal_dims"][dataset]
        assert goal_dims(record, 4, whole=True) == (0, 1, 2, 3)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"discount": 1.0}, r"discount lies between 0 and 1, not at 1\.0"),
        ({"discount": 0.0}, r"discount lies between 0 and 1, not at 0\.0"),
        ({"batch": 0}, "batch is a whole number of at least 1, not 0"),
        ({"batch": 2.5}, r"batch is a whole number of at least 1, not 2\.5"),
        ({"learning_rate": -1.0}, r"learning_rate is more than 0, not -1\.0"),
        ({"learning_rate": math.inf}, "learning_rate is more than 0, not inf"),
        ({"schedule": "step"}, "unknown schedule 'step'; choose cosine or constant"),
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


@pytest.mark.parametrize("name", METHODS)
def test_no_setting_is_nan(name):
    for setting, value in asdict(METHODS[name].config()).items():
        if isinstance(value, float):
            with pytest.raises(UserError, match=f"{setting} .*nan"):
                METHODS[name].config(**{setting: math.nan})


@pytest.mark.parametrize("shares", [{"trajectory": math.nan}, {"random": math.nan}, {"current": -0.5, "random": 0.5}])
def test_shares_of_goals_add_up(shares):
    with pytest.raises(UserError, match="shares of goals are at least 0 and add up to 1"):
        GoalMix(**shares)


def test_the_nearest_method_is_proposed():
    with pytest.raises(UserError, match=r"unknown method 'gcvil'; did you mean 'gcivl'\?"):
        method("gcvil")
    with pytest.raises(UserError, match="unknown method 'xyzzy'; known methods: dd, gcbc, gcivl"):
        method("xyzzy", also=["dd"])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_the_contract(name):
    agent, config, _ = METHODS[name]
    assert issubclass(agent, Agent)
    assert issubclass(config, AgentConfig)
