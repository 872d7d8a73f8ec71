import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from compdiffuser.planning.recorded.support import Support
from compdiffuser.planning.roads.landmarks import distances, nearest, rarity, spread, thinned
from compdiffuser.planning.roads.roadmap import Roadmap, landmarks_for, length, paced

LEFT, RIGHT = (-0.8, 0.8), (0.8, 0.8)
U = torch.tensor([LEFT, (-0.8, -0.8), (0.8, -0.8), RIGHT])
STREET = torch.tensor([(-1.0, 0.0), (1.0, 0.0)])
POINTS = 20_001  # on a corridor's middle line


def recorded(corridor: Tensor, reach: float = 0.1, width: float = 0.1, both: bool = True, count: int = 3000) -> Support:
    """Random segments along a corridor [n, 2], in both directions or in one; only their ends matter here."""
    generator = torch.Generator().manual_seed(0)
    line = paced(corridor, POINTS)
    step = round(POINTS * reach / length(corridor))
    first = torch.randint(POINTS - step, (count,), generator=generator)
    ends = torch.stack([first, first + step], dim=1)
    if both:
        ends[count // 2 :] = ends[count // 2 :].flip(1)
    states = line[ends] + width * (torch.rand(count, 2, 2, generator=generator) - 0.5)
    return Support(torch.cat([states[:, 0], states.mean(dim=1), states[:, 1]], dim=1), ())


@pytest.fixture(scope="module")
def round_the_u() -> Roadmap:
    return Roadmap.through(recorded(U))


def way(roadmap: Roadmap, start, goal) -> Tensor | None:
    return roadmap.ways(torch.tensor([start]), torch.tensor([goal]))[0]


def test_a_way_goes_round_where_the_straight_line_was_never_walked(round_the_u):
    found = way(round_the_u, LEFT, RIGHT)
    assert found[0].tolist() == pytest.approx(LEFT)
    assert found[-1].tolist() == pytest.approx(RIGHT)
    assert 4.3 < length(found) < 5.2, "three sides of 1.6; the straight line is one"
    along = paced(found, 500)
    assert torch.cdist(along, paced(U, POINTS)).amin(dim=1).max() < 0.1
    assert nearest(U[1:3], along).tolist() == sorted(nearest(U[1:3], along).tolist()), "left corner before right"


def test_near_and_far_goals_in_one_room_are_reached_about_straight(round_the_u):
    for goal in ((-0.8, 0.79), (-0.82, 0.3), (-0.78, -0.6)):
        straight = (torch.tensor(LEFT) - torch.tensor(goal)).norm().item()
        assert straight <= length(way(round_the_u, LEFT, goal)) < 1.2 * straight + 0.1


def test_of_several_edges_between_two_places_the_cheapest_counts():
    edges = torch.tensor([[2, 0, 0, 1, 0], [0, 2, 1, 0, 1]])
    graph = Roadmap(torch.zeros(3, 2), edges, torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0]))._graph
    assert graph.toarray().tolist() == [[0, 1, 4], [2, 0, 0], [5, 0, 0]]
    assert Roadmap(torch.zeros(3, 2), edges[:, :0], torch.zeros(0))._graph.nnz == 0


def test_walking_a_one_way_street_back_costs_about_thrice_as_much():
    street = Roadmap.through(recorded(STREET, width=0.1, both=False))
    ends = nearest(torch.tensor([[-0.9, 0.0], [0.9, 0.0]]), street.landmarks)
    costs = street._cheapest(ends)[0][:, ends]
    assert 2 < costs[1, 0] / costs[0, 1] < 4


def test_between_places_that_nobody_joined_there_is_no_way():
    above, below = recorded(STREET + torch.tensor([0.0, 0.8])), recorded(STREET - torch.tensor([0.0, 0.8]))
    apart = Roadmap.through(Support(torch.cat([above.segments, below.segments]), ()))
    found = apart.ways(torch.tensor([[-0.5, 0.8], [-0.5, 0.8]]), torch.tensor([[0.5, 0.8], [0.5, -0.8]]))
    assert [each is None for each in found] == [False, True]


def test_who_stands_by_a_place_that_nothing_joins_enters_at_the_next_one():
    landmarks = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 0.2], [0.0, 0.3], [9.0, 0.0]])
    edges = torch.tensor([[0, 1, 4], [1, 2, 0]])  # nothing joins 3 and 5, and nothing leads to 4
    road = Roadmap(landmarks, edges, torch.ones(3), radius=0.2)
    assert way(road, (0.0, -0.1), (2.0, 0.25))[1:-1, 0].tolist() == [0, 1, 2], "to the side of the goal's"
    assert way(road, (0.0, 0.3), (2.0, 0.0))[1:-1].tolist() == landmarks[[4, 0, 1, 2]].tolist(), "as before"
    assert way(road, (2.0, 0.25), (0.0, 0.3)) is None, "nobody ever went back"
    assert way(road, (0.0, 0.0), (9.0, 0.1)) is None, "what is joined is far away"
    shut = road.cleared([lambda places, lines: (places[lines][..., 1] < 0.1).all(dim=0)])
    assert way(shut, (0.0, 0.0), (2.0, 0.25)) is None, "no free line leads to what is joined"


def test_of_two_ways_the_shorter_one_is_taken_though_it_has_more_edges():
    landmarks = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1.5, 3.0]])
    edges = torch.tensor([[0, 1, 2, 0, 4], [1, 2, 3, 4, 3]])
    lengths = (landmarks[edges[0]] - landmarks[edges[1]]).norm(dim=1)
    along = way(Roadmap(landmarks, edges, lengths), (0.0, 0.1), (3.0, 0.1))
    assert along[:, 0].tolist() == [0, 0, 1, 2, 3, 3]


