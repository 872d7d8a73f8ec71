"""What recording asks of MuJoCo's worlds: cells to start from, quick steps, and a word when they blow up."""

import mujoco
import numpy as np
import pytest

from compdiffuser.domains import domain
from compdiffuser.domains.simulators import FIRST_BAD, BlewUp


def test_bad_states_are_the_last_of_mujocos_warnings():
    kinds = mujoco.mjtWarning
    bad = {kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC, kinds.mjWARN_BADCTRL}
    assert {int(kind) for kind in bad} == set(range(FIRST_BAD, int(kinds.mjNWARNING)))


@pytest.mark.parametrize("part", ["qpos", "qvel"])
def test_a_simulation_that_blows_up_says_so_until_it_begins_again(part):
    world, still = domain("antmaze-medium").open(), np.zeros(8)
    world.reset(1, seed=0)
    assert np.isfinite(world.advance(still)).all()
    getattr(world.data, part)[0] = 1e20
    for _ in range(2):
        with pytest.raises(BlewUp):
            world.advance(still)
    assert world.step(still).unstable
    world.reset(1, seed=0)
    assert not world.step(still).unstable


@pytest.mark.parametrize("name", ["pointmaze-medium", "antsoccer-arena"])
def test_a_quick_step_is_a_step(name):
    world = domain(name).open()
    actions = np.random.default_rng(0).uniform(-1, 1, (5, *world.env.action_space.shape))
    world.reset(1, seed=0)
    slow = [world.step(action).observation for action in actions]
    world.reset(1, seed=0)
    np.testing.assert_array_equal([world.advance(action) for action in actions], slow)


def test_a_ball_starts_in_its_own_cell_or_in_the_ants():
    soccer = domain("antsoccer-arena")
    world = soccer.open()
    for ball, cell in (((5, 5), (5, 5)), (None, (1, 2))):
        observation, goal = world.between((1, 2), (3, 4), seed=3, ball=ball)
        assert soccer.maze.cell(soccer.body.position(observation)) == (1, 2)
        assert soccer.maze.cell(soccer.body.ball(observation)) == cell
        assert soccer.maze.cell(soccer.body.ball(goal)) == soccer.maze.cell(world.goal) == (3, 4)
    assert np.abs(soccer.body.ball(observation) - soccer.body.position(observation)).max() <= 2
