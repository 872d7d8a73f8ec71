import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_experts import tiny, untrained

from compdiffuser.domains.body import BODIES
from compdiffuser.experts.policy import Expert, load_expert, save_expert
from compdiffuser.experts.simulators import Simulators
from compdiffuser.experts.student import Student, Teacher, turns
from compdiffuser.experts.training import Run, train_expert
from compdiffuser.types import UserError

CPU = torch.device("cpu")


@pytest.fixture
def teacher(tmp_path):
    """A hand-made one: its hips follow the direction, as seen from its heading."""
    config = tiny("humanoid")
    actor, weights = untrained(config)
    weights = {name: 0 * weight + (1 if name.endswith("variance") else 0) for name, weight in weights.items()}
    for number in (0, 3):  # two layers that let the two last inputs through, as differences of ReLU-like parts
        weights[f"network.{number + 1}.weight"] += 1
        for k in range(2):
            rows = (2 * k, 2 * k + 1)
            source = actor.network[0].in_features - 2 + k
            for row, sign in zip(rows, (3, -3), strict=True):
                weights[f"network.{number}.weight"][row, source if number == 0 else row] = sign if number == 0 else 1
    for k in range(2):
        weights["network.6.weight"][k, 2 * k : 2 * k + 2] = (0.3, -0.3)
    save_expert(tmp_path / "teacher", weights, config, {})
    return tmp_path / "teacher"


def test_a_view_from_another_north(tmp_path):
    config, rng = tiny("humanoid-student"), np.random.default_rng(0)
    still, along, across = turns(config, 67)
    seen, angle = rng.normal(size=(5, 69)), 0.7
    turned = seen[:, 2:] @ (still + math.cos(angle) * along + math.sin(angle) * across)
    np.testing.assert_allclose(turned, BODIES["humanoid"].egocentric(seen, np.full(5, -angle)), atol=1e-6)
    assert np.abs(turned - seen[:, 2:]).max() > 0.1


def test_a_teacher_on_the_device_does_what_the_expert_does(teacher):
    expert, _ = load_expert(teacher)
    with Simulators(tiny("humanoid-student"), 0, 4, 0) as bodies:
        taught = Teacher(expert, 21, CPU)(bodies)
        headings = bodies.part("heading")[:, 0]
        expected = expert.act(bodies.part("observation"), bodies.part("command"), headings)
        np.testing.assert_allclose(taught, expected, atol=1e-6)
        assert np.abs(expected[:, :2]).max() > 0.1  # it does something
        assert not expected[:, 2:].any()


@pytest.mark.slow
def test_a_student_learns_what_the_teacher_does(teacher, tmp_path, short_walks):
    config = tiny(
        "humanoid-student", steps=4000, random_steps=200, environments=20, batch=128, updates_per_step=0.1, replay=4000,
        log_every=1000, checkpoint_every=4000, measure_every=4000, learning_rate=3e-3, actor_hidden=(64, 64),
    )  # fmt: skip
    rows = train_expert(config, tmp_path / "student", teacher=teacher, processes=0, progress=False)
    assert rows[-1]["loss"] < 0.5 * rows[0]["loss"]
    student, _ = load_expert(tmp_path / "student")
    assert not student.needs_heading
    with pytest.raises(UserError, match="holds a run with learning_rate"):
        train_expert(replace(config, learning_rate=1e-3), tmp_path / "student", teacher=teacher, progress=False)
    with pytest.raises(UserError, match="humanoid-student learns from an expert: give its folder with --teacher"):
        train_expert(config, tmp_path / "student", progress=False)


def test_the_teacher_acts_at_first_and_the_student_in_the_end(teacher, tmp_path):
    run = Run(tiny("humanoid-student"), tmp_path / "run", "cpu", teacher, 0)
    learner = run.learner
    assert isinstance(learner, Student)
    taught = [np.abs(learner.act(run.bodies, 0, done) - learner.taught[:, -21:]).mean() for done in (0.0, 0.0, 1.0)]
    assert max(taught[:2]) < 0.12 < taught[2]
    run.close()


def test_a_teacher_for_another_body_is_refused(tmp_path):
    config = tiny("ant")
    save_expert(tmp_path / "ant", untrained(config)[1], config, {})
    with pytest.raises(UserError, match="is an expert for body 'ant' and task 'direction'; humanoid-student needs"):
        train_expert(tiny("humanoid-student"), tmp_path / "out", teacher=tmp_path / "ant", progress=False)
    assert isinstance(load_expert(tmp_path / "ant")[0], Expert)
