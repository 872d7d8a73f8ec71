import numpy as np
import pytest
import torch
from fetching import checkpoint, normalized, windows

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import PLANE
from compdiffuser.planning.recorded.support import SEGMENT_SPAN, Support, measure_support, segments_of
from compdiffuser.types import Episodes


def test_segments_overlap_by_half_and_keep_three_states():
    chunk = torch.arange(17.0)[None, :, None].expand(1, 17, 2)
    segments = segments_of(chunk)
    assert segments.shape == (1, 3, 6)
    assert segments[0, :, ::2].tolist() == [[0, 4, 8], [4, 8, 12], [8, 12, 16]]


def test_the_end_of_a_chunk_lies_in_a_segment():
    chunk = torch.arange(16.0)[None, :, None]
    assert segments_of(chunk)[0].tolist() == [[0, 4, 8], [4, 8, 12], [7, 11, 15]]


def test_a_chunk_strays_as_far_as_its_strangest_segment():
    straight = torch.stack([torch.linspace(0, 1, 33), torch.zeros(33)], dim=1)[None]  # [1, 33, 2]
    support = Support(segments_of(straight)[0], ())
    aside = straight.clone()
    aside[:, 16, 1] = 0.5  # the middle of one segment and the end of two others
    torch.testing.assert_close(support.stray(torch.cat([straight, aside])), torch.tensor([0.0, 0.5]))


@pytest.fixture(scope="module")
def corridors() -> Windows:
    """Walks along y = 0 and along y = 4, never between them."""
    rng = np.random.default_rng(0)
    states = np.stack([np.broadcast_to(np.linspace(0, 10, 60), (80, 60)), np.zeros((80, 60))], axis=2)
    states[40:, :, 1] = 4.0
    states += rng.normal(0, 0.05, states.shape)
    ends = np.zeros((80, 60), bool)
    ends[:, -1] = True
    observations = states.reshape(-1, 2).astype(np.float32)
    episodes = Episodes.from_terminals(observations, observations, ends.ravel())
    return Windows.from_episodes(episodes, PLANE, Normalizer.from_data(observations), 32)


def test_the_datas_own_windows_stay_below_the_threshold_and_a_crossing_does_not(corridors):
    support = measure_support(corridors, count=1024)
    generator = torch.Generator().manual_seed(9)
    own = support.stray(corridors.sample(200, generator))
    assert (own <= support.threshold(0.99)).float().mean() > 0.95
    crossing = torch.stack([torch.linspace(-0.2, 0.3, 32), torch.linspace(-0.9, 0.9, 32)], dim=1)[None]
    assert support.stray(crossing).item() > 2 * support.threshold(0.999)


def test_rows_are_measured_the_same_in_parts(corridors, monkeypatch):
    support = measure_support(corridors, count=256)
    chunks = corridors.sample(20, torch.Generator().manual_seed(1))
    whole = support.stray(chunks)
    monkeypatch.setattr("compdiffuser.planning.recorded.support.ELEMENTS", 1)
    torch.testing.assert_close(support.stray(chunks), whole)


def test_chunks_shorter_than_a_segment_have_no_support(corridors):
    short = Windows(**{**vars(corridors), "horizon": SEGMENT_SPAN})
    assert measure_support(short) is None


def walks(count: int, seed: int) -> Windows:
    """Windows of straight walks across a square, each episode's with noise of its own."""
    rng = np.random.default_rng(seed)
    start, end = rng.uniform(-5, 5, (2, count, 1, 2))
    states = start + (end - start) * np.linspace(0, 1, 60)[None, :, None] + rng.normal(0, 0.02, (count, 60, 2))
    observations = states.reshape(-1, 2).astype(np.float32)
    episodes = Episodes.from_terminals(observations, observations, np.tile(np.arange(60) == 59, count))
    return Windows.from_episodes(episodes, PLANE, Normalizer((-5.5, -5.5), (5.5, 5.5)), 32)


