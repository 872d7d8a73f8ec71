"""Two rooms, walked in up to a thin wall between them, and a door in it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from compdiffuser.compose.chains import Chains
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import PLANE, Group, Space
from compdiffuser.planning.judge import Judge
from compdiffuser.planning.recorded.calibration import LEVELS, Calibration
from compdiffuser.planning.recorded.cells import MOST, Cells, different, middles_of
from compdiffuser.planning.recorded.passages import LEG, NOWHERE, Passages, headings, legs_of
from compdiffuser.planning.recorded.support import Support, measure_support
from compdiffuser.planning.roads.roadmap import Roadmap
from compdiffuser.planning.training import BLURRED, Making
from compdiffuser.presets import ChunkConfig, preset
from compdiffuser.types import Episodes, UserError

STEPS = 48
DOOR = (0.0, 4.0)


def walks(count: int = 400, seed: int = 0, space: Space = PLANE) -> Windows:
    """Straight walks in one of two rooms of 5 × 10 with the wall x = 0 between them, some through its door."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], count)
    start, end = (np.stack([side * rng.uniform(0.2, 5, count), rng.uniform(-5, 5, count)], 1) for _ in range(2))
    through = np.arange(count) % 8 == 0
    start[through], end[through] = (
        np.array([x, DOOR[1]]) + rng.normal(0, 0.3, (through.sum(), 2)) for x in (-2.5, 2.5)
    )
    return windows_of(start[:, None] + (end - start)[:, None] * np.linspace(0, 1, STEPS)[:, None], space)


def windows_of(paths: np.ndarray, space: Space = PLANE) -> Windows:
    """Windows of recorded paths [N, STEPS, 2]."""
    observations = paths.reshape(-1, 2).astype(np.float32)
    ends = np.tile(np.arange(STEPS) == STEPS - 1, len(paths))
    episodes = Episodes.from_terminals(observations, observations, ends)
    return Windows.from_episodes(episodes, space, Normalizer((-5, -5), (5, 5)), 16)


@pytest.fixture(scope="module")
def support() -> Support:
    return measure_support(walks())


def line(start, end, states: int = 16) -> torch.Tensor:
    """A straight chunk [1, H, 2], normalized."""
    return torch.tensor(np.linspace(start, end, states), dtype=torch.float32)[None] / 5


@pytest.mark.parametrize(
    ("start", "end", "open"),
    [
        ((-1, 0), (1, 0), False),
        ((-1, -2), (1, -3), False),
        ((0.9, -1), (-0.6, -1.4), False),
        ((-1, 4), (1, 4), True),
        ((1, 4), (-1, 4.1), True),
        ((1, 2), (2.5, 0), True),
        ((-0.3, 2), (-0.3, -1), True),
    ],
)
def test_only_a_door_leads_through_a_wall(support, start, end, open):
    """Data lies beside the wall, on both sides of it."""
    aside = support.passages.aside(line(start, end)).item()
    assert (aside <= support.passages.limit) == open
    assert support.passages.open(*(torch.tensor([each]) / 5 for each in (start, end))).item() == open


@pytest.mark.parametrize("away", [0.2, 0.3, 0.5])
@pytest.mark.parametrize(("first", "last"), [(0, 15), (0, 2), (0, 4), (4, 8), (5, 7), (6, 7), (11, 15), (13, 15)])
def test_a_plan_between_rests_at_both_sides_of_a_wall_passes_aside(support, away, first, last):
    """Slowly or fast, early or late: between looks at every other state, and in what a slow plan creeps, walls fit."""
    share = np.clip((np.arange(16) - first) / (last - first), 0, 1)[:, None]
    ends = np.array([[-away, -1.3], [away, -1.3]])
    path = torch.tensor(ends[0] + (ends[1] - ends[0]) * share, dtype=torch.float32)[None] / 5
    assert support.passages.aside(path) > support.passages.limit


@pytest.mark.parametrize("count", [20, 40, 100])
def test_of_few_walks_none_leads_through_the_wall(count):
    """Cells are larger then than a chunk is long, but whither it goes is known all the same."""
    passages = measure_support(walks(count)).passages
    crossing = torch.cat([line((-0.3, y), (0.3, y + 0.1)) for y in np.linspace(-4, 1, 50)])
    assert (passages.aside(crossing) <= passages.limit).float().mean() < 0.05


