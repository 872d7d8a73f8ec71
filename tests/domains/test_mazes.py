import json

import gymnasium
import numpy as np
import pytest

from compdiffuser.domains.mazes import MAZES, Maze, maze
from compdiffuser.presets import PRESETS
from compdiffuser.types import UserError


@pytest.mark.parametrize("name", ["medium", "large", "giant", "arena"])
def test_layout_agrees_with_ogbench(name):
    import ogbench.locomaze  # noqa: F401

    environment = gymnasium.make("antsoccer-arena-v0" if name == "arena" else f"pointmaze-{name}-v0").unwrapped
    ours = maze(name)
    np.testing.assert_array_equal(ours.walls, environment.maze_map == 1)
    for cell in ours.free_cells:
        np.testing.assert_allclose(ours.center(cell), environment.ij_to_xy(cell))
        assert environment.xy_to_ij(ours.center(cell) + 1.9) == ours.cell(ours.center(cell) + 1.9) == cell


@pytest.mark.parametrize("name", ["umaze", "medium", "large"])
def test_layout_agrees_with_gymnasium_robotics(name):
    import gymnasium_robotics  # noqa: F401

    record = PRESETS[f"robotics-pointmaze-{name}-v0"]
    theirs = gymnasium.make(record.domain.environment).unwrapped.maze
    ours = record.maze
    np.testing.assert_array_equal(ours.walls, np.array(theirs.maze_map) == 1)
    for cell in ours.free_cells:
        point = ours.center(cell) + np.array([0.3, -0.4])
        np.testing.assert_allclose(ours.center(cell), theirs.cell_rowcol_to_xy(cell))
        assert ours.cell(point) == tuple(theirs.cell_xy_to_rowcol(point)) == cell


@pytest.mark.parametrize("name", MAZES)
def test_walls_are_seen_from_both_sides_of_their_edge(name):
    ours = maze(name)
    edge = ours.center((1, 1)) - np.array([ours.unit / 2, 0.0])  # the left outer wall ends here
    hair = np.array([0.01, 0.0])
    inside, outside = edge - hair, edge + hair
    np.testing.assert_array_equal(ours.in_wall(np.stack([inside, outside])), [True, False])
    np.testing.assert_array_equal(ours.in_wall(np.stack([inside, outside]), margin=0.02), [True, True])
    np.testing.assert_array_equal(ours.in_wall(np.stack([inside, outside]), margin=-0.02), [False, False])
    left, right, bottom, top = ours.extent
    assert ours.in_wall(np.array([[[left - 9.0, bottom], [right + 9.0, top + 9.0]]])).all()


def test_distances_count_steps_and_stay_within_given_cells():
    ours = maze("robotics-umaze")
    steps = ours.distances((1, 1))
    assert steps[3, 1] == 6
    assert steps[0, 0] == -1
    corner = frozenset({(1, 1), (1, 2), (1, 3)})
    assert (ours.distances((1, 1), within=corner) >= 0).sum() == 3


def test_unknown_maze_wall_goal_and_wide_margin_are_named():
    with pytest.raises(UserError, match="unknown maze 'huge'"):
        maze("huge")
    with pytest.raises(UserError, match=r"cell \(0, 0\) of maze 'medium' is a wall"):
        maze("medium").distances((0, 0))
    with pytest.raises(UserError, match="at most half a cell"):
        maze("medium").in_wall(np.zeros(2), margin=3.0)


def test_a_drawing_and_its_description_give_the_same_maze():
    drawn = Maze.drawn("ell", ["####", "#..#", "##.#", "####"], unit=2, origin=(1.0, -1.0), row_sign=-1)
    again = Maze.from_dict(json.loads(json.dumps(drawn.to_dict())))
    np.testing.assert_array_equal(again.walls, drawn.walls)
    assert (again.unit, again.origin, again.row_sign) == (2.0, (1.0, -1.0), -1)
    np.testing.assert_array_equal(again.center((2, 2)), [5.0, -5.0])
    for rows in ([], [""], ["##", "#"]):
        with pytest.raises(UserError, match="one or more and equally long"):
            Maze.drawn("bad", rows, 1.0, (0.0, 0.0))
    with pytest.raises(UserError, match="and not with 'X'"):
        Maze.drawn("bad", ["XXX", "X.X", "XXX"], 1.0, (0.0, 0.0))
    assert again.walled([[3.0, -3.0], [1.0, -3.0], [1.0, -1.0]]).tolist() == [False, True]
    assert again.walled([[3.0, -3.0]]).tolist() == [], "a single state makes no step"