def test_a_world_that_few_segments_cannot_cover_has_more(monkeypatch):
    monkeypatch.setattr("compdiffuser.planning.recorded.support.SEGMENTS", 32)
    monkeypatch.setattr("compdiffuser.planning.recorded.support.WINDOWS", 200)
    wide, again = (measure_support(walks(300, seed=0)) for _ in range(2))
    assert len(wide.segments) == 256, "18,000 states have no more than 281"
    assert torch.equal(wide.segments, again.segments)
    monkeypatch.setattr("compdiffuser.planning.recorded.support.CLOSE", 100.0)
    enough = measure_support(walks(300, seed=0))
    assert torch.equal(enough.segments, wide.segments[:32]), "the first are the same"


def test_a_tree_finds_the_same_segments(monkeypatch):
    support = measure_support(walks(200, seed=0), count=1000)
    others = walks(20, seed=1).sample(50, torch.Generator().manual_seed(0))
    compared = support.stray(others)
    monkeypatch.setattr("compdiffuser.planning.recorded.support.MANY", 10)
    by_tree = Support(support.segments, support.strays)
    torch.testing.assert_close(by_tree.stray(others), compared)
    others[3, 4], others[4, 8] = torch.nan, torch.inf
    assert by_tree.stray(others).isfinite().logical_not().nonzero()[:, 0].tolist() == [3, 4]


@pytest.mark.slow
def test_the_limit_holds_for_episodes_that_the_segments_are_not_from():
    """What was usual was measured on the episodes of the sample itself, and 3% of all others then lay outside."""
    support = measure_support(walks(200, seed=0), count=4096)
    others = walks(400, seed=1).sample(4000, torch.Generator().manual_seed(0))
    outside = (support.stray(others) > support.threshold(0.995)).float().mean().item()
    assert outside < 0.015, "about half a per cent"


@pytest.mark.parametrize("copies", [1, 10])
def test_data_that_repeats_itself_allows_a_little_more(copies, few_windows):
    """One episode, or copies of one, stray nothing from themselves, and nothing else would ever be certified."""
    turns = np.linspace(0, 40 * np.pi / copies, 2000 // copies)
    lap = np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)
    episodes = Episodes.from_lists([lap] * copies)
    data = Windows.from_episodes(episodes, PLANE, Normalizer.from_data(episodes.observations), 32)
    support = measure_support(data)
    step = float(np.linalg.norm(np.diff(lap, axis=0), axis=1).max())
    assert support.threshold(0.995) == pytest.approx(2 * step, rel=0.05)
    aside = data.sample(50, torch.Generator().manual_seed(1)) + torch.tensor([step, 0])
    assert (support.stray(aside) <= support.threshold(0.995)).all()


def test_each_thing_is_asked_about_by_itself():
    """An agent and a ball were seldom recorded in these two places at once; both were there."""
    support, others = checkpoint().support, windows(seed=1)
    limit = support.threshold(0.995)
    held = others.sample(1000, torch.Generator().manual_seed(0))
    assert (support.stray(held) > limit).float().mean() < 0.05
    mixed = torch.cat([held[:, :, :2], held.roll(1, 0)[:, :, 2:]], dim=2)
    assert (support.stray(mixed) > limit).float().mean() < 0.1


@pytest.mark.parametrize("moved", [(0,), (2,), (0, 2)])
def test_a_wall_is_one_for_ants_and_for_balls(moved):
    support = checkpoint().support
    through = np.linspace([4.5, -0.5], [7.5, -0.5], 24)
    states = np.tile([2.0, 2.0, 3.0, 3.0], (24, 1))
    for column in moved:
        states[:, column : column + 2] = through
    resting = np.tile([2.0, 2.0, 3.0, 3.0], (24, 1))
    strays = support.stray(torch.stack([normalized(*states), normalized(*resting)])) / support.threshold(0.995)
    assert strays[0] > 1 >= strays[1]


def test_groups_are_kept_with_the_segments():
    support = checkpoint().support
    again = Support.restored(support.segments, support.described())
    assert (again.sizes, again.units, again.strays) == (support.sizes, support.units, support.strays)
    assert support.sizes == (2, 2)
    assert set(Support(support.segments, (1.0,)).described()) == {"strays"}, "one group has nothing else"
