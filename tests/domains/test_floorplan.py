"""Maps of polygons: exact about thin walls, and asked the same as mazes of cells."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compdiffuser.domains import FloorPlan, rectangle
from compdiffuser.domains.mazes import Maze
from compdiffuser.planning.plan import Plan
from compdiffuser.types import UserError

THIN = FloorPlan.of("thin", (0, 10, 0, 6), [rectangle(5, 0, 5.15, 4), [(1, 1), (2, 1), (1, 2)]], room=0.1)


@pytest.mark.parametrize(
    ("place", "margin", "hit"),
    [
        ((5.1, 1), 0, True), ((5.2, 1), 0, False), ((5.2, 1), 0.1, True), ((5.1, 1), -0.05, True),
        ((5.14, 1), -0.05, False), ((1.2, 1.2), 0, True), ((1.9, 1.9), 0, False), ((1.6, 1.6), 0.2, True),
        ((-1, 1), 0, True), ((0.05, 5), 0.1, True),
    ],
)  # fmt: skip
def test_obstacles_are_exact(place, margin, hit):
    assert bool(THIN.in_wall(np.array(place), margin)) is hit


def test_a_step_through_a_thin_wall_is_seen_however_long():
    path = np.array([[4.0, 1], [6.0, 1], [6.0, 5], [4.0, 5]])
    np.testing.assert_array_equal(THIN.walled(path), [True, False, False])
    states = np.linspace([4, 1], [6, 1], 5)
    plan = Plan(states, states[None], states[0], states[-1], 0, maze=THIN)
    assert plan.fault() == "passes through a wall at state 1 of 5"
    around = np.concatenate([np.linspace([4, 1], [4, 5], 9), np.linspace([4, 5], [6, 5], 9)])
    assert Plan(around, around[None], around[0], around[-1], 0, maze=THIN).fault() is None


@given(st.floats(0.01, 9.99), st.floats(0.01, 5.99))
def test_cells_are_walls_wherever_an_obstacle_is(x, y):
    place = np.array([x, y])
    if THIN.in_wall(place):
        assert THIN.walls[THIN.cell(place)]


def test_the_grid_leaves_the_door_open():
    left, right = THIN.cell((2, 3)), THIN.cell((8, 1))
    assert THIN.distances(left)[right] > 0
    shut = FloorPlan.of("shut", (0, 10, 0, 6), [rectangle(5, 0, 5.05, 6)])
    assert shut.distances(left)[right] == -1


def test_a_map_is_kept_in_files(tmp_path):
    again = Maze.from_dict(json.loads(json.dumps(THIN.to_dict())))
    assert isinstance(again, FloorPlan)
    np.testing.assert_array_equal(again.walls, THIN.walls)
    assert (again.bounds, again.room, len(again.obstacles)) == (THIN.bounds, 0.1, 2)
    states = np.linspace([4, 5], [6, 5], 5)
    plan = Plan(states, states[None], states[0], states[-1], 0, maze=THIN)
    assert Plan.load(plan.save(tmp_path / "plan.npz")).maze.to_dict() == THIN.to_dict()
    plan.plot(tmp_path / "plan.png")
    with pytest.raises(UserError, match=r"the start \[5.1, 1.0\] lies in a wall"):
        THIN.check_room({"start": [5.1, 1.0]})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (((0, 0, 0, 1), []), "bounds are left < right"),
        (((0, 1, 0, np.nan), []), "bounds are left < right"),
        (((0, 1, 0, 1), [[(0, 0), (1, 1)]]), "obstacle 0 has three or more corners"),
        (((0, 1, 0, 1), [[(0, 0), (1, 1), (1, 0), (0, 1)]]), "obstacle 0 crosses itself"),
        (((0, 1, 0, 1), [[(0, 0), (1, 1), (1, 0), (0, 1), (0, 0)]]), "obstacle 0 crosses itself"),
        (((0, 1, 0, 1), ["a", "b"]), "obstacle 0 is a list of corners"),
        (((0, 1, 0, 1), [], -1.0), "the room of an agent is 0 or more"),
        (((0, 1, 0, 1), [], 0.0, 1e-9), "do not make a grid"),
    ],
)
def test_what_is_no_map_is_told(given, sentence):
    with pytest.raises(UserError, match=sentence):
        FloorPlan.of("bad", *given)