def test_what_stands_still_is_as_far_aside_as_it_is_from_the_data(support):
    here, outside = line((2, 1), (2, 1)), line((2, 7), (2, 7))
    assert support.passages.aside(here) < support.passages.limit < support.passages.aside(outside)


def test_most_of_other_walks_pass_no_further_aside(support):
    others = walks(60, seed=1)
    passed = support.passages.aside(others.sample(300, torch.Generator().manual_seed(0))) <= support.passages.limit
    assert 0.7 < passed.float().mean() < 1


def test_the_roadmap_goes_to_the_door(support):
    ways = Roadmap.through(support).ways(torch.tensor([[-0.2, -0.6]]), torch.tensor([[0.2, -0.6]]))
    crossing = (ways[0][:-1, 0] < 0) & (ways[0][1:, 0] >= 0)
    assert crossing.sum() == 1
    assert abs(ways[0][:-1][crossing][0, 1] - DOOR[1] / 5) < 0.2


def test_the_judge_says_where_nobody_passed(support):
    usual = Calibration((0.5,), (1.0,), tuple(np.linspace(0, 2, len(LEVELS))), reach=1.0, advance=1.0, step=0.1)
    judge = Judge(lambda x, sigma, conditions: x, usual, support, PLANE, 4, 0.995, "exponential")
    for y, certified in ((4, True), (0, False)):
        chunk = line((-1.5, y), (1.5, y))
        chain = Chains.build(chunk[:, 0], chunk[:, -1], torch.tensor([1]), torch.tensor([0]))
        (verdict,) = judge(chunk, chain).verdicts
        assert ("passage" not in verdict.failed) == certified
        assert ("no recorded episode has passed" in str(verdict)) != certified


def test_passages_are_kept_with_the_support(support):
    again = Support.restored(support.segments, support.described(), support.arrays()["legs"])
    assert again.passages.limit == support.passages.limit
    again.check(PLANE)
    older = {name: value for name, value in support.described().items() if name != "aside"}
    assert Support.restored(support.segments, older).passages is None
    with pytest.raises(UserError, match="legs are"):
        Passages(support.passages.legs[:, :3], 0.1).check(2)


