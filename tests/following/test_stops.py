"""Waypoints on the way of a follower."""

import numpy as np

from compdiffuser.domains.mazes import maze
from compdiffuser.following.stops import Stop, stops_of, through
from compdiffuser.following.tracking import without_loops, without_loops_between
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.steering.steering import Waypoint

OUT = np.stack([np.linspace(0, 8, 81), np.zeros(81)], axis=1)
BACK = np.concatenate([OUT, OUT[::-1][1:]])


def test_who_goes_into_a_dead_end_for_a_waypoint_comes_back_the_same_way():
    assert len(without_loops(BACK, 0.25)) == 2, "out and back is a loop"
    kept = BACK[without_loops_between(BACK, [80], 0.25)]
    assert kept[:, 0].max() == 8
    assert np.linalg.norm(np.diff(kept, axis=0), axis=1).max() < 0.5


def test_the_stops_of_a_plan_are_the_states_that_pass_its_waypoints():
    plan = Plan(BACK, BACK[None], BACK[0], BACK[-1], 0, maze=maze("medium"), via=(Waypoint((8.0, 0.3), within=0.5),))
    (stop,) = stops_of(plan, 1.0)
    assert (stop.index, stop.within) == (80, 0.5)
    assert stop.reached(BACK[78])
    assert not stop.reached(BACK[60])
    (followed,) = stops_of(plan, 1.0, np.arange(0, 161, 10))
    assert followed.index == 8


def test_who_follows_a_plan_goes_to_the_places_of_its_waypoints():
    stops = [Stop(80, [0, 1], np.array([8.0, 1.1]), 1.2), Stop(100, [0, 1], np.array([6.0, 2.0]), 3.0)]
    track, times, (near, far) = through(BACK, np.arange(161), stops, 1.2)
    assert len(track) == len(times) == 162
    assert (near.index, track[near.index].tolist(), times[near.index]) == (81, [8.0, 1.1], 80)
    assert (far.index, track[far.index].tolist()) == (101, BACK[100].tolist()), "passing it at some distance is enough"
    assert not near.reached(BACK[80], tried=False), "it can be passed nearer than the plan does"
    assert near.reached(BACK[80]), "but there was no getting nearer"
    assert near.reached(np.array([8.0, 0.6]), tried=False)
    assert far.reached(BACK[80], tried=False)
