from dataclasses import replace

import numpy as np
import pytest

from compdiffuser.experts.bodies import Bodies
from compdiffuser.experts.config import EXPERTS, ExpertConfig, expert_config
from compdiffuser.experts.evaluation import measure
from compdiffuser.experts.policy import Expert
from compdiffuser.types import UserError


def test_a_transition_holds_what_moved_and_where_to(small):
    bodies = Bodies(replace(small, redraw=3), seed=0)
    for step in range(4):
        states, at = bodies.states, np.stack([body.position for body in bodies.all])
        actions = np.full((4, 8), 0.5, np.float32)
        rows, ended = bodies.step(actions)
        now, later, acted, direction, push, base, goes_on = np.split(rows, np.cumsum(bodies.sizes.fields)[:-1], axis=1)
        np.testing.assert_allclose(np.concatenate([now, direction], axis=1), states, atol=1e-6)
        np.testing.assert_allclose(push, np.stack([body.position for body in bodies.all]) - at, atol=1e-6)
        np.testing.assert_array_equal(acted, actions)
        np.testing.assert_allclose(later, bodies.states[:, :27], atol=1e-6)
        np.testing.assert_array_equal(goes_on, 1)
        np.testing.assert_array_equal(base, 0)
        redrawn = np.abs(bodies.states[:, 27:] - direction).max() > 1e-3
        assert redrawn == (step == 2)
        assert not ended.any()
    bodies.close()


def test_what_happens_does_not_depend_on_threads(small):
    recorded = []
    for threads in (1, 3):
        bodies = Bodies(small, seed=3)
        bodies.threads = threads
        rng = np.random.default_rng(0)
        recorded.append([bodies.step(rng.uniform(-1, 1, (4, 8)))[0] for _ in range(5)])
        bodies.close()
    np.testing.assert_array_equal(*recorded)


def test_a_humanoid_is_paid_for_standing():
    bodies = Bodies(expert_config("humanoid"), seed=0, count=1)
    rows, _ = bodies.step(np.zeros((1, bodies.sizes.action)))
    assert bodies.sizes == (67, 21, 2)
    assert 0 <= rows[0, -2] <= 1
    bodies.close()


def test_episodes_end_after_their_steps(small):
    bodies = Bodies(replace(small, episode_steps=2), seed=0)
    assert not bodies.step(np.zeros((4, 8)))[1].any()
    rows, ended = bodies.step(np.zeros((4, 8)))
    assert ended.all()
    assert (rows[:, -1] == 1).all()  # cut, not over
    bodies.restart(ended)
    assert all(body.step_number == 0 for body in bodies.all)
    bodies.close()


def test_an_ant_on_its_back_pays_and_its_episode_is_over(small):
    bodies = Bodies(small, seed=0, count=1)
    simulator = bodies.all[0].simulator
    qpos = simulator.data.qpos.copy()
    qpos[3:7] = (0.0, 1.0, 0.0, 0.0)
    simulator.set_state(qpos, simulator.data.qvel)
    rows, ended = bodies.step(np.zeros((1, 8)))
    assert ended.all()
    np.testing.assert_allclose(rows[0, -2:], [-small.fall_cost, 0.0])
    bodies.close()


def test_a_simulation_that_blows_up_ends_its_episode_and_teaches_nothing(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log where it runs
    bodies = Bodies(small, seed=0, count=1)
    bodies.step(np.zeros((1, 8)))
    bodies.all[0].simulator.data.qvel[0] = 1e12
    rows, ended = bodies.step(np.zeros((1, 8)))
    assert ended.all()
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(rows[0, -4:], [0, 0, 0, 0])  # push, base, goes on
    bodies.restart(ended)
    assert np.isfinite(bodies.step(np.zeros((1, 8)))[0]).all()
    bodies.close()


def test_an_expert_that_does_nothing_gets_nowhere(small, actor_weights):
    bodies = Bodies(small, seed=0)
    still = Expert({name: 0 * weight for name, weight in actor_weights.items()})
    figures = measure(still, bodies)
    assert abs(figures["distance"]) < 0.5
    assert figures["fell"] == 0
    bodies.close()


@pytest.mark.parametrize("name", EXPERTS)
def test_settings_survive_json(name):
    assert ExpertConfig.from_dict(EXPERTS[name].to_dict()) == EXPERTS[name]


def test_bad_settings_are_named(small):
    with pytest.raises(UserError, match="unknown expert 'cat'; known experts: ant, ball, humanoid"):
        expert_config("cat")
    with pytest.raises(UserError, match=r"4 environments with 0.1 updates per step make 0.4 updates"):
        replace(small, updates_per_step=0.1)
    with pytest.raises(UserError, match="steps must be at least 1, not 0"):
        replace(small, steps=0)
    with pytest.raises(UserError, match="a top speed belongs to reward 'direction', not to 'own'"):
        replace(small, reward="own")
    with pytest.raises(UserError, match="relabel is a share between 0 and 1, not 2"):
        replace(small, relabel=2)
