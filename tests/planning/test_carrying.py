"""Ways of an agent that takes things along: to the thing, behind it, and with it to where it has to be."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fetching import ROOMS, checkpoint, metres, normalized, place, walk

from compdiffuser.planning.problem import distances
from compdiffuser.planning.recorded.moves import Moves
from compdiffuser.planning.recorded.support import Support
from compdiffuser.planning.roads.carrying import Carrying, roadmap_of
from compdiffuser.planning.roads.roadmap import Roadmap, paced


@pytest.fixture(scope="module")
def carrying() -> Carrying:
    """With so few landmarks that a few thousand segments meet in them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("compdiffuser.planning.roads.roadmap.LANDMARKS", 200)
        made = roadmap_of(checkpoint().support, checkpoint().calibration)
    assert isinstance(made, Carrying)
    return made


def test_the_agent_walks_to_the_ball_and_takes_it_through_the_door(carrying):
    start, goal = [0, 0, 0, 4], [12, 3.4, 12, 4]
    (way,) = carrying.ways(normalized(start), normalized(goal))
    states = metres(paced(way, 400, (2, 2)))
    np.testing.assert_allclose(states[[0, -1]], [start, goal], atol=1e-3)
    ant, ball = states[:, :2], states[:, 2:]
    moving = np.linalg.norm(np.diff(ball, axis=0), axis=1) > 1e-4
    assert np.linalg.norm(ant - ball, axis=1)[:-1][moving].max() < 1.5, "never without the agent"
    assert 80 < moving.argmax() < 200, "it waits for the agent"
    assert not ROOMS.in_wall(ant).any()
    assert not ROOMS.in_wall(ball).any()


def test_most_ways_are_sound_anywhere(carrying):
    rng = np.random.default_rng(3)
    starts = [[*place(rng), *place(rng)] for _ in range(30)]
    goals = [[*end, *end] for end in (place(rng) for _ in range(30))]
    ways = carrying.ways(normalized(*starts), normalized(*goals))
    sound = 0
    for way in ways:
        states = metres(paced(way, 300, (2, 2)))
        moving = np.linalg.norm(np.diff(states[:, 2:], axis=0), axis=1) > 1e-3
        apart = np.linalg.norm(states[:, :2] - states[:, 2:], axis=1)[:-1]
        sound += not ROOMS.in_wall(states.reshape(-1, 2)).any() and apart[moving].max(initial=0) < 1.5
    assert sound >= 28


def test_a_ball_at_its_goal_is_left_alone(carrying):
    (way,) = carrying.ways(normalized([0, 0, 3, 3]), normalized([12, 0, 3, 3.02]))
    states = metres(way)
    assert np.abs(states[:, 2:] - [3, 3]).max() < 0.06
    np.testing.assert_allclose(states[-1, :2], [12, 0], atol=1e-3)


def test_a_batch_has_the_ways_of_its_problems(carrying):
    starts, goals = normalized([0, 0, 0, 4], [9, 1, 3, 3], [1, 1, 2, 2]), normalized([4, 4] * 2, [1, 2] * 2, [2, 2] * 2)
    for start, goal, way in zip(starts, goals, carrying.ways(starts, goals), strict=True):
        torch.testing.assert_close(carrying.ways(start[None], goal[None])[0], way)


def test_there_is_no_way_to_where_no_ball_was_taken(carrying):
    apart = carrying.roadmaps[1]
    left = apart.landmarks[:, 0] < normalized([6, 0, 0, 0])[0, 0]
    crossing = left[apart.edges[0]] != left[apart.edges[1]]
    shut = replace(apart, edges=apart.edges[:, ~crossing], costs=apart.costs[~crossing])
    kept = replace(carrying, roadmaps=(carrying.roadmaps[0], shut))
    ways = kept.ways(normalized([0, 0, 0, 4], [0, 0, 0, 4]), normalized([12, 4] * 2, [4, 4] * 2))
    assert [way is None for way in ways] == [True, False]


def test_things_are_fetched_one_after_the_other(monkeypatch):
    """Three groups: an agent and two balls that it was recorded with, one at a time."""
    monkeypatch.setattr("compdiffuser.planning.roads.roadmap.LANDMARKS", 100)
    rng = np.random.default_rng(0)
    steps = np.stack([walk(place(rng) % 5, place(rng) % 5, 11) for _ in range(2000)])[:, [0, 4, 8]]
    lying = np.broadcast_to(rng.uniform(0, 5, (2000, 1, 2)), (2000, 3, 2))
    first, second = np.where((np.arange(2000) % 2 == 0)[:, None, None], steps, lying), lying.copy()
    second[1::2] = steps[1::2]
    first[1::2] = rng.uniform(0, 5, (1000, 1, 2))
    segments = torch.tensor(np.concatenate([steps, first, second], axis=2).reshape(2000, 18) / 5, dtype=torch.float32)
    thing = Moves(1.0, 1.0, 1.0, 0.1, usual=0.1, near=0.2)
    moves = (Moves(1.0, 1.0, 1.0, 0.1), thing, thing)
    carrying = Carrying.through(Support(segments, (), (2, 2, 2), (1.0,) * 3), moves)
    start, goal = torch.tensor([[0.1, 0.1, 0.8, 0.2, 0.2, 0.8]]), torch.tensor([[0.5, 0.5, 0.3, 0.3, 0.9, 0.9]])
    (way,) = carrying.ways(start, goal)
    torch.testing.assert_close(way[[0, -1]], torch.cat([start, goal]))
    one, two = ((way[1:, columns] - way[:-1, columns]).norm(dim=1) > 1e-5 for columns in ([2, 3], [4, 5]))
    assert not (one & two).any()
    assert one.nonzero().max() < two.nonzero().min()


def test_straight_lines_lead_to_the_ball_first():
    usual, space = checkpoint().calibration, checkpoint().preset.space
    scale = (normalized([1, 0, 0, 0]) - normalized([0, 0, 0, 0]))[0, 0].item()
    starts, goals = normalized([0, 0, 4, 0], [0, 0, 4, 0]), normalized([7, 0, 7, 0], [3, 0, 4, 0])
    (ant, ball), (alone, still) = distances(starts, goals, space, usual)
    assert ant == pytest.approx(7 * scale - usual.groups[1].near)
    assert ball == pytest.approx(3 * scale)
    assert (still, alone) == (pytest.approx(0, abs=1e-6), pytest.approx(3 * scale))
    assert usual.fewest_chunks(50.0, 0.0) > usual.fewest_chunks(0.0, 0.0) == 1


def test_one_thing_alone_has_a_plain_roadmap():
    segments = torch.rand(200, 6)
    plain = roadmap_of(Support(segments, ()), checkpoint().calibration)
    assert isinstance(plain, Roadmap)
    assert torch.equal(plain.landmarks, Roadmap.through(Support(segments, ())).landmarks)


def test_an_even_pace_is_that_of_what_goes_furthest():
    way = torch.tensor([[0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0], [3.0, 3.0, 0.0, 3.0]])
    states = paced(way, 7, (2, 2))
    torch.testing.assert_close(states.diff(dim=0)[:, :2].norm(dim=1), torch.ones(6))
