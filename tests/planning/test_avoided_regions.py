"""Regions against points that were counted out, and what they refuse."""

import numpy as np
import pytest
import torch

from compdiffuser import Box, Disc, Outside, Polygon, Steering, UserError, Walls, Waypoint
from compdiffuser.domains.mazes import maze
from compdiffuser.planning.setting import each_steering
from compdiffuser.planning.steering.regions import Grown, bare, grown, region, writable

ARROW = Polygon(((0, 0), (4, 0), (4, 4), (2, 1), (0, 4)))
GIANT = Walls(maze("giant"))
SHAPES = [Disc((1, 2), 2.5), Box((3, 1), (-1, -2)), ARROW, Outside(ARROW), GIANT, Grown(ARROW, 0.5)]
PLACES = torch.from_numpy(np.random.default_rng(0).uniform(-4, 9, (400, 2)))


@pytest.mark.parametrize("what", ["disc:1,2,3", [(0, 0), (1, 0), (1, 1)], None])
def test_only_a_region_has_an_outside(what):
    with pytest.raises(UserError, match="a region is a Disc, a Box, a Polygon, Outside or Walls, not"):
        Outside(what)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_distance_is_that_of_the_nearest_place_on_the_other_side(shape):
    fine = torch.from_numpy(np.stack(np.meshgrid(*[np.arange(-9, 14, 0.1)] * 2), axis=-1).reshape(-1, 2))
    inside = shape.distance(fine) < 0
    for place, far in zip(PLACES[:40], shape.distance(PLACES[:40]).tolist(), strict=True):
        other = fine[inside if far >= 0 else ~inside]
        nearest = float((other - place).norm(dim=1).min())
        # A distance from a grown region is no more than that from its rounded outline.
        assert abs(far) == pytest.approx(nearest, abs=0.25) or (isinstance(shape, Grown) and abs(far) <= nearest)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_gradient_leads_out_and_never_changes_faster_than_the_place(shape):
    places = PLACES.clone().requires_grad_(True)
    far = shape.distance(places)
    (slope,) = torch.autograd.grad(far.sum(), places)
    assert torch.isfinite(slope).all()
    assert (slope.norm(dim=1) <= 1 + 1e-6).all()
    moved = shape.distance((places + 1e-3 * slope).detach())
    assert (moved >= far.detach() - 1e-9).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_region_is_copied_to_a_device_once(shape, monkeypatch):
    """Denoising asks in every round, and each copy makes a GPU wait."""
    known = shape.distance(PLACES)
    monkeypatch.setattr(torch, "tensor", None)
    assert torch.equal(shape.distance(PLACES), known)


def test_walls_are_where_the_maze_says():
    places = np.random.default_rng(1).uniform(-9, 60, (5000, 2))
    np.testing.assert_array_equal(GIANT.distance(torch.from_numpy(places)).numpy() < 0, maze("giant").in_wall(places))
    grid = np.array([[True, False], [False, False]])
    assert float(Walls.occupied(grid, 1.0, (0, 0)).distance(torch.tensor([1.0, 1.0]))) == pytest.approx(0.5)


@pytest.mark.parametrize("text", ["disc:1,2,3", "box:0,0,4,4@ball", "polygon:0,0,4,0,4,4", "outside:box:0,0,1,1"])
def test_what_is_written_can_be_read(text):
    assert str(region(text)) == text
    (with_margin,) = grown([region(text)], 0.25)
    assert region(str(with_margin)) == with_margin
    assert bare(with_margin) == region(text)
    assert writable(with_margin)
    assert not writable(GIANT)


def test_a_region_in_three_dimensions():
    places = torch.tensor([[0.0, 0, 0], [0, 0, 3]])
    assert Disc((0, 0, 0), 1.0).distance(places).tolist() == [-1, 2]
    assert Disc((0, 0), 1.0).distance(places).tolist() == [-1, -1], "from the floor to the sky"
    assert region("box:0,0,0,1,1,1") == Box((0, 0, 0), (1, 1, 1))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Disc((0, 0), 0), "the radius of a disc is a number above 0, not 0"),
        (lambda: Disc((0, float("nan")), 1), "the centre of a disc is 2 or 3 finite numbers"),
        (lambda: Box((0, 0), (0, 4)), "two opposite corners"),
        (lambda: Polygon(((0, 0), (1, 1))), "3 to 1000 corners, not 2"),
        (lambda: Polygon(((0, 0), (2, 2), (2, 0), (0, 2))), "the polygon crosses itself: its sides from"),
        (lambda: Polygon(((0, 0), (2, 0), (1, 0), (1, 1))), "the polygon crosses itself"),
        (lambda: Polygon(((0, 0), (0, 0), (1, 1))), "the polygon crosses itself"),
        (lambda: region("blob:1,2"), "a region is written disc:x,y,r"),
        (lambda: region("disc:1,2"), "not 'disc:1,2': the centre"),
        (lambda: region("polygon:0,0,1"), "a region is written"),
        (lambda: region("disc:0,0,1~"), "a region is written"),
        (lambda: region("disc:0,0,1~nan"), "a margin is a number of metres from 0 on, not nan"),
        (lambda: region("disc:0,0,1~-2"), "a margin is a number of metres from 0 on, not -2"),
        (lambda: region("outside:" * 5000 + "disc:0,0,1"), "a region is written"),
        (lambda: grown([Disc((0, 0), 1)], -1), "a margin is a number of metres from 0 on, not -1"),
        (lambda: grown(["disc:0,0,1"], 0), "a region is a Disc, a Box"),
        (lambda: Walls.occupied(np.zeros((2, 2)), 1.0, (0, 0)), "of bool, not float64"),
    ],
)
def test_what_is_no_region_is_told_in_a_sentence(make, said):
    with pytest.raises(UserError) as told:
        make()
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_a_steering_holds_waypoints_and_regions_whatever_they_are_given_as():
    made = Steering(via=[(4, 4), Waypoint((8, 8), of="ball")], avoid=Disc((1, 2), 3))
    assert made == Steering.of([(4, 4), Waypoint((8, 8), of="ball")], [Disc((1, 2), 3)])
    with pytest.raises(UserError, match="a region is a Disc"):
        Steering(avoid=["disc:1,2,3"])


@pytest.mark.parametrize("wrong", [[None, {"via": [(4, 4)]}], "via", {"via": (4, 4)}])
def test_what_is_no_steering_is_told(wrong):
    with pytest.raises(UserError, match=r"teer.* Steering.*, not "):
        each_steering(wrong, Steering(), 2)
