"""Doors that close during a drive: a shipped planner repairs its plan in the real environment."""

import numpy as np
import pytest
import torch
from browser import MODEL, WAYS
from live import client

from compdiffuser.planning.in_use.repair import repaired
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.steering.regions import region
from compdiffuser.planning.steering.steering import waypoint
from compdiffuser.web.driver import Driver
from compdiffuser.web.messages import DriveRequest


@pytest.fixture
def shipped(ways):
    return client.Client(ways)


def driven(shipped, plan, **options):
    """States told, the new plans, and the last event."""
    events = list(shipped.drive(plan, **options))
    path = [state for kind, data in events if kind == "moved" for state in data["path"]]
    made = [data for kind, data in events if kind == "replanned"]
    return np.array(path), made, events


def enters(states, text: str) -> bool:
    return bool((region(text).distance(torch.as_tensor(np.asarray(states))) < 0).any())


@pytest.mark.slow
def test_a_door_that_closes_on_the_way_repairs_the_plan_and_the_drive_can_be_driven_again(shipped):
    plan = shipped.plan(WAYS, (0, 0), (20, 20), candidates=8)
    before, _, _ = driven(shipped, plan)
    step = len(before) // 4
    ahead = before[len(before) * 5 // 8]
    door = "disc:{:.2f},{:.2f},0.9".format(*ahead)
    closing = {"step": step, "avoid": [door]}
    path, made, events = driven(shipped, plan, changes=[closing])
    kinds = [kind for kind, _ in events]
    assert {"wave", "frame"} <= set(kinds[kinds.index("replanning") : kinds.index("replanned")]), "it streams in"
    np.testing.assert_array_equal(path[:step], before[:step])
    assert made[0]["ok"]
    assert not enters(made[0]["states"], door)
    assert events[-1][1]["success"], events[-1]
    assert "with 1 repaired plan on the way" in events[-1][1]["sentence"]
    again, none, _ = driven(shipped, plan, changes=[closing], made=[{key: made[0][key] for key in ("states", "via")}])
    assert none == []
    np.testing.assert_array_equal(again, path)


@pytest.mark.long
@pytest.mark.slow
def test_a_door_that_nothing_leads_through_leaves_the_plan_and_one_that_closes_every_way_ends_the_drive(shipped):
    plan = shipped.plan(MODEL, (-1, 1), (-1, -1), candidates=8)
    _, made, events = driven(shipped, plan, changes=[{"step": 20, "avoid": ["disc:-3,0,0.2"]}])
    assert events[-1][1]["success"]
    stays = np.asarray(plan["states"])[-len(made[0]["states"]) :]
    np.testing.assert_allclose(made[0]["states"], stays, atol=1e-3)
    *_, (kind, told) = driven(shipped, plan, changes=[{"step": 20, "avoid": ["box:0.5,-0.5,1.5,0.5"]}])[2]
    assert kind == "error"
    assert "the regions close every way" in told["detail"]
    *_, (kind, told) = driven(shipped, plan, changes=[{"step": 0, "avoid": ["disc:-1,1,0.3"]}])[2]
    assert kind == "error"
    assert "lies in disc:-1,1,0.3" in told["detail"]


def test_a_drive_with_regions_that_are_written_otherwise_is_refused(tiny_client):
    plan = {"model": "tiny", "start": (0, 0), "goal": (8, 8), "states": [[0, 0], [1, 1]]}
    for options, said in (
        ({"avoid": ["blob"]}, "a region is written"),
        ({"changes": [{"step": 1, "avoid": ["blob:1"]}]}, "a region is written"),
        ({"via": ["x"]}, "a waypoint is written"),
        ({"changes": [{"step": 1, "via": ["x"]}]}, "a waypoint is written"),
        ({"made": [{"states": [[0, 0], [1]]}]}, "a state has 2 numbers here, not 1"),
    ):
        with pytest.raises(client.Refused, match=said):
            list(tiny_client.drive(plan, **options))


class Few:
    """Plans of one candidate, which nobody denoised for long."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner.with_sampler(steps=1, repeats=1)

    def anew(self, request):
        steered = {"via": [*map(waypoint, request.via)], "avoid": [*map(region, request.avoid)]}
        return self.planner.plan(request.start, request.goal, n_chunks=1, n_candidates=1, **steered)

    def closed(self, request):
        return False

    def repaired(self, plan, here, avoid, seed, executed, passed):
        return repaired(self.planner, plan, here, avoid=avoid, n_candidates=1, executed=executed, passed=passed)


class At:
    """A follower that has so many states behind it, and one waypoint if it has any."""

    def __init__(self, driver: Driver, states: int) -> None:
        self.driver, self.states = driver, states

    def executed(self, episode):
        return self.states

    def left(self, episode):
        return self.driver.plan.via[1:] if self.states else self.driver.plan.via


def test_regions_that_vanish_and_waypoints_that_change_on_the_way_lead_to_another_plan(library):
    planner = library.get("tiny")
    way = np.stack([np.full(28, 4.0), np.linspace(0, 8, 28)], axis=1)
    off = "disc:8,20,0.2"  # nothing leads there

    def changed(here: float, change: dict, **steered):
        """Why the plan holds no longer when the agent has come so far, and the one that it gets."""
        request = DriveRequest(
            model="tiny", start=(4, 0), goal=(4, 8), states=way.tolist(), changes=[{"step": 3, **change}], **steered
        )  # fmt: skip
        told = []
        driver = Driver(request, planner.preset, Few(planner), lambda kind, data: told.append(data))
        driver.plan_batch([[4, 0]], [[4, 8]])
        driver.follower = At(driver, int(np.abs(way[:, 1] - here).argmin()))
        assert driver.changed(2) is None
        reason = driver.changed(3)
        driver.plan_batch([[4, here]], [[4, 8]], seed=[0])
        assert told[0]["reason"] == (reason or "lost")
        return reason, told[1]

    reason, made = changed(3, {"via": ["4,1", "4,7.5"]}, via=["4,1", "4,6"])
    assert (reason, made["via"]) == ("changed", ["4,7.5"]), "what was passed is not passed again"
    reason, made = changed(0, {"avoid": []}, avoid=[off])
    assert reason == "changed"
    np.testing.assert_allclose(made["states"], way, atol=1e-3, err_msg="no new plan is certified, and the old one fits")
    assert changed(0, {"avoid": [off]})[0] == "closed"
    assert changed(0, {"avoid": [off], "via": ["4,1"]}, avoid=[off], via=["4,1"])[0] is None
