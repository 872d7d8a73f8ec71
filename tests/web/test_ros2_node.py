"""The ROS 2 example without ROS: its pilot against a live server that plans with a shipped planner."""

import math
import runpy
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from live import client, serving

from compdiffuser.web.library import Library
from compdiffuser.web.settings import Settings

FILE = Path(__file__).parents[2] / "examples" / "ros2_node.py"
NODE = runpy.run_path(str(FILE))
MODEL = "pointmaze-medium-stitch-v0"
HERE, THERE = (0.0, 0.0), (4.0, 8.0)


@pytest.fixture(scope="module")
def planning():
    with serving(Settings(), Library([MODEL], "cpu")) as (address, _):
        yield address


@pytest.mark.slow
def test_a_pilot_plans_for_a_goal_and_again_when_lost(planning):
    pilot = NODE["Pilot"](client.Client(planning), MODEL, lost=1.0, options={"chunks": 1, "wave": 4})
    assert pilot.sent(THERE) is None  # its place is not known yet
    path = pilot.moved(HERE)
    assert math.dist(path[0], HERE) < 1.0
    assert math.dist(path[-1], THERE) < 1.0
    assert pilot.moved(path[5]) is None
    again = pilot.moved((0.0, 4.0))
    assert math.dist(again[0], (0.0, 4.0)) < 1.0
    assert pilot.sent((1e6, 0.0)) is None
    assert pilot.said.startswith("no plan: ")
    assert pilot.path == []


def test_a_server_that_is_not_there_is_told():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    pilot = NODE["Pilot"](client.Client(f"http://127.0.0.1:{port}"), MODEL, place=HERE)
    assert pilot.sent(THERE) is None
    assert "refused" in pilot.said


def test_poses_look_along_the_path():
    (z, w), *_, last = NODE["headings"]([(0, 0), (0, 1), (-1, 1)])
    assert 2 * math.atan2(z, w) == pytest.approx(math.pi / 2)
    assert abs(2 * math.atan2(*last)) == pytest.approx(math.pi)
    assert NODE["headings"]([(1, 2)]) == [(0, 1)]


def test_the_node_needs_no_torch():
    code = f"import runpy, sys; runpy.run_path({str(FILE)!r}); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