def test_a_way_ends_though_an_edge_costs_less_than_a_float_can_add():
    """Two landmarks differ by less than a long way's cost can tell: each led back to the other, for ever."""
    landmarks = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1e-9]])
    roadmap = Roadmap(landmarks, torch.tensor([[1, 2, 0], [2, 1, 1]]), torch.tensor([1e-9, 1e-9, 1.0]))
    assert roadmap._back(roadmap._cheapest(torch.tensor([0]))[1][0], 2).tolist() == landmarks.tolist()


def test_a_few_places_visited_again_and_again_are_a_graph_of_their_own():
    angle = torch.arange(12) * torch.pi / 6
    ring = torch.stack([angle.cos(), angle.sin()], dim=1)
    place = torch.arange(12).repeat(20)
    onwards = Roadmap.through(Support(torch.cat([ring[place], ring[place], ring[(place + 1) % 12]], dim=1), ()))
    starts, goals = ring[[0, 3, 5]], ring[[3, 0, 5]]
    visited = [nearest(found, ring).unique_consecutive().tolist() for found in onwards.ways(starts, goals)]
    assert visited == [[0, 1, 2, 3], [3, 4, 5, 6, 7, 8, 9, 10, 11, 0], [5]]


def test_a_batch_has_the_ways_of_its_problems(round_the_u):
    places = torch.rand(2, 30, 2, generator=torch.Generator().manual_seed(1)) * 2 - 1
    places[0, 20:] = places[0, 0]  # one start, many goals
    together = round_the_u.ways(*places)
    for start, goal, found in zip(*places, together, strict=True):
        torch.testing.assert_close(way(round_the_u, start.tolist(), goal.tolist()), found)


def test_a_pace_is_even_whatever_the_corners():
    uneven = torch.tensor([[0.0, 0.0], [0.1, 0.0], [0.1, 0.0], [3.0, 0.0], [3.0, 4.0]])
    states = paced(uneven, 8)
    assert torch.equal(states[[0, -1]], uneven[[0, -1]])
    torch.testing.assert_close(states.diff(dim=0).norm(dim=1), torch.ones(7))
    assert torch.equal(paced(uneven[:1].expand(3, 2), 5), uneven[:1].expand(5, 2)), "standing still"


@given(count=st.integers(1, 60), seed=st.integers(0, 5), dim=st.integers(1, 3))
def test_landmarks_cover_every_point(count, seed, dim):
    points = torch.rand(50, dim, generator=torch.Generator().manual_seed(seed))
    landmarks, radius = spread(points, count)
    away = (points[:, None] - landmarks).norm(dim=-1)
    assert len(landmarks) == min(count, 50)
    assert (away == 0).any(dim=0).all(), "each is one of the points"
    assert away.amin(dim=1).max().item() == pytest.approx(radius)
    apart = (landmarks[:, None] - landmarks).norm(dim=-1).fill_diagonal_(torch.inf)
    assert apart.min() >= radius, "and none lies where another would have done"


@given(count=st.integers(1, 60), seed=st.integers(0, 5), dim=st.integers(1, 3))
def test_landmarks_of_a_grid_cover_every_point(count, seed, dim):
    points = torch.rand(50, dim, generator=torch.Generator().manual_seed(seed)) * 4 - 2
    landmarks, radius = thinned(points, count)
    away = (points[:, None] - landmarks).norm(dim=-1)
    assert 1 <= len(landmarks) <= count
    assert (away == 0).any(dim=0).all()
    assert away.amin(dim=1).max().item() == pytest.approx(radius, abs=1e-6)


def test_many_landmarks_know_the_ways_that_few_know(monkeypatch, round_the_u):
    monkeypatch.setattr("compdiffuser.planning.roads.landmarks.FEW", 10)
    many = Roadmap.through(recorded(U), 800)
    assert len(many.landmarks) > 400
    assert length(way(many, LEFT, RIGHT)) == pytest.approx(length(way(round_the_u, LEFT, RIGHT)), rel=0.05)


def test_there_are_as_many_landmarks_for_each_segment_whatever_the_size_of_the_data():
    segments = torch.zeros(4 * 16_384, 6)
    assert landmarks_for(Support(segments, ())) == 4096
    assert landmarks_for(Support(segments[:100], ())) == 1024
    assert landmarks_for(Support(torch.zeros(2 * 16_384, 12), (), (2, 2), (1.0, 1.0))) == 1024


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
def test_distances_have_the_bits_of_norms(dims):
    states = torch.rand(500, dims, generator=torch.Generator().manual_seed(dims))
    places = states[::25]
    one_by_one = torch.stack([(states - place).norm(dim=1) for place in places])
    assert torch.equal(distances(places, states), one_by_one)
    crowd = one_by_one.le(0.2).sum(dim=1).float()
    assert torch.equal(rarity(places, states, 0.2), (crowd.quantile(0.75) / crowd).square().clamp(1, 20))


def test_places_that_are_the_same_are_one_landmark():
    landmarks, radius = spread(torch.tensor([[0.0, 1.0], [0.0, 1.0], [2.0, 1.0], [2.0, 1.0]]), 4)
    assert landmarks.tolist() == [[0.0, 1.0], [2.0, 1.0]]
    assert radius == 0.0
