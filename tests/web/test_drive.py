"""Driving along a plan in the real environment."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from live import client

from compdiffuser.web.driving import Driver
from compdiffuser.web.messages import DriveRequest


def test_a_drive_goes_through_the_real_environment_and_tells_how_it_ended(tiny_client):
    corners = [(0, 0), (4, 0), (4, 8), (8, 8)]
    states = np.concatenate([np.linspace(a, b, 30) for a, b in itertools.pairwise(corners)])
    plan = {"model": "tiny", "start": (0, 0), "goal": (8, 8), "states": states.tolist()}
    events = list(tiny_client.drive(plan))
    assert events[0][0] == "accepted"
    way = [point for kind, data in events if kind == "moved" for point in data["path"]]
    kind, end = events[-1]
    assert kind == "end"
    assert end["success"], end["sentence"]
    assert len(way) == end["steps"] <= 200
    assert np.linalg.norm(np.array(way[-1]) - (8, 8)) <= 1.0
    assert end["sentence"] == f"The agent reached the goal in {end['steps']} steps."
    through_walls = {**plan, "goal": (20, 20), "states": np.linspace((0, 0), (20, 20), 200).tolist()}
    _, end = list(tiny_client.drive(through_walls, replan=False))[-1]
    assert not end["success"]
    assert "passes through a wall or jumps" in end["sentence"]


def test_a_plan_of_every_fourth_state_makes_longer_steps_without_a_jump(library):
    states = np.linspace((0, 0), (4, 0), 3).tolist()
    request = DriveRequest(model="tiny", start=(0, 0), goal=(4, 0), states=states)
    preset = library.get("tiny").preset
    faults = [Driver(request, replace(preset, stride=stride), None, None).given.fault() for stride in (1, 4)]
    assert faults == ["jumps 2.00 m at state 0 of 3", None]


def test_a_lost_agent_gets_a_new_plan_from_the_queue(tiny_client):
    plan = {"model": "tiny", "start": (0, 0), "goal": (20, 20), "states": np.linspace((0, 0), (20, 20), 200).tolist()}
    events = list(tiny_client.drive(plan))
    kinds = [kind for kind, _ in events]
    assert "replanning" in kinds
    assert "replanned" in kinds
    assert events[-1][0] == "end"


def test_a_drive_needs_states_of_the_right_size(tiny_client):
    plan = {"model": "tiny", "start": (0, 0), "goal": (8, 8), "states": [[0, 0], [1, 1, 1]]}
    with pytest.raises(client.Refused, match="a state has 2 numbers here, not 3"):
        list(tiny_client.drive(plan))
