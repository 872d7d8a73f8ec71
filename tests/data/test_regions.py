import numpy as np
import pytest

from compdiffuser.data.generate import make
from compdiffuser.data.lockstep import alone
from compdiffuser.data.regions import REGIONS, Regions, path
from compdiffuser.data.storage import load
from compdiffuser.domains.mazes import maze
from compdiffuser.presets import PRESETS, preset


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("robotics-")])
def test_episodes_stay_in_their_region_and_end_at_their_goal(name, tmp_path):
    record = preset(name)
    layout, regions = record.maze, REGIONS[record.maze.name]
    episodes = load(make(name, 12, workers=1, out=tmp_path / "d.npz"))
    assert episodes.observations.shape[1] == 4
    for number, episode in enumerate(episodes):
        region = regions[number % len(regions)]
        cells = [tuple(cell) for cell in layout.cells(episode.observations[:, :2])]
        assert set(cells) <= set(region)
        assert cells[0] != cells[-1] or len(set(cells)) > 1 or len(cells) < 40
        assert not layout.in_wall(episode.observations[:, :2]).any()
        assert len(cells) + record.chunks.front_padding + record.chunks.back_padding >= record.chunks.horizon


def test_regions_are_connected_free_and_share_cells_with_others():
    for name, regions in REGIONS.items():
        layout = maze(name)
        for region in regions:
            assert all(layout.distances(region[0], frozenset(region))[cell] >= 0 for cell in region)
        joined = set(regions[0])
        for _ in regions:
            joined |= {cell for region in regions if joined & set(region) for cell in region}
        assert joined == {cell for region in regions for cell in region}


def test_paths_do_not_take_a_short_cut_outside_the_region():
    layout, region = maze("robotics-large"), frozenset(REGIONS["robotics-large"][2])
    inside = path(layout, (1, 7), (5, 7), region)
    assert set(inside) <= region
    assert len(inside) > layout.distances((5, 7))[1, 7] + 1


@pytest.mark.slow
def test_recordings_show_the_way_into_every_region_and_out_of_it():
    """The large maze's last region meets the second in two cells; both are starts and goals."""
    large = preset("robotics-pointmaze-large-v0")
    recipe, world = Regions(large), large.domain.open()
    starts, ends = set(), set()
    for episode in range(2, 180, 3):
        recording = alone(recipe.record(world, episode, np.random.default_rng(episode)))
        positions = recording.arrays()["observations"][:, :2]
        starts.add(recipe.maze.cell(positions[0]))
        ends.add(recipe.maze.cell(positions[-1]))
    assert starts & {(1, 6), (5, 6)}
    assert ends & {(1, 6), (5, 6)}
    assert len(starts) > 12
