import numpy as np
import pytest

from compdiffuser.domains import DOMAINS, domain
from compdiffuser.domains.generated import character, drawn_maze, far_apart, longest_way
from compdiffuser.domains.growing import rows_of_walls
from compdiffuser.domains.mazes import maze
from compdiffuser.presets import PRESETS, Preset, preset
from compdiffuser.registering import register
from compdiffuser.types import UserError

GIANT = maze("giant")


@pytest.mark.parametrize("name", ["8x8-seed-0", "9x20-seed-3", "12x16-seed-1", "30x25-seed-2"])
def test_every_free_cell_can_be_reached_and_none_lies_in_an_open_square(name):
    drawn = drawn_maze(name)
    free = ~drawn.walls
    assert name.startswith("x".join(map(str, free.shape)))
    assert not free[[0, -1]].any()
    assert not free[:, [0, -1]].any()
    assert (drawn.distances(drawn.free_cells[0])[free] >= 0).all()
    assert not (free[1:, 1:] & free[1:, :-1] & free[:-1, 1:] & free[:-1, :-1]).any()
    assert longest_way(drawn) >= 6


def test_the_same_seed_gives_the_same_maze_and_another_seed_another():
    first = drawn_maze("12x16-seed-0")
    drawn_maze.cache_clear()
    assert np.array_equal(first.walls, drawn_maze("12x16-seed-0").walls)
    assert not np.array_equal(first.walls, drawn_maze("12x16-seed-1").walls)


def test_drawn_mazes_are_as_ogbenchs_giant_and_large_ones_are():
    """Shares of the giant maze and of the large one: of free cells .61 and .66, dead ends .07, junctions .12 and .15,
    straight .47 and .52, loops .035 and .065."""
    drawn = [character(drawn_maze(f"24x32-seed-{seed}").walls) for seed in range(4)]
    mean = {name: np.mean([each[name] for each in drawn]) for name in drawn[0]}
    for name, room in {"free": 0.08, "dead_ends": 0.02, "junctions": 0.04, "straight": 0.05, "loops": 0.02}.items():
        least, most = sorted(character(maze(size).walls)[name] for size in ("giant", "large"))
        assert least - room < mean[name] < most + room, name


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("6x32-seed-0", "at least 8x8 cells, border included, not 6x32"),
        ("400x400-seed-0", "at most 16,384 cells, not 400x400, which are 160,000"),
        ("12x16-seed-99999999999", "the seed of a maze is a whole number from 0 to 2147483647"),
        ("12x16-seed-01", "written plainly, not '12x16-seed-01'"),
        ("giant", "named NxM-seed-S, such as 24x32-seed-0, not 'giant'"),
    ],
)
def test_a_maze_that_cannot_be_drawn_is_told_in_a_sentence(name, told):
    with pytest.raises(UserError, match=told):
        drawn_maze(name)


def test_walls_are_the_same_in_few_blocks():
    blocks = rows_of_walls(GIANT.walls)
    cells = sorted(cell for block in blocks for cell in block)
    assert cells == [tuple(cell) for cell in np.argwhere(GIANT.walls).tolist()]
    assert len(blocks) < len(cells) / 2
    assert all(np.ptp(block, axis=0).sum() == len(block) - 1 for block in blocks)


def test_a_world_is_known_by_its_name_and_not_listed():
    name = "pointmaze-12x16-seed-7"
    assert name in DOMAINS
    assert name not in list(DOMAINS)
    assert DOMAINS.get(name) is domain(name) is DOMAINS[name]
    assert DOMAINS.get("pointmaze-12x16-seed-x") is None
    with pytest.raises(KeyError):
        DOMAINS["pointmaze-12x16-seed-x"]
    with pytest.raises(UserError, match="there is already a world 'pointmaze-12x16-seed-7'"):
        register(domain(name))


def test_limits_of_a_dataset_grow_with_its_world():
    small, wide = (preset(f"pointmaze-{size}-seed-0-stitch") for size in ("12x16", "24x32"))
    cells = [len(each.maze.free_cells) for each in (small, wide)]
    assert wide.recording.episodes / small.recording.episodes == pytest.approx(cells[1] / cells[0], rel=0.01)
    assert small.recording.episodes / cells[0] == pytest.approx(5000 / len(GIANT.free_cells), rel=0.01)
    assert wide.chunks.most > 1.5 * small.chunks.most
    assert wide.evaluation.step_limit >= 1000 / longest_way(GIANT) * longest_way(wide.maze)
    assert small.name not in list(PRESETS)
    assert Preset.from_dict(small.to_dict()) == small


def test_the_simulator_has_these_walls_and_tasks():
    """The point is pushed in every direction from the middle of many cells: walls hold, and free cells let it pass."""
    world = domain("pointmaze-8x12-seed-0")
    opened, drawn = world.open(), world.maze
    for task, (start, goal) in enumerate(far_apart(drawn), 1):
        observation, wanted = opened.reset(task, seed=0)
        assert (drawn.cell(observation), drawn.cell(wanted)) == (start, goal)
        assert drawn.distances(start)[goal] >= 0.8 * drawn.distances(start).max()
    for i, j in drawn.free_cells[::5]:
        for di, dj in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            opened.place(drawn.center((i, j)), drawn.center((i, j)), seed=0)
            for _ in range(25):
                observation = opened.advance(np.array([float(dj), float(di)]))
            ahead = (i + di, j + dj)
            assert drawn.cell(observation) == ((i, j) if drawn.walls[ahead] else ahead)
    opened.close()
