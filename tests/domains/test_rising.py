"""Ants on their backs get up, in the real simulator."""

from itertools import count

import numpy as np
import pytest

from compdiffuser.domains import BODIES
from compdiffuser.domains.rising import ATTEMPT, OUTWARD, rocking
from compdiffuser.presets import preset

ANT = BODIES["ant"]
STILL = np.zeros(8)


@pytest.fixture(scope="module")
def world():
    return preset("antmaze-medium-stitch-v0").domain.make()


def on_its_back(world, seed):
    """The observation of an ant that fell on its back, in the middle of its cell, and lies there."""
    world.reset(task=1, seed=seed)
    pose, speed = world.env.data.qpos.copy(), np.zeros_like(world.env.data.qvel)
    facing = np.random.default_rng(seed).uniform(0, np.pi)
    pose[2:7] = 0.6, 0.0, np.cos(facing), np.sin(facing), 0.0
    world.env.set_state(pose, speed)
    for _ in range(20):
        observation = world.advance(STILL)
    return observation


@pytest.mark.parametrize("seed", range(4))
def test_an_ant_rocks_until_it_is_on_its_feet(world, seed):
    observation = on_its_back(world, seed)
    assert ANT.fallen(observation)
    assert not ANT.risen(observation)
    for step in count():
        assert step < 6 * ATTEMPT, "it still lies there"
        observation = world.advance(ANT.rising(np.array([step]))[0])
        if ANT.risen(observation):
            break
    assert not ANT.fallen(observation)


def test_an_ant_that_does_nothing_stays_on_its_back(world):
    observation = on_its_back(world, 0)
    for _ in range(ATTEMPT):
        observation = world.advance(STILL)
    assert ANT.fallen(observation)


def test_motors_are_never_asked_for_more_than_they_have():
    actions = rocking(np.arange(5 * ATTEMPT))
    assert actions.shape == (5 * ATTEMPT, 8)
    assert 0.99 <= np.abs(actions).max() <= 1


def test_each_attempt_gives_its_part_to_the_next_leg():
    first, second, fifth = (OUTWARD * rocking(np.array([attempt * ATTEMPT + 7]))[0] for attempt in (0, 1, 4))
    np.testing.assert_allclose(second, np.roll(first, 2))
    np.testing.assert_allclose(fifth, first)


def test_who_knows_no_way_up_is_told_none():
    assert BODIES["point"].rising(np.zeros(1, int)) is None
    assert BODIES["humanoid"].rising(np.zeros(1, int)) is None  # its controller gets it up
