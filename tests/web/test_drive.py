"""Driving along a plan in the real environment."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from live import client, serving

from compdiffuser.domains import Domain, Stepped
from compdiffuser.domains.ogbench import PointController
from compdiffuser.presets import EvaluationConfig, Preset, preset
from compdiffuser.web import drive_route
from compdiffuser.web.drive_route import _submitted
from compdiffuser.web.driving import Driver, Stages, Stopped, drive
from compdiffuser.web.messages import DriveRequest
from compdiffuser.web.scheduler import Full
from compdiffuser.web.settings import Settings

MEDIUM = preset("pointmaze-medium-stitch-v0")


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


def test_a_plan_of_every_fourth_state_makes_longer_steps_without_a_jump():
    states = np.linspace((0, 0), (4, 0), 3).tolist()
    request = DriveRequest(model="tiny", start=(0, 0), goal=(4, 0), states=states)
    strides = [replace(MEDIUM, chunks=replace(MEDIUM.chunks, stride=stride)) for stride in (1, 4)]
    faults = [Driver(request, task, None, None).plan.fault() for task in strides]
    assert faults == ["jumps 2.00 m at state 0 of 3", None]


@pytest.mark.slow
def test_a_lost_agent_gets_a_new_plan_from_the_queue(tiny_client):
    plan = {"model": "tiny", "start": (0, 0), "goal": (20, 20), "states": np.linspace((0, 0), (20, 20), 200).tolist()}
    events = list(tiny_client.drive(plan))
    kinds = [kind for kind, _ in events]
    assert "replanning" in kinds
    coming = events[kinds.index("replanning") : kinds.index("replanned")]
    assert {"wave", "frame", "scored"} <= {kind for kind, _ in coming}, "it streams in"
    scored = 0
    for kind, data in coming:
        scored += kind == "scored"
        assert kind != "wave" or data["wave"] == 1 + scored
    assert events[-1][0] == "end"


def test_as_many_drives_run_side_by_side_as_there_may_be(library, monkeypatch):
    """More than the threads that the event loop has."""
    together = threading.Barrier(40, timeout=20)
    monkeypatch.setattr(drive_route, "drive", lambda *given: together.wait())
    monkeypatch.setattr(drive_route, "verdict", lambda number: {"success": True, "cause": None})
    plan = {"model": "tiny", "start": (0, 0), "goal": (8, 8), "states": [[0, 0], [1, 1]]}
    with serving(Settings(drives=40), library) as (address, _), ThreadPoolExecutor(40) as pool:
        drives = [pool.submit(lambda: list(client.Client(address).drive(plan))) for _ in range(40)]
        assert {each.result()[-1][0] for each in drives} == {"end"}


def test_a_drive_needs_states_of_the_right_size(tiny_client):
    plan = {"model": "tiny", "start": (0, 0), "goal": (8, 8), "states": [[0, 0], [1, 1, 1]]}
    with pytest.raises(client.Refused, match="a state has 2 numbers here, not 3"):
        list(tiny_client.drive(plan))
    plan["states"] = [[0, 0], [1, 1]]
    with pytest.raises(client.Refused, match="there is no 'ball' in these plans, but agent"):
        list(tiny_client.drive(plan, avoid=["disc:12,12,1@ball"]))
    with pytest.raises(client.Refused, match="a waypoint is 2 numbers here"):
        list(tiny_client.drive(plan, via=["1,2,3"]))


class Lawn:
    """A world of one's own: actions displace the agent by a fifth of themselves."""

    opened = closed = 0

    def __init__(self):
        Lawn.opened += 1

    def place(self, start, goal, seed):
        self.at, self.goal = start.copy(), goal.copy()
        return self.at.copy(), self.goal.copy()

    def step(self, action):
        self.at = self.at + 0.2 * action
        return Stepped(self.at.copy(), bool(np.linalg.norm(self.at - self.goal) < 0.3))

    def close(self):
        Lawn.closed += 1


LAWN = Preset(
    "lawn", Domain("lawn", Lawn, controller=PointController()), evaluation=EvaluationConfig(step_limit=50)
)  # fmt: skip


def straight(goal: float) -> DriveRequest:
    states = np.linspace((0, 0), (goal, 0), 60).tolist()
    return DriveRequest(model="lawn", start=(0, 0), goal=(goal, 0), states=states)


def test_a_registered_world_is_driven_and_every_step_is_told_once():
    Lawn.opened = Lawn.closed = 0
    stages, told = Stages(), []
    for goal in (2.0, 3.1, 20.0):
        told.clear()
        result = drive(stages, LAWN, straight(goal), None, lambda kind, data: told.append((kind, data)))
        assert result.success == (goal < 20)
        assert {kind for kind, _ in told} == {"moved"}
        parts = [data["path"] for _, data in told]
        assert [len(part) for part in parts[:-1]] == [10] * (len(parts) - 1)
        path = np.array([point for part in parts for point in part])
        assert len(path) == result.steps
        np.testing.assert_allclose(path[0], (0.2, 0))
        assert (np.linalg.norm(path[-1] - (goal, 0)) < 0.31) == result.success
    assert (Lawn.opened, Lawn.closed) == (1, 0)  # one world for all
    stages.close()
    assert Lawn.closed == 1


def test_a_drive_that_nobody_watches_ends_and_its_world_is_closed():
    Lawn.opened = Lawn.closed = 0
    stages, told = Stages(), []

    def tell(kind, data):
        told.append(data)
        if len(told) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        drive(stages, LAWN, straight(20.0), None, tell)
    assert (len(told), Lawn.opened, Lawn.closed) == (2, 1, 1)


def test_a_drive_waits_where_the_queue_is_full():
    tried = []

    def submit(job):
        tried.append(job)
        if len(tried) < 3:
            raise Full(0)

    queue = SimpleNamespace(settings=SimpleNamespace(timeout=5.0), submit=submit)
    stopped = threading.Event()
    assert _submitted(queue, lambda: len(tried), stopped) == 2, "each try is a job of its own, with its own deadline"
    queue.settings.timeout, tried[:] = -1.0, []
    with pytest.raises(Full):
        _submitted(queue, lambda: len(tried), stopped)
    queue.settings.timeout, tried[:] = 5.0, []
    stopped.set()
    with pytest.raises(Stopped):
        _submitted(queue, lambda: len(tried), stopped)
