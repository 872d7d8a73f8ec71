"""Plans that are steered, with a shipped planner in its maze; and what cannot be asked of any."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from compdiffuser import (
    Box,
    Disc,
    Outside,
    Plan,
    PlanConfig,
    Planner,
    Steering,
    UserError,
    Walls,
    Waypoint,
)
from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import split
from compdiffuser.domains.mazes import maze
from compdiffuser.planning.in_use.detours import Rest, ahead
from compdiffuser.planning.in_use.repair import mending
from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.search import Candidate, Search
from compdiffuser.planning.steering.adherence import kept
from compdiffuser.planning.steering.regions import Grown
from compdiffuser.planning.steering.steering import Course, passing_times, waypoint
from compdiffuser.planning.steering.ways import differ

NAME = "antmaze-medium-stitch-v0"
START, GOAL = (0.0, 0.0), (20.0, 20.0)
LAYOUT = maze("medium")


def cell_box(i: int, j: int) -> Box:
    center = LAYOUT.center((i, j))
    return Box(tuple(center - 2), tuple(center + 2))


@pytest.fixture(scope="module")
def ant() -> Planner:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("compdiffuser.planning.roads.roadmap.LANDMARKS", 400)
        planner = Planner.from_pretrained(NAME, device="cpu", config=PlanConfig(wave=4))
        assert planner.roadmap is not None
    return planner


@pytest.fixture(scope="module")
def plain(ant) -> Plan:
    return ant.plan(START, GOAL, valid=lambda states: np.ones(len(states), bool), n_candidates=8)


@pytest.fixture(scope="module")
def blocked(plain) -> Box:
    """A cell in the middle of the plan that can be gone round."""
    for i, j in map(tuple, LAYOUT.cells(plain.states[len(plain.states) // 4 : -len(plain.states) // 4])):
        walls = LAYOUT.walls.copy()
        walls[i, j] = True
        if replace(LAYOUT, walls=walls).distances(LAYOUT.cell(GOAL))[LAYOUT.cell(START)] > 0:
            return cell_box(i, j)
    raise AssertionError("every cell on the way is a bridge")


def inside(plan: Plan, region) -> bool:
    fine = np.concatenate([np.linspace(a, b, 8) for a, b in zip(plan.states[:-1], plan.states[1:], strict=True)])
    return bool((region.distance(torch.from_numpy(fine)) < 0).any())


@pytest.mark.slow
def test_a_plan_goes_round_a_closed_cell_and_its_certificate_covers_it(ant, plain, blocked):
    assert plain.ok
    assert inside(plain, blocked)
    plan = ant.plan(START, GOAL, avoid=[blocked], margin=0.3, n_candidates=8)
    assert plan.ok
    assert plan.verdict.measures["avoid"] <= 1
    assert not inside(plan, blocked)
    assert plan.fault() is None
    assert [str(each) for each in plan.avoid] == [f"{blocked}~0.3"]


@pytest.mark.slow
def test_a_waypoint_is_passed(ant):
    stop = tuple(LAYOUT.center((6, 1)))
    plan = ant.plan(START, GOAL, via=[stop], n_candidates=8)
    assert plan.ok
    assert np.linalg.norm(plan.states - stop, axis=1).min() <= ant.ground.gap(ant.space.positions[0])


@pytest.mark.slow
def test_regions_that_close_every_way_are_told_with_the_conflict(ant):
    corner = LAYOUT.cell(START)
    doors = [cell_box(corner[0] + 2, j) for j in (1, 2)] + [cell_box(corner[0], 3), cell_box(corner[0] + 1, 3)]
    doors = [door for door in doors if not LAYOUT.walls[LAYOUT.cell(np.add(door.low, door.high) / 2)]]
    plan = ant.plan(START, GOAL, avoid=doors, n_candidates=8)
    assert "avoid" in plan.verdict.failed
    assert "it enters a region that it has to avoid (box:" in str(plan.verdict)
    assert " at state " in plan.verdict.where["avoid"]
    assert plan.verdict.where["avoid"].endswith("the regions close every way that the data knows")


@pytest.mark.slow
def test_plans_to_choose_from_take_different_ways(ant):
    plan = ant.plan(START, GOAL, n_plans=2, n_candidates=8)
    plans = [plan, *plan.others]
    assert len(plans) == 2
    assert all(each.ok for each in plans)
    first, second = (ant.normalizer.normalize(torch.from_numpy(each.states)) for each in plans)
    assert differ(first, second, 4 * ant.roadmap.radius)


@pytest.mark.slow
def test_a_repair_changes_the_chunks_concerned_and_no_others(ant, plain, blocked):
    here = plain.states[5]
    mended = ant.repair(plain, at=here, avoid=[blocked], n_candidates=8)
    assert mended.ok
    assert not inside(mended, blocked)
    stride = plain.chunks.shape[1] - plain.overlap
    kept_first = np.allclose(mended.states[: stride // 2], plain.states[: stride // 2], atol=1e-4)
    kept_last = np.allclose(mended.states[-stride // 2 :], plain.states[-stride // 2 :], atol=1e-4)
    assert kept_first or kept_last
    same = ant.repair(plain, at=here, avoid=[Disc((-100, -100), 1)])
    np.testing.assert_array_equal(same.states, plain.states)


@pytest.mark.slow
def test_a_repair_tells_that_every_way_is_closed(ant, plain):
    i, j = LAYOUT.cell(GOAL)
    free = [cell for cell in ((i - 1, j), (i, j - 1), (i + 1, j), (i, j + 1)) if not LAYOUT.walls[cell]]
    mended = ant.repair(plain, avoid=[cell_box(*cell) for cell in free], n_candidates=8)
    assert not mended.ok
    assert mended.verdict.where["avoid"].endswith("the regions close every way that the data knows")
    assert len(mended.scores) <= 8, "one that shows where will do"


@pytest.mark.slow
def test_a_detour_is_begun_from_with_little_noise_unless_more_is_asked_for(ant):
    assert mending(ant) is ant, "it begins with as little by itself"
    noisier = copy.copy(ant)
    noisier.preset = replace(ant.preset, chunks=replace(ant.preset.chunks, scaffold=0.6))
    assert mending(noisier.with_config()).scaffold == 0.25
    assert mending(ant.with_config(scaffold=0.6)).scaffold == 0.6


@pytest.mark.slow
def test_a_shoved_agent_gets_its_plan_mended_from_where_it_is(ant, plain):
    beside = plain.states[20] + 1.5 * np.array([1.0, -1.0], np.float32) / np.sqrt(2)
    if LAYOUT.in_wall(beside):
        beside = plain.states[20] - 1.5 * np.array([1.0, -1.0], np.float32) / np.sqrt(2)
    mended = ant.repair(plain, at=beside, n_candidates=8)
    stride = plain.chunks.shape[1] - plain.overlap
    np.testing.assert_allclose(mended.start, beside)
    np.testing.assert_allclose(mended.states[-stride:], plain.states[-stride:], atol=1e-4)


@pytest.mark.slow
def test_a_map_that_is_given_once_holds_for_all_plans(ant, blocked):
    closed = LAYOUT.walls.copy()
    closed[LAYOUT.cell(np.add(blocked.low, blocked.high) / 2)] = True
    walls = Walls(replace(LAYOUT, walls=closed))
    known = ant.with_map(walls, margin=0.1)
    plan = known.plan(START, GOAL, n_candidates=8)
    assert plan.ok
    assert not inside(plan, walls)
    assert not ant.known, "the planner itself knows nothing of it"
    with pytest.raises(UserError, match=r"the goal .* lies in the walls of 'medium'"):
        known.plan(START, tuple(np.add(blocked.low, blocked.high) / 2))


@pytest.mark.slow
def test_a_cost_decides_among_certified_plans(ant):
    corner = torch.tensor([20.0, 0.0])
    away = ant.plan(START, GOAL, prefer=lambda s: -(s - corner).norm(dim=-1).mean(dim=1), n_candidates=8)
    near = ant.plan(START, GOAL, prefer=lambda s: (s - corner).norm(dim=-1).mean(dim=1), n_candidates=8)
    far = [np.linalg.norm(plan.states - corner.numpy(), axis=1).mean() for plan in (away, near)]
    assert away.ok
    assert near.ok
    assert far[0] > far[1]


@pytest.mark.slow
def test_a_start_that_is_the_goal_stays(ant):
    plan = ant.plan(START, START)
    assert plan.ok
    assert plan.length < 0.1
    assert len(plan.scores) == 1


PASSED = (Waypoint((4, 4)), Waypoint((0, 12), within=0.2), Waypoint((4, -1.5), "ball", 1e-05))


@pytest.mark.parametrize("stop", PASSED)
def test_a_waypoint_is_read_as_it_is_written(stop):
    assert waypoint(str(stop)) == stop


@pytest.mark.parametrize("text", ["0,12~", "0,12~near", "0,12~-1", "0,12~0", "0,12~nan", "~0.2", "0,12~0.2@ball"])
def test_a_waypoint_that_is_passed_within_no_distance_is_told(text):
    with pytest.raises(UserError, match="a waypoint is written x,y"):
        waypoint(text)


@pytest.mark.slow
def test_a_plan_that_is_steered_is_kept_with_what_steered_it(plain, tmp_path):
    verdict = Verdict({"avoid": 2.0}, {"avoid": "disc:1,2,3 at state 4 of 5, by 1.00 m"})
    steered = Steering.of(avoid=(Grown(Disc((1, 2), 3), 0.5), Walls(LAYOUT)), margin=0.25)
    plan = replace(plain, avoid=steered.avoid, via=PASSED, verdict=verdict)
    loaded = Plan.load(plan.save(tmp_path / "plan.npz"))
    assert loaded.avoid == (Grown(Disc((1, 2), 3), 0.75),), "walls have no text"
    assert (loaded.via, loaded.verdict) == (plan.via, verdict)
    assert plan.to_dict()["verdict"]["where"] == dict(verdict.where)
    assert plan.plot(tmp_path / "plan.png") is not None


def flat(states):
    return states.norm(dim=-1).sum(dim=1).detach()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"avoid": [Disc((0, 0), 1)]}, "the start [0.0, 0.0] lies in disc:0,0,1"),
        ({"avoid": [Disc((3, 3), 1)], "margin": 0.5}, "the goal [3.0, 3.0] lies in disc:3,3,1"),
        ({"avoid": [Disc((2, 0), 1)], "via": [(2, 0.5)]}, "the waypoint [2.0, 0.5] lies in disc:2,0,1"),
        ({"avoid": [Disc((2, 0), 1, of="ball")]}, "there is no 'ball' in these plans, but agent"),
        ({"avoid": (each for each in [Disc((0, 0), 1)])}, "the start [0.0, 0.0] lies in disc:0,0,1"),
        ({"avoid": ["disc:0,0,1"]}, "a region is a Disc, a Box"),
        ({"avoid": None}, "avoid is a list of regions, not None"),
        ({"avoid": "disc:0,0,1"}, "avoid is a list of regions, not disc:0,0,1"),
        ({"via": ["12"]}, "a waypoint is the finite numbers of a place, not 12"),
        ({"via": [(99, 0)]}, "the waypoint [99.0, 0.0] lies outside the data"),
        ({"via": [(1, 2, 3)]}, "a waypoint is 2 numbers here, not [1.0, 2.0, 3.0]"),
        ({"via": [("a", 0)]}, "a waypoint is the finite numbers of a place"),
        ({"via": "1,2"}, "via is a list of places"),
        ({"via": [(1, 1)], "within": 0}, "a waypoint is passed within a distance above 0, not 0"),
        ({"valid": lambda states: states[:, 0] > 0.5}, "the start [0.0, 0.0] is not valid"),
        ({"valid": lambda states: states}, "valid tells a bool, or metres as a float, for each of 2 states"),
        ({"valid": lambda states: np.ones(len(states), int)}, "not int64 of shape [2]"),
        ({"valid": 3}, "valid is a function of states, not 3"),
        ({"prefer": flat}, "the cost has no gradient"),
        ({"prefer": lambda states: states.sum(dim=(1, 2)) / 0}, "the cost of a path is not finite"),
        ({"prefer": lambda states: states.sum()}, "a cost is one number for each of 1 paths"),
        ({"prefer": lambda states: (states * 0).sum(dim=(1, 2)).sqrt()}, "the gradient of the cost is not finite"),
        ({"prefer": lambda states: states[..., 9].sum(dim=1)}, "the cost cannot be computed for states"),
        ({"margin": float("nan")}, "a margin is a number of metres"),
        ({"avoid": [Disc((2, 0), 0.5)], "margin": 1e9}, "a margin of 1e+09 m is wider than the data"),
        ({"avoid": [Disc((2, 0, 1), 1)]}, "disc:2,0,1,1 needs places of 3 numbers, and these have 2"),
        ({"avoid": [Outside(Box((2, 0, 1), (3, 3, 3)))]}, "needs places of 3 numbers, and these have 2"),
        ({"n_plans": 0}, "numbers of plans must be at least 1, not 0"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence(small, options, said):
    with pytest.raises(UserError) as told:
        small.plan([0, 0], [3, 3], n_candidates=2, **options)
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_a_steered_plan_is_made_where_nothing_has_a_gradient(small):
    asked = {"avoid": [Disc((1.5, 1.5), 0.5)], "prefer": lambda states: states.square().sum(dim=(1, 2))}
    usual = small.plan([0, 0], [3, 3], n_candidates=2, **asked)
    with torch.inference_mode():
        inside = small.plan([0, 0], [3, 3], n_candidates=2, **asked)
    np.testing.assert_array_equal(inside.states, usual.states)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_candidates": 0}, "numbers of candidates must be at least 1, not 0"),
        ({"n_candidates": 2.5}, "numbers of candidates must be whole numbers, not 2.5"),
        ({"seed": "x"}, "seeds must be whole numbers, not 'x'"),
    ],
)
def test_a_repair_refuses_what_a_plan_refuses(small, options, said):
    plan = small.plan([0, 0], [3, 3], n_candidates=2)
    with pytest.raises(UserError, match=said):
        small.repair(plan, avoid=[Disc(tuple(plan.states[len(plan.states) // 2]), 0.1)], **options)


@pytest.mark.slow
def test_a_waypoint_in_a_wall_is_refused(ant):
    wall = LAYOUT.center(tuple(np.argwhere(LAYOUT.walls[1:-1, 1:-1])[0] + 1))
    with pytest.raises(UserError, match=r"the waypoint .* lies in a wall"):
        ant.plan(START, GOAL, via=[tuple(wall)])


@pytest.mark.slow
def test_a_plan_of_another_planner_cannot_be_repaired(ant, small):
    with pytest.raises(UserError, match="was not made by this planner"):
        ant.repair(small.plan([0, 0], [3, 3], n_candidates=2))


def out_and_back(planner: Planner) -> Plan:
    """Three chunks along x to a waypoint and back the same way, a little aside."""
    horizon, overlap = planner.model.horizon, planner.model.overlap
    half = (3 * horizon - 2 * overlap) // 2
    x = np.concatenate([np.linspace(-3, 3, half), np.linspace(3, -3, half)])
    states = np.stack([x, np.where(np.arange(2 * half) < half, 0.0, 0.1)], axis=1).astype(np.float32)
    chunks = split(torch.from_numpy(states), 3, horizon, overlap).numpy()
    via = (Waypoint((1.5, 0.0), within=0.3), Waypoint((3.0, 0.0), within=0.3), Waypoint((1.5, 0.1), within=0.3))
    return Plan(states, chunks, states[0], states[-1], overlap, space=planner.space, via=via)


def test_who_follows_a_plan_that_turns_back_tells_how_far_it_is(small):
    plan = out_and_back(small)
    back = 60  # of 72 states
    here = plan.states[back] * (1, 0)  # nearest is a state on the way out
    assert ahead(small, plan, here) == (11, plan.via)
    assert ahead(small, plan, here, back) == (back, ())
    assert ahead(small, plan, here, back, 2) == (back, plan.via[2:]), "the last was passed at some distance"
    rest, early = (Rest.of(small, plan, here, Steering(), *told) for told in ((back, 3), (11, 0)))
    assert (len(rest.chunks), rest.concerned, rest.steering.via) == (1, (), ())
    assert (len(early.chunks), early.steering.via) == (3, plan.via)
    assert Rest.of(small, plan, here, Steering(), back, 1).concerned == (0,), "a waypoint lies behind"
    with pytest.raises(UserError, match="3 chunks make 72 states, and this plan has 67"):
        Rest.of(small, replace(plan, states=plan.states[5:]), here, Steering())
    with pytest.raises(UserError, match=r"of 72 states of a plan, 0 to 72 lie behind an agent, not 3$"):
        ahead(small, plan, here, "3")
    with pytest.raises(UserError, match="of 72 states of a plan, 0 to 72 lie behind an agent, not 73"):
        small.repair(plan, at=here, executed=73)
    with pytest.raises(UserError, match="of 3 waypoints of a plan, 0 to 3 lie behind an agent, not -1"):
        small.repair(plan, at=here, passed=-1)


def test_the_judge_sees_a_wall_that_lies_between_two_states(small):
    plan = small.plan([0, 0], [3, 3], n_chunks=1, n_candidates=2)
    search = small.search([0, 0], [3, 3], 1, 2)
    states = torch.linspace(0, 3, small.model.horizon)[:, None].repeat(1, 2)
    thin = Box((1.505, -9), (1.51, 9))
    gap = (states[:, 0].diff()[0]) / 2
    assert not ((states[:, 0] > 1.505) & (states[:, 0] < 1.51)).any()
    ends = small.normalizer.normalize(states[[0, -1]])
    chain = Chains.build(ends[:1], ends[1:], torch.tensor([1]), torch.tensor([0]))
    chunks = small.normalizer.normalize(states)[None]
    (found,) = kept(chunks, chain, [Course(Steering.of(avoid=[thin]))], small.ground, small.model.overlap)
    assert found.measures["avoid"] > 1
    assert found.broken == [0]
    assert float(gap) > 0.005
    assert "avoid" not in plan.verdict.measures
    assert search.course is None, "what is not steered is not asked"


def test_lines_are_free_where_no_place_on_them_lacks_room(small):
    group = small.space.positions[0]
    steering = Steering.of(avoid=[Disc((1, 1), 0.8), Box((-3, -1), (-2, 2))], margin=0.2)
    clear = small.ground.clear(steering, 0, np.zeros(2))
    here, there = (torch.rand(2, 400, 2, generator=torch.Generator().manual_seed(0)) - 0.5).mul(1.6)
    free = clear(torch.cat([here, there]), torch.arange(800).view(2, 400))
    shares = torch.linspace(0, 1, 200)[:, None]
    points = small.ground.metres(here[:, None] + shares * (there - here)[:, None], group)
    room = small.ground.room(steering.avoid, points).amin(dim=(0, 2))
    assert (room[free] >= 0).all()
    assert free[room > 0.6].all()
    assert 0 < free.sum() < len(free)


def test_a_function_is_asked_every_tenth_of_a_metre_however_long_steps_may_be(small):
    ground = replace(small.ground, calibration=replace(small.calibration, step=2.0))
    longest = 6.0 * float(small.normalizer.units.max())
    assert longest / ground.most_parts <= 0.1
    assert ground.parts == 16, "where distances are known, fewer points do"


def test_what_is_not_valid_is_told_with_its_place(small):
    plan = small.plan([0, 0], [3, 3], n_candidates=2, valid=lambda states: np.abs(states - 1.5).max(axis=1) > 1.0)
    assert "valid" in plan.verdict.failed
    assert plan.verdict.where["valid"].startswith("at state ")


def test_waypoints_are_passed_in_order():
    path = np.array([[0, 0], [1, 0], [2, 0], [3, 0], [2, 0], [1, 0]], float)
    stops = [Waypoint((3.0, 0.0)), Waypoint((1.0, 0.0))]
    assert passing_times([path, path], stops, [0.1, 0.1]) == [3, 5]
    assert passing_times([path], [Waypoint((9.0, 0.0))], [0.1]) == [3]


def test_of_certified_candidates_one_that_goes_much_further_waits():
    good, better = Verdict({"reconstruction": 0.8}), Verdict({"reconstruction": 0.3})
    made = [
        Candidate(0, torch.zeros(1, 4, 2), 0.8, 0.0, good, length=1.0),
        Candidate(1, torch.zeros(1, 4, 2), 0.3, 0.0, better, length=4.0),
    ]
    search = Search(np.zeros(2), np.ones(2), [1], 8, candidates=made)
    assert search.best.number == 0
    made[1] = replace(made[1], length=1.5)
    assert search.best.number == 1, "a little further is no fault"


def test_a_room_is_everything_but_its_outside(small):
    room = Outside(Box((-4.9, -4.9), (4.9, 4.9)))
    assert small.plan([0, 0], [3, 3], n_candidates=2, avoid=[room]).verdict.measures["avoid"] >= 0
    with pytest.raises(UserError, match="lies in outside:box"):
        small.plan([0, 0], [4.95, 4.95], avoid=[room])