def test_legs_follow_all_episodes():
    windows = walks(20)
    every = legs_of(windows)
    assert len(every) == 20 * -(-(STEPS - 1) // LEG)
    first = windows.states[[0, LEG]].flatten()
    torch.testing.assert_close(every[0], first.half().float())


def test_of_more_legs_some_are_kept_of_every_place_and_direction():
    """A hall that is crossed a thousand times, where some rest, and a path that is walked once."""
    rng = np.random.default_rng(0)
    start, end = (rng.uniform((-5, -5), (0, 5), (4000, 1, 2)) for _ in range(2))
    paths = start + (end - start) * np.linspace(0, 1, STEPS)[:, None]
    paths[::2] = start[::2]  # half of them stand
    once = np.array([(1.0, -4.0), (4.5, 4.0)])
    paths[17] = once[0] + (once[1] - once[0]) * np.linspace(0, 1, STEPS)[:, None]
    windows = windows_of(paths)
    every, few = legs_of(windows, most=100_000), legs_of(windows, most=100)
    assert len(few) < len(every) / 3
    assert len(torch.cat([every, few]).unique(dim=0)) == len(every.unique(dim=0))
    assert torch.equal(few, legs_of(windows, most=100))
    alone = few[few[:, 0] > 0.1]
    assert len(alone) == len(every[every[:, 0] > 0.1])
    standing = (few[:, :2] == few[:, 2:]).all(dim=1).float().mean()
    assert standing < 0.25 < (every[:, :2] == every[:, 2:]).all(dim=1).float().mean()


def test_cells_find_the_leg_that_comparing_with_all_of_theirs_finds(support):
    passages, rng = support.passages, torch.Generator().manual_seed(0)
    cells = Cells.of(passages.legs)
    legs = cells.legs.permute(0, 3, 1, 2).flatten(0, 1).flatten(1)
    legs = legs[legs.isfinite().all(dim=1)]
    here, along = 2.4 * torch.rand(500, 2, generator=rng) - 1.2, torch.randn(500, 2, generator=rng)
    begin, end = (legs - here[:, None].repeat(1, 1, 2)).chunk(2, dim=2)
    before, after = ((each * along[:, None]).sum(dim=2) for each in (begin, end))
    cut = begin + (end - begin) * (before / (before - after))[..., None]
    far = torch.where(before * after < 0, cut.norm(dim=2), NOWHERE)
    found, most = passages.across(here, along), cells.size / 2
    assert (found >= far.amin(dim=1) - 1e-4).all()
    usual = far[:, (legs[:, 2:] - legs[:, :2]).norm(dim=1) <= cells.size].amin(dim=1)
    assert (usual <= most).float().mean() > 0.3
    assert (found <= usual + 1e-4)[usual <= most].all()


def test_asking_the_longest_legs_first_changes_nothing_beyond_half_the_limit(support):
    passages, rng = support.passages, np.random.default_rng(0)
    chunks = torch.cat([line(*rng.uniform(-5, 5, (2, 2))) for _ in range(100)])
    exact, found = replace(passages, limit=0.0).aside(chunks), passages.aside(chunks)
    half = passages.limit / 2
    assert torch.equal(found.clamp(min=half), exact.clamp(min=half))
    assert (found >= exact).all()
    assert (found > exact).any()


def test_a_door_that_was_passed_slowly_is_kept_beside_a_hall_that_is_crossed_fast():
    rng = np.random.default_rng(0)
    angle, room, steps = rng.uniform(0, 2 * np.pi, (600, 1)), np.array([4.8, 10]), np.arange(STEPS)
    fast = rng.uniform(0.1, 0.3, (600, 1, 1)) * np.stack([np.cos(angle), np.sin(angle)], 2)
    there = (rng.uniform((0, 0), room, (600, 1, 2)) + fast * steps[:, None]) % (2 * room)
    paths = np.minimum(there, 2 * room - there) + np.array([0.2, -5])  # the walls send them back
    paths[::2, :, 0] *= -1
    slow = 0.1 * np.stack([steps - 23.6, 0.1 * steps], 1)
    for shift in ((0, 0), (0.3, -0.2), (-0.4, 0.1)):
        windows = windows_of(np.concatenate([paths, slow[None]]) + shift)
        passages = Passages(legs_of(windows, most=100), 0.1)
        through = torch.tensor(slow[None, 16:32] + shift, dtype=torch.float32) / 5
        assert passages.aside(through) < 0.1 < passages.aside(through + torch.tensor([0, -0.4]))


def test_what_is_kept_does_not_depend_on_the_order_of_the_legs():
    steps = torch.randint(-2, 3, (3000, 2), generator=torch.Generator().manual_seed(0)) / 64
    begin = torch.randint(-8, 9, (3000, 2), generator=torch.Generator().manual_seed(1)) / 1024
    legs = torch.cat([begin, begin + steps], dim=1)  # many of the same length
    other = legs[torch.randperm(3000, generator=torch.Generator().manual_seed(2))]
    kept, again = (each[different(each)].unique(dim=0) for each in (legs, other))
    assert len(kept) < 1000
    assert torch.equal(kept, again)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_leg_far_from_all_others_does_not_hide_them(size):
    """Neither by cells of which there would be more than can be kept, nor by cells as large as a world."""
    legs = torch.randn(400, size, generator=torch.Generator().manual_seed(0)).repeat(1, 2) / 10
    legs[:, size] += 0.004
    passages = Passages(torch.cat([legs, torch.full((1, 2 * size), 6e4)]), 0.1)
    assert passages._cells.row.numel() <= MOST
    assert passages._usual < 0.01
    assert (passages.across(middles_of(legs), torch.eye(size)[:1].expand(400, -1)) < 0.001).all()


def test_where_held_out_walks_went_elsewhere_not_everything_may_pass():
    """Two walks in two rooms: neither says how far aside the other may pass."""
    steps = np.linspace(0, 1, STEPS)[:, None]
    rooms = np.stack([np.array(a) + (np.array(b) - a) * steps for a, b in [((-4, -4), (-4, -3)), ((4, 4), (4, 3))]])
    passages = measure_support(windows_of(rooms)).passages
    assert 0 < passages.limit < 0.1
    assert (passages.aside(torch.cat([line((-2, 0), (2, 0)), line((0, 0), (0, 4))])) > passages.limit).all()
    wider = replace(passages, limit=NOWHERE)  # as it was kept once
    assert (wider.aside(line((-2, 0), (2, 0))) > wider.limit).all()


def test_of_no_lines_none_is_open(support):
    assert support.passages.open(torch.zeros(0, 2), torch.zeros(0, 2)).shape == (0,)


def test_far_from_all_legs_nothing_passes(support):
    here = torch.tensor([[9.0, 9.0], [-9.0, 0.0], [torch.nan, 0.0]])
    assert (support.passages.across(here, torch.ones(3, 2)) >= NOWHERE).all()


def test_of_few_episodes_cells_are_larger():
    """Else no leg would be near enough, and everything would be allowed."""
    few = measure_support(walks(40)).passages
    assert few.limit < 1 < NOWHERE
    assert Cells.of(few.legs).size > 2 * Cells.of(measure_support(walks()).passages.legs).size


def test_who_rests_is_going_where_it_goes_afterwards():
    steps = np.r_[np.zeros(8), np.linspace(0, 1, 9), np.ones(8)]
    noise = np.random.default_rng(0).normal(0, 1e-3, (25, 2))
    path = torch.tensor(np.stack([steps, 0 * steps], 1) + noise, dtype=torch.float32)
    along = torch.nn.functional.normalize(headings(path[None], 0.2)[0], dim=1)
    assert (along[:, 0] > 0.99).all()
    creeping = torch.nn.functional.normalize(headings(path[None] / 10, 0.2)[0], dim=1)
    assert (creeping[:, 0] > 0.99).all()
    assert (headings(path[None] / 40, 0.2) == 0).all()
    still = headings(torch.zeros(1, 25, 2), 0.2)
    assert (still == 0).all()


def test_two_things_have_no_passages():
    both = Space.of((0, 1), (Group("agent", (0,)), Group("ball", (1,))))
    assert measure_support(walks(20, space=both), count=64).passages is None


@pytest.mark.parametrize(
    ("scaffold", "few", "frame", "kept"),
    [
        (0.5, True, "world", False),
        (0.01, True, "world", True),
        (0.5, False, "world", True),
        (0.5, False, "chunk", False),
    ],
)
def test_scaffolds_of_small_data_and_large_worlds_are_noised_no_more_than_passages_allow(
    support, monkeypatch, scaffold, few, frame, kept
):
    monkeypatch.setattr("compdiffuser.planning.recorded.support.SEGMENTS", 100_000 if few else 100)
    chunks = ChunkConfig(16, 4, scaffold=scaffold, frame=frame)
    asked = replace(preset("pointmaze-medium-stitch-v0"), chunks=chunks)
    making = Making(None, None, walks(), asked, torch.device("cpu"), None, None)
    making.__dict__["support"] = support
    expected = scaffold if kept else BLURRED * support.passages.limit
    assert making.settings == replace(asked, chunks=replace(asked.chunks, scaffold=expected))


def test_each_episode_is_held_back_once():
    windows = walks(23)
    folds = windows.folds(10, torch.Generator().manual_seed(0))
    assert len(folds) == 10
    assert sorted(first for _, held in folds for first in held.starts.tolist()) == windows.starts.tolist()
    assert all(not set(kept.starts.tolist()) & set(held.starts.tolist()) for kept, held in folds)
    assert all(kept.total + held.total == windows.total for kept, held in folds)
    assert len(walks(1).folds(10, torch.Generator())) == 1


def test_segments_of_small_data_are_all_kept(support):
    windows = walks()
    assert len(support.segments) > 400 * (STEPS - 8) * 0.95
    assert support.stray(windows.sample(200, torch.Generator().manual_seed(0))).max() < 1e-3
