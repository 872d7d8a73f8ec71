import numpy as np
import pytest

from compdiffuser.following.freeing import freed, look_back

HERE, AHEAD = np.array([1.0, 2.0]), np.array([3.0, 2.0])
LEFT, RIGHT, BACK = [3.0, 3.5], [3.0, 0.5], [-7.0, -7.0]


@pytest.mark.parametrize(("turn", "place"), [*enumerate([AHEAD, LEFT, RIGHT, BACK, RIGHT, LEFT, BACK, LEFT])])
def test_an_agent_tries_one_side_the_other_and_the_way_back_in_turns(turn, place):
    moved = freed(AHEAD[None], HERE[None], np.array([turn]), 1.5, lambda e: np.array(BACK))
    np.testing.assert_allclose(moved[0], place)


def test_each_agent_has_a_turn_of_its_own():
    here, ahead = np.tile(HERE, (3, 1)), np.tile(AHEAD, (3, 1))
    asked = []
    moved = freed(ahead, here, np.array([3, 0, 1]), 1.5, lambda e: asked.append(e) or np.array(BACK))
    np.testing.assert_allclose(moved, [BACK, AHEAD, LEFT])
    assert asked == [0]


def test_an_agent_at_its_target_has_no_side():
    moved = freed(HERE[None], HERE[None], np.array([1]), 1.5, lambda e: np.array(BACK))
    np.testing.assert_array_equal(moved[0], HERE)


def test_looking_back_goes_so_far_along_a_path_or_to_its_beginning():
    path = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 1.0], [2.0, 3.0]])
    assert [look_back(path, 4, distance) for distance in (0.5, 2.0, 2.5, 3.0, 4.5, 5.0, 9.0)] == [3, 3, 2, 2, 0, 0, 0]
    assert look_back(path, 0, 1.0) == 0
