import pickle

import numpy as np
import pytest

from compdiffuser.experts.bodies import Bodies
from compdiffuser.experts.config import expert_config
from compdiffuser.experts.evaluation import measure
from compdiffuser.experts.policy import Expert, expert_for, load_expert, save_expert
from compdiffuser.files import pretrained_folder
from compdiffuser.presets import preset
from compdiffuser.types import UserError

SHIPPED = pretrained_folder() / "experts" / "ant"


def test_an_expert_comes_back_from_its_folder(tmp_path, actor_weights):
    save_expert(tmp_path, actor_weights, expert_config("ant"), {"steps": 1})
    expert, config = load_expert(tmp_path, noise=0.2)
    assert config == expert_config("ant")
    states = np.random.default_rng(0).normal(size=(5, 29))
    np.testing.assert_allclose(expert.act(states), Expert(actor_weights).act(states))
    quiet, _ = load_expert(tmp_path)
    assert expert.name != quiet.name  # another noise makes another dataset


def test_as_a_low_level_policy_it_ignores_where_it_is_and_adds_noise(actor_weights):
    expert = pickle.loads(pickle.dumps(Expert(actor_weights, noise=0.2)))
    observation, direction = np.random.default_rng(0).normal(size=29), np.array([1.0, 0.0])
    elsewhere = observation.copy()
    elsewhere[:2] += 100
    first, second = (expert(o, direction, np.random.default_rng(1)) for o in (observation, elsewhere))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first).max() < 1
    spread = np.std([expert(observation, direction, np.random.default_rng(n)) for n in range(200)], axis=0)
    np.testing.assert_allclose(spread, 0.2, atol=0.06)
    with pytest.raises(UserError, match="takes 29 numbers, a body and a direction, not 69"):
        expert(np.zeros(69), direction, np.random.default_rng(0))


def test_a_missing_or_damaged_expert_is_a_sentence(tmp_path, monkeypatch, actor_weights):
    monkeypatch.setattr("compdiffuser.experts.policy.pretrained_folder", lambda: tmp_path)
    with pytest.raises(UserError, match="no ant expert is shipped; train one with: compdiffuser data expert ant"):
        expert_for(preset("antmaze-medium-stitch-v0"))
    assert expert_for(preset("pointmaze-medium-stitch-v0")) is None
    folder = tmp_path / "broken"
    save_expert(folder, actor_weights, expert_config("ant"), {})
    (folder / "actor.safetensors").write_bytes(b"x" * 20)
    with pytest.raises(UserError, match="is corrupt"):
        load_expert(folder)
    (folder / "actor.safetensors").unlink()
    with pytest.raises(UserError, match=r"has no actor.safetensors"):
        load_expert(folder)
    (folder / "config.json").write_text("{}")
    with pytest.raises(UserError, match="does not describe an expert"):
        load_expert(folder)


@pytest.mark.skipif(not SHIPPED.is_dir(), reason="no ant expert is shipped")
def test_the_shipped_ant_walks_where_it_is_told():
    expert, config = load_expert("ant")
    bodies = Bodies(config, seed=1, count=8)
    figures = measure(expert, bodies)
    bodies.close()
    assert figures["distance"] > 13
    assert figures["distance_noise"] > 12
    assert figures["distance_turn"] > 9
