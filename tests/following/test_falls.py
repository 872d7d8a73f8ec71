import numpy as np
import pytest

from compdiffuser.domains import BODIES
from compdiffuser.domains.rising import rocking
from compdiffuser.following.falls import Falls
from compdiffuser.types import UserError

UPRIGHT, TILTED, ON_ITS_BACK, TURNING = (1.0, 0.0, 0.0), (0.8, 0.6, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 3.0)
"""w and x of a torso's orientation, and its angular velocity about x: uprightness 1, 0.28, −1, and 1 again."""
EVERYONE = np.ones(2, bool)
WALKING = np.full((2, 8), 0.5)


def ants(*orientations):
    """Observations [E, 29]."""
    seen = np.zeros((len(orientations), 29))
    seen[:, [3, 4, 18]] = orientations
    return seen


def humanoids(*heads):
    seen = np.zeros((len(heads), 69))
    seen[:, 23] = heads
    return seen


def test_an_ant_gets_up_from_its_fall_until_it_stands():
    falls = Falls(BODIES["ant"], 2, patience=100, rise=True)
    for step, pose in enumerate((ON_ITS_BACK, TILTED, ON_ITS_BACK, TURNING)):
        assert falls.watch(ants(pose, UPRIGHT), EVERYONE).tolist() == [0] * (step == 0)
        assert falls.down.tolist() == [True, False]
        moved = falls.up_again(WALKING)
        np.testing.assert_array_equal(moved[0], rocking(np.array([step]))[0])
        np.testing.assert_array_equal(moved[1], WALKING[1])
    falls.watch(ants(UPRIGHT, UPRIGHT), EVERYONE)
    assert not falls.down.any()
    assert falls.up_again(WALKING) is WALKING


def test_an_ant_that_only_stumbles_walks_on():
    falls = Falls(BODIES["ant"], 2, patience=100, rise=True)
    assert not len(falls.watch(ants(TILTED, TILTED), EVERYONE))
    assert falls.up_again(WALKING) is WALKING


def test_who_falls_again_begins_anew_and_counts_again():
    falls = Falls(BODIES["ant"], 1, patience=100, rise=True)
    fell = [len(falls.watch(ants(pose), EVERYONE[:1])) for pose in (ON_ITS_BACK, UPRIGHT, ON_ITS_BACK)]
    assert fell == [1, 0, 1]
    np.testing.assert_array_equal(falls.up_again(WALKING[:1])[0], rocking(np.zeros(1, int))[0])


def test_one_that_is_not_to_rise_is_left_to_its_controller():
    falls = Falls(BODIES["ant"], 2, patience=100, rise=False)
    assert falls.watch(ants(ON_ITS_BACK, UPRIGHT), EVERYONE).tolist() == [0]
    assert falls.down.tolist() == [True, False]
    assert falls.up_again(WALKING) is WALKING


def test_whose_episode_has_ended_is_not_watched():
    falls = Falls(BODIES["ant"], 2, patience=100, rise=True)
    assert not len(falls.watch(ants(ON_ITS_BACK, ON_ITS_BACK), ~EVERYONE))
    assert not falls.down.any()


def test_a_body_with_other_motors_has_to_say_how_it_gets_up():
    falls = Falls(BODIES["ant"], 2, patience=100, rise=True)
    falls.watch(ants(ON_ITS_BACK, UPRIGHT), EVERYONE)
    with pytest.raises(UserError, match="'ant' gets up with 8 motors, and its controller moves 12"):
        falls.up_again(np.zeros((2, 12)))


@pytest.mark.parametrize("rise", [True, False])
def test_a_humanoid_gets_up_by_itself_and_has_fallen_where_it_stays_down(rise):
    falls = Falls(BODIES["humanoid"], 2, patience=3, rise=rise)
    fell = [falls.watch(humanoids(0.3, 1.4), EVERYONE).tolist() for _ in range(4)]
    assert fell == [[], [], [0], []]
    assert falls.down.tolist() == [True, False]
    assert falls.up_again(WALKING) is WALKING
