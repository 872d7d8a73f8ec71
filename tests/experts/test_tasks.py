import math

import numpy as np
import pytest
import torch
from small_experts import tiny

from compdiffuser.experts.simulators import Simulators
from compdiffuser.experts.tasks import task_of


def reward(name, command, displacement, ingredients, action):
    arrays = (np.array([each], float) for each in (command, displacement, ingredients, action))
    return float(task_of(tiny(name)).reward(*arrays)[0])


def test_an_ant_is_paid_for_metres_up_to_its_top_speed_and_pays_for_a_fall():
    assert reward("ant", (0.6, 0.8), (0.05, 0.1), (0,), np.zeros(8)) == pytest.approx(0.11)
    assert reward("ant", (0.6, 0.8), (0.1, 0.1), (0,), np.zeros(8)) == pytest.approx(0.12)
    assert reward("ant", (0.6, 0.8), (-1, 0), (1,), np.zeros(8)) == pytest.approx(-10.6)


def test_a_humanoid_is_paid_for_running_on_its_feet_and_for_getting_up():
    # 0.1 · stand · (1 + 100 · along) + 0.1 · rise − 0.002 · mean a²
    assert reward("humanoid", (1, 0), (0.03, 1), (0.5, 1.2), np.ones(21)) == pytest.approx(0.2 + 0.12 - 0.002)
    assert reward("humanoid", (1, 0), (0.3, 0), (1, 1.5), np.zeros(21)) == pytest.approx(0.7 + 0.15)
    assert reward("humanoid", (1, 0), (-0.3, 0), (1, 1.5), np.zeros(21)) == pytest.approx(-0.5 + 0.15)


def test_how_well_a_humanoid_stands_is_as_in_ogbench():
    from ogbench.online_locomotion.humanoid import tolerance

    rng = np.random.default_rng(0)
    after = np.zeros((50, 69))
    after[:, 23], after[:, 38] = rng.uniform(0, 1.8, 50), rng.uniform(-1, 1, 50)
    height = tolerance(after[:, 23], bounds=(1.4, math.inf), margin=1.4 / 4)
    upright = tolerance(after[:, 38], bounds=(0.9, math.inf), margin=1.9, sigmoid="linear", value_at_margin=0)
    stands, rise = task_of(tiny("humanoid")).measure(after, after).T
    np.testing.assert_allclose(stands, height * upright, atol=1e-12)
    np.testing.assert_allclose(rise, np.minimum(after[:, 23], 1.4) / 1.4 + 0.5 * after[:, 38])


def test_a_ball_is_paid_for_by_ogbench_plus_a_little_at_the_target():
    command, moved, nearer = (3.0, 4.0), (0.6, 0.8), 0.2  # 5 m away, 4 m afterwards
    ogbench = 10 * (2.5 * (5 - 4) + nearer)
    arrival = 0.1 * math.exp(-((4 / 0.7) ** 2))
    assert reward("ball", command, moved, (nearer, 0), np.zeros(8)) == pytest.approx(0.1 * ogbench + arrival)
    there = reward("ball", (0.6, 0.8), (0.6, 0.8), (0, 0), np.zeros(8))
    assert there == pytest.approx(2.5 + 0.1)
    assert reward("ball", (0.6, 0.8), (0.6, 0.8), (0, 1), np.zeros(8)) == pytest.approx(there - 5.0)


def test_arrays_and_tensors_give_the_same():
    rng = np.random.default_rng(0)
    for name in ("ant", "humanoid", "ball"):
        task = task_of(tiny(name))
        parts = [rng.normal(size=(7, n)) for n in (2, 2, task.ingredients, 3)]
        tensors = [torch.from_numpy(part) for part in parts]
        np.testing.assert_allclose(task.reward(*parts), task.reward(*tensors))
        angles, uniform = rng.normal(size=7), rng.uniform(size=(3, 7))
        np.testing.assert_allclose(task.show(parts[0], angles), task.show(tensors[0], torch.from_numpy(angles)))
        np.testing.assert_allclose(task.fresh(uniform), task.fresh(torch.from_numpy(uniform)))
        assert task.show(parts[0], angles).shape == (7, task.shown)


@pytest.mark.parametrize("name", ["ant", "humanoid", "ball"])
def test_a_reward_in_hindsight_is_the_one_of_a_body_that_was_told_so(name):
    config, rng = tiny(name), np.random.default_rng(0)
    task = task_of(config)
    commands = (
        rng.uniform(-5, 5, (2, 4, 2)) if name == "ball" else task.fresh(rng.uniform(size=(3, 8))).reshape(2, 4, 2)
    )
    actions = rng.uniform(-1, 1, (6, 4, 21 if name == "humanoid" else 8))
    kept = []
    for command in commands:
        with Simulators(config, 5, 4, 0) as bodies:
            for action in actions:
                bodies.told[:] = command
                bodies.step(action, told=True)
            kept.append({name: part.copy() for name, part in bodies.transitions.split(bodies.rows).items()})
    one, other = kept
    for name in ("displacement", "ingredients", "view", "following"):
        np.testing.assert_array_equal(one[name], other[name])
    hindsight = task.reward(other["command"], one["displacement"], one["ingredients"], one["action"])
    told = task.reward(*(other[name] for name in ("command", "displacement", "ingredients", "action")))
    np.testing.assert_allclose(hindsight, told)


def test_targets_in_hindsight_are_drawn_around_the_ball():
    drawn = task_of(tiny("ball")).fresh(np.random.default_rng(0).uniform(size=(3, 4000)))
    distance = np.linalg.norm(drawn, axis=1)
    assert np.abs(drawn).max() <= 12
    assert 0.5 < (distance < 5).mean() < 0.65  # half, and a few of the far ones
    assert (distance < 0.5).mean() > 0.03
