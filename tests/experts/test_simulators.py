import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from small_experts import tiny

from compdiffuser.experts.bodies import Bodies
from compdiffuser.experts.config import EXPERTS
from compdiffuser.experts.simulators import Simulators

LEFT_ALONE = """
import sys, time, numpy as np
from small_experts import tiny
from compdiffuser.experts.simulators import Simulators
bodies = Simulators(tiny("ant"), 0, 4, 2)
print(*(process.pid for process in bodies.processes), flush=True)
while True:
    bodies.step(np.zeros((4, 8)))
"""


def bodies_of(config, count=1, seed=0) -> Bodies:
    return Bodies(config, np.random.SeedSequence(seed).spawn(count))


def parts(bodies) -> dict[str, np.ndarray]:
    return bodies.transitions.split(bodies.rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERTS)
def test_what_happens_does_not_depend_on_processes(name):
    config = tiny(name, episode_steps=3, redraw_chance=0.3)
    recorded = []
    for processes in (0, 1, 3):
        rng, told = np.random.default_rng(0), []
        with Simulators(config, 3, 4, processes) as bodies:
            for _ in range(5):
                bodies.step(rng.uniform(-1, 1, bodies.actions.shape))
                told.append(np.concatenate([bodies.now, bodies.rows], axis=1))
        recorded.append(told)
    np.testing.assert_array_equal(recorded[0], recorded[1])
    np.testing.assert_array_equal(recorded[0], recorded[2])
    assert np.isfinite(recorded[0]).all()


def test_a_transition_holds_what_moved_and_where_to(small):
    bodies = bodies_of(replace(small, redraw=3), 4)
    for step in range(4):
        before = bodies.moments.split(bodies.now.copy())
        bodies.step(np.full((4, 8), 0.5, np.float32))
        row, after = parts(bodies), bodies.moments.split(bodies.now)
        np.testing.assert_array_equal(row["view"], before["view"])
        np.testing.assert_array_equal(row["following"], after["view"])
        np.testing.assert_array_equal(row["command"], before["command"])
        moved = after["observation"][:, :2] - before["observation"][:, :2]
        np.testing.assert_allclose(row["displacement"], moved, atol=1e-6)
        np.testing.assert_array_equal(row["action"], 0.5)
        np.testing.assert_array_equal(row["going_on"], 1)
        redrawn = np.abs(after["command"] - before["command"]).max() > 1e-3
        assert redrawn == (step == 2)


def test_a_ball_moves_its_target_closer():
    bodies = bodies_of(tiny("ball", redraw_chance=0.0), 3)
    for _ in range(3):
        bodies.step(np.zeros((3, 8)))
        row, after = parts(bodies), bodies.moments.split(bodies.now)
        np.testing.assert_allclose(after["command"], row["command"] - row["displacement"], atol=1e-5)
        targets = after["observation"][:, 15:17] + after["command"]
        np.testing.assert_allclose(targets, bodies.commands, atol=1e-5)


def test_episodes_end_after_their_steps(small):
    bodies = bodies_of(replace(small, episode_steps=2), 2)
    bodies.step(np.zeros((2, 8)))
    assert not bodies.moments.part(bodies.now, "ended").any()
    bodies.step(np.zeros((2, 8)))
    assert bodies.moments.part(bodies.now, "ended").all()
    assert parts(bodies)["going_on"].all()  # cut, not over
    assert (bodies.steps == 0).all()
    assert np.abs(parts(bodies)["following"] - bodies.moments.part(bodies.now, "view")).max() > 1e-3


@pytest.mark.parametrize("name", ["ant", "ball"])
def test_an_ant_on_its_back_pays_and_its_episode_is_over(name):
    bodies = bodies_of(tiny(name))
    bodies.world.data[0].qpos[3:7] = (0.0, 1.0, 0.0, 0.0)
    bodies.step(np.zeros((1, 8)))
    row = parts(bodies)
    assert row["going_on"] == 0
    assert row["ingredients"][0, -1] == 1
    assert bodies.moments.part(bodies.now, "ended").all()


def test_a_fallen_humanoid_goes_on():
    bodies = bodies_of(tiny("humanoid"))
    bodies.restart("lying")
    for _ in range(30):
        bodies.step(np.zeros((1, 21)))
    assert parts(bodies)["going_on"] == 1
    assert bodies.world.observations()[0, 23] < 0.9


@pytest.mark.parametrize("name", EXPERTS)
def test_a_simulation_that_blows_up_ends_its_episode_and_teaches_nothing(name):
    bodies = bodies_of(tiny(name))
    zeros = np.zeros((1, bodies.world.actions))
    bodies.step(zeros)
    bodies.world.data[0].qvel[0] = 1e12
    bodies.step(zeros)
    assert np.isfinite(bodies.rows).all()
    assert not parts(bodies)["displacement"].any()
    assert parts(bodies)["going_on"] == 0
    bodies.step(zeros)
    assert np.isfinite(bodies.rows).all()
    assert parts(bodies)["going_on"] == 1


@pytest.mark.slow
def test_a_killed_run_leaves_no_process(tmp_path):
    paths = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    command = [sys.executable, "-c", LEFT_ALONE]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": paths})
    numbers = [int(number) for number in process.stdout.readline().split()]
    assert len(numbers) == 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 20
    while any(alive(number) for number in numbers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(number) for number in numbers)


def alive(number: int) -> bool:
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_that_dies_is_told(small):
    with Simulators(small, 0, 2, 2) as bodies:
        bodies.processes[1].kill()
        bodies.processes[1].join()
        with pytest.raises(RuntimeError, match="a process with simulators ended"):
            bodies.step(np.zeros((2, 8)))
