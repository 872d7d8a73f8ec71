"""A run that was cut off makes, bit for bit, what it would have made: its bodies go on where they were."""

from dataclasses import replace

import numpy as np
import pytest
from small_experts import tiny

from compdiffuser.experts.bodies import Bodies
from compdiffuser.experts.config import EXPERTS
from compdiffuser.experts.policy import load_expert
from compdiffuser.experts.simulators import Simulators
from compdiffuser.experts.training import Run, train_expert


@pytest.mark.parametrize("name", ["ant", "ball", "humanoid"])
def test_bodies_go_on_where_they_were(name):
    config = replace(EXPERTS[name], environments=3, redraw=4, episode_steps=9, updates_per_step=1, redraw_chance=0.1)
    rng = np.random.default_rng(0)
    first = Bodies(config, np.random.SeedSequence(1).spawn(3))
    actions = rng.uniform(-1, 1, (24, 3, first.world.actions))
    for action in actions[:12]:
        first.step(action)
    second = Bodies(config, np.random.SeedSequence(2).spawn(3))
    second.restore(first.state())
    np.testing.assert_array_equal(first.now, second.now)
    for action in actions[12:]:
        first.step(action)
        second.step(action)
        np.testing.assert_array_equal(first.rows, second.rows)
        np.testing.assert_array_equal(first.now, second.now)


def test_the_state_of_bodies_does_not_depend_on_their_processes(small):
    states = []
    for processes in (0, 2):
        with Simulators(small, 3, 3, processes) as bodies:
            bodies.step(np.full(bodies.actions.shape, 0.5, np.float32))
            states.append(bodies.state())
    one, other = states
    assert one.pop("drawn") == other.pop("drawn")
    for name, each in one.items():
        np.testing.assert_array_equal(each, other[name])


@pytest.mark.slow
def test_a_run_in_parts_is_the_run_in_one(tmp_path, short_walks, capsys):
    """With a ring that is full, a log that is half gathered, and rows beyond the last checkpoint."""
    config = tiny("ant", steps=288, replay=64, log_every=96, checkpoint_every=160, measure_every=96)
    train_expert(config, tmp_path / "one", processes=0, progress=False)
    train_expert(replace(config, steps=160), tmp_path / "parts", processes=0, progress=False)
    checkpoint = (tmp_path / "parts" / "checkpoint.pt").read_bytes()
    train_expert(replace(config, steps=288), tmp_path / "parts", processes=0, progress=False)
    (tmp_path / "parts" / "checkpoint.pt").write_bytes(checkpoint)  # as if it had been killed just before its last one
    run = Run(config, tmp_path / "parts", processes=0)
    run.save()
    run.close()
    capsys.readouterr()
    load_expert(tmp_path / "parts")
    assert "is not trained to its end (160 of 288 steps)" in capsys.readouterr().err
    train_expert(config, tmp_path / "parts", processes=0, progress=False)
    one, parts = (load_expert(tmp_path / folder)[0].weights for folder in ("one", "parts"))
    for weight, expected in one.items():
        np.testing.assert_array_equal(parts[weight], expected)
    assert capsys.readouterr().err == ""
