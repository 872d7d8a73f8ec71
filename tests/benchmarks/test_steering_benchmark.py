"""The problems of the steering benchmark can be solved, and its doors are walls."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compdiffuser.domains import domain
from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.steering.steering import Waypoint
from compdiffuser.types import UserError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import steering
    import walled

    yield steering, walled
    for name in ("steering", "walled", "reproduce"):
        sys.modules.pop(name, None)


def test_doors_close_the_shortest_way_and_leave_another(scripts):
    steering, walled = scripts
    layout = domain("pointmaze-giant").maze
    for number in range(20):
        problem = steering.draw(layout, "avoid", 0, number)
        assert problem == steering.draw(layout, "avoid", 0, number), "the same seed gives the same problem"
        start, goal = layout.cell(problem.start), layout.cell(problem.goal)
        closed = walled.with_walls(layout, problem.closed)
        assert 1 <= len(problem.closed) <= 3
        assert closed.distances(goal)[start] >= layout.distances(goal)[start] >= steering.LEAST_CELLS
    via = steering.draw(layout, "via", 0, 0).via
    assert len(via) == 2
    assert not layout.in_wall(np.array(via)).any()


def test_an_episode_ends_where_its_agent_lies(scripts):
    steering, _ = scripts
    walked = [np.array([[0.0, 0.0], [step / 100, 0.0]]) for step in range(steering.STILL + 1)]
    assert steering.lying(walked).tolist() == [True, False]
    assert not steering.lying(walked[1:]).any(), "it may still get up"
    out = [np.array([[step / 100, 0.0]]) for step in range(steering.STILL // 2 + 1)]
    assert not steering.lying([*out, *out[-2::-1]]).any(), "it comes back the way it went"


class Follower:
    """Far along a plan that turns back, past the first of its two waypoints."""

    def executed(self, row):
        return 17

    def left(self, row):
        return (Waypoint((0.0, 0.0)),)


class Mender:
    """Finds nothing ahead to change, or that the agent stands where nobody was."""

    outside = False

    def repair(self, plan, **told):
        self.told = told
        if self.outside:
            raise UserError("outside of the data")
        return replace(plan, avoid=())

    def plan_batch(self, starts, goals, n_candidates, steering):
        self.asked = (starts, steering.via)
        return [self.new]


def test_an_agent_that_is_lost_on_a_plan_that_still_holds_gets_a_new_one(scripts):
    steering, _ = scripts
    x = np.concatenate([np.linspace(0, 9, 10), np.linspace(9, 0, 10)])
    states = np.stack([x, np.zeros(20)], axis=1)
    chunks = np.stack([states[:12], states[8:]])
    certified = Verdict({"steps": 0.5})
    plan = Plan(
        states, chunks, states[0], states[-1], 4, via=(Waypoint((9.0, 0.0)), *Follower().left(0)), verdict=certified
    )
    mender = Mender()
    mender.new = replace(plan, via=plan.via[1:])
    steersman = steering.Steersman(mender, [plan])
    steersman.follower = Follower()
    here = np.array([2.0, 3.0])
    assert steersman.plan_batch([states[0]], [plan.goal]) == [plan]
    assert steersman.plan_batch([here], [plan.goal]) == [mender.new], "a repair that leaves it as it is helps nobody"
    assert mender.asked == ([here], plan.via[1:]), "the waypoints that the follower has left"
    assert (mender.told["executed"], mender.told["passed"]) == (17, 1)

    steersman.plans, mender.outside = [plan], True
    (old,) = steersman.plan_batch([here], [plan.goal])
    np.testing.assert_array_equal(old.states, states[8:])
    assert (old.n_chunks, old.via) == (1, plan.via[1:]), "the rest of the old plan leads back"


@pytest.mark.slow
def test_a_closed_cell_stops_whoever_runs_into_it(scripts):
    _, walled = scripts
    world = walled.WalledWorld("pointmaze-medium-v0")
    reached = []
    for closed in ((), ((1, 2),)):
        observation, _ = walled.Walled(np.zeros(2), np.full(2, 20.0), 0, closed).begin(world)
        for _ in range(60):
            observation = world.step(np.array([1.0, 0.0])).observation
        reached.append(observation[0])
    world.close()
    assert reached[0] > 3
    assert reached[1] < 2
