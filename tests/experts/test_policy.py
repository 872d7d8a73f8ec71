import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_experts import tiny, untrained

from compdiffuser.experts.config import EXPERTS, ExpertConfig, expert_config
from compdiffuser.experts.policy import Expert, experts_for, load_expert, save_expert
from compdiffuser.experts.simulators import Simulators
from compdiffuser.presets import preset
from compdiffuser.types import UserError

STORED = [-0.71843666, -0.99999976, -0.9999963, -0.99994886, -0.99999934, -0.99999994, -0.9999996, 0.60742956]
"""What the shipped ant does at np.linspace(-1, 1, 29), told to go to (0.6, 0.8); print `act` there to renew it."""


@pytest.mark.parametrize("name", EXPERTS)
def test_an_expert_in_numpy_does_what_the_actor_does(name):
    config = tiny(name)
    actor, weights = untrained(config)
    expert = Expert(config, weights)
    with Simulators(config, 0, 8, 0) as bodies:
        for _ in range(3):
            bodies.step(np.random.default_rng(0).uniform(-1, 1, bodies.actions.shape))
        now = {part: torch.from_numpy(bodies.part(part)) for part in bodies.moments.widths}
        state = actor.state(now["view"], expert.task.show(now["command"], now["frame"][:, 0]))
        commands = bodies.own.bodies.commands
    observations, headings = now["observation"].numpy(), now["heading"][:, 0].numpy()
    acted = expert.act(observations, commands, headings)
    np.testing.assert_allclose(acted, actor(state).detach(), atol=1e-5)
    one = expert.act(observations[3], commands[3], headings[3])
    np.testing.assert_allclose(one, acted[3], atol=1e-6)


def test_an_expert_comes_back_from_its_folder(tmp_path):
    config = tiny("humanoid")
    weights = untrained(config)[1]
    save_expert(tmp_path, weights, config, {"steps": 1})
    expert, loaded = load_expert(tmp_path, noise=0.2)
    assert loaded == config
    rng = np.random.default_rng(0)
    given = rng.normal(size=(5, 69)), rng.normal(size=(5, 2)), rng.normal(size=5)
    np.testing.assert_allclose(expert.act(*given), Expert(config, weights).act(*given), atol=5e-3)  # half precision
    assert expert.name != load_expert(tmp_path)[0].name  # another noise makes another dataset


@pytest.mark.parametrize("name", EXPERTS)
def test_experts_are_small_files(name, tmp_path):
    config = replace(EXPERTS[name], environments=8, updates_per_step=1.0)
    save_expert(tmp_path, untrained(config)[1], config, {})
    assert (tmp_path / "actor.safetensors").stat().st_size < 1_300_000


def test_as_a_policy_it_ignores_where_it_is_and_adds_noise():
    config = tiny("ant")
    expert = pickle.loads(pickle.dumps(Expert(config, untrained(config)[1], noise=0.2)))
    observation, direction = np.random.default_rng(0).normal(size=29), np.array([1.0, 0.0])
    elsewhere = observation.copy()
    elsewhere[:2] += 100
    first, second = (expert(o, direction, np.random.default_rng(1)) for o in (observation, elsewhere))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first).max() < 1
    spread = np.std([expert(observation, direction, np.random.default_rng(n)) for n in range(200)], axis=0)
    np.testing.assert_allclose(spread, 0.2, atol=0.06)


def test_what_does_not_fit_is_a_sentence():
    rng, direction = np.random.default_rng(0), np.array([1.0, 0.0])
    for name, width in (("ant", 69), ("ball", 29), ("humanoid", 29)):
        expert = Expert(tiny(name), untrained(tiny(name))[1], name)
        with pytest.raises(UserError, match=f"{name} is for the body .* does not fit observations"):
            expert(np.zeros(width), direction, rng, heading=0.0)
    assert expert.needs_heading
    with pytest.raises(UserError, match="humanoid needs the heading of its body"):
        expert(np.zeros(69), direction, rng)
    assert expert(np.zeros(69), direction, rng, heading=1.0).shape == (21,)


def test_a_missing_or_damaged_expert_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("compdiffuser.experts.policy.pretrained_folder", lambda: tmp_path)
    with pytest.raises(UserError, match="no ant expert is shipped; train one with: compdiffuser data expert ant"):
        experts_for(preset("antmaze-medium-stitch-v0"))
    assert experts_for(preset("pointmaze-medium-stitch-v0")) == ()
    folder = tmp_path / "broken"
    save_expert(folder, untrained(tiny("ant"))[1], tiny("ant"), {})
    (folder / "actor.safetensors").write_bytes(b"x" * 20)
    with pytest.raises(UserError, match="is corrupt"):
        load_expert(folder)
    (folder / "actor.safetensors").unlink()
    with pytest.raises(UserError, match=r"has no actor.safetensors"):
        load_expert(folder)
    (folder / "config.json").write_text("{}")
    with pytest.raises(UserError, match="does not describe an expert"):
        load_expert(folder)


def test_an_expert_of_ones_own_takes_the_place_of_the_one_for_its_body(tmp_path):
    soccer = preset("antsoccer-arena-stitch-v0")
    shipped = experts_for(soccer)
    assert [expert.config.name for expert in shipped] == ["ant", "ball"]
    save_expert(tmp_path, untrained(tiny("ball"))[1], tiny("ball"), {})
    ant, ball = experts_for(soccer, tmp_path)
    assert ant.name == shipped[0].name
    assert ball.name == load_expert(tmp_path, soccer.recording.noise)[0].name != shipped[1].name
    save_expert(tmp_path / "student", untrained(tiny("humanoid-student"))[1], tiny("humanoid-student"), {})
    with pytest.raises(UserError, match=r"moves the body 'humanoid'; '.*' needs one for 'ant' or 'ant-ball'"):
        experts_for(soccer, tmp_path / "student")


def test_the_shipped_ant_acts_as_it_always_did():
    expert, config = load_expert("ant")
    assert config == replace(expert_config("ant"), steps=120_000)
    acted = expert.act(np.linspace(-1, 1, 29), np.array([0.6, 0.8]))
    np.testing.assert_allclose(acted, np.array(STORED, np.float32), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", EXPERTS)
def test_settings_survive_json(name):
    assert ExpertConfig.from_dict(EXPERTS[name].to_dict()) == EXPERTS[name]


def test_bad_settings_are_named(small):
    with pytest.raises(UserError, match="unknown expert 'cat'; known experts: ant, humanoid, ball, humanoid-student"):
        expert_config("cat")
    for changes, said in (
        ({"updates_per_step": 0.1}, r"4 environments with 0.1 updates per step make 0.4 updates"),
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"task": "ball"}, "task 'ball' is for the body 'ant-ball', not for 'ant'"),
        ({"task": "ball", "body": "ant-ball"}, "a top speed belongs to the tasks 'direction' and 'standing'"),
        ({"task": "fly"}, "task is one of direction, standing, ball, not 'fly'"),
        ({"relabel": 2}, "relabel is a share between 0 and 1, not 2"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number, not nan"),
        ({"time_limit": 0.0}, "time_limit must be more than 0, not 0.0"),
        ({"fall_cost": -1.0}, "fall_cost must not be negative, and is -1.0"),
        ({"replay": 3}, "a replay of 3 transitions is too small for 4 environments"),
    ):
        with pytest.raises(UserError, match=said):
            replace(small, **changes)
