"""The problems of the steering benchmark can be solved, and its doors are walls."""

import sys
from pathlib import Path

import numpy as np
import pytest

from compdiffuser.domains import domain

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
