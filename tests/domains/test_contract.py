"""What every registered world promises, asked of the real simulators."""

from functools import cache

import numpy as np
import pytest

from compdiffuser.domains import DOMAINS, Domain, World
from compdiffuser.domains.body import turned
from compdiffuser.types import UserError

ACTIONS = {"point": 2, "ant": 8, "humanoid": 21, "ant-ball": 8}
"""Motors of each body."""
FREE = {"ant": [(0, 0)], "humanoid": [(0, 0)], "ant-ball": [(0, 0), (15, 14)]}
"""Where MuJoCo keeps what moves freely: the first of its seven numbers in qpos and of its six in qvel."""
LEGS = ("antmaze-medium", "humanoidmaze-medium", "antsoccer-arena")
WORLDS = sorted(DOMAINS)


@cache
def opened(name: str) -> tuple[Domain, World]:
    return DOMAINS[name], DOMAINS[name].open()


def seen(name: str) -> np.ndarray:
    """An observation of the first task."""
    return opened(name)[1].reset(1, seed=0)[0]


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_seed_begins_the_same_episode_of_every_task(name):
    domain, world = opened(name)
    assert domain.tasks >= 2
    begun = {}
    for task in range(1, domain.tasks + 1):
        first, again, other = (world.reset(task, seed) for seed in (3, 3, 4))
        for before, after in zip(first, again, strict=True):
            np.testing.assert_array_equal(before, after)
        assert not np.array_equal(np.concatenate(first), np.concatenate(other))
        for observation in first:
            domain.body.check(observation)
            assert np.isfinite(observation).all()
            assert domain.space.planned(observation).shape == (len(domain.space.dims),)
        begun[task] = np.concatenate([domain.space.planned(each) for each in first])
        domain.check_room({"start": domain.space.planned(first[0]), "goal": domain.space.planned(first[1])})
    assert len({tuple(ends.round(1)) for ends in begun.values()}) == domain.tasks, "tasks differ"


@pytest.mark.parametrize("name", WORLDS)
def test_an_episode_begins_where_it_is_placed(name):
    domain, world = opened(name)
    cells = domain.maze.free_cells
    groups = len(domain.space.positions)
    start = np.concatenate([domain.maze.center(cell) for cell in cells[:groups]])
    goal = np.concatenate([domain.maze.center(cell) for cell in cells[-groups:]])
    observation, target = world.place(start, goal, seed=1)
    places = [domain.space.places(domain.space.planned(state)) for state in (observation, target)]
    np.testing.assert_allclose(places[0], start, atol=1e-6)
    np.testing.assert_allclose(places[1], goal, atol=1e-6)
    domain.body.check(target)
    assert not world.step(np.zeros(ACTIONS[domain.body.name])).success
    there = world.place(goal, goal, seed=1)[0]
    np.testing.assert_allclose(domain.space.places(domain.space.planned(there)), goal, atol=1e-6)
    assert world.step(np.zeros(ACTIONS[domain.body.name])).success, "whoever is there has arrived"


@pytest.mark.parametrize("name", WORLDS)
def test_a_step_without_force_changes_little(name):
    domain, world = opened(name)
    assert world.env.action_space.shape == (ACTIONS[domain.body.name],)
    before = seen(name)
    stepped = world.step(np.zeros(ACTIONS[domain.body.name]))
    domain.body.check(stepped.observation)
    assert (stepped.success, stepped.unstable) == (False, False)
    moved = domain.body.position(stepped.observation) - domain.body.position(before)
    assert np.abs(moved).max() < 0.1


@pytest.mark.parametrize("name", WORLDS)
def test_the_maze_is_the_simulators(name):
    domain, world = opened(name)
    theirs = getattr(world.env, "maze_map", None)
    theirs = world.env.maze.maze_map if theirs is None else theirs
    np.testing.assert_array_equal(domain.maze.walls, np.array(theirs) == 1)


@pytest.mark.parametrize("name", WORLDS)
def test_a_body_answers_for_any_number_of_observations(name):
    body = opened(name)[0].body
    batch = np.tile(seen(name), (2, 3, 1))
    assert body.position(batch).shape == (2, 3, 2)
    assert body.itself(batch).shape == (2, 3, batch.shape[-1] - 2)
    fallen, heading = body.fallen(batch), body.heading(batch)
    assert (fallen.shape, fallen.dtype, fallen.any()) == ((2, 3), bool, False)
    assert heading is None or heading.shape == (2, 3)
    facing = np.zeros((2, 3)) if heading is None else heading
    own = body.egocentric(batch, facing)
    assert own.shape == (2, 3, own.shape[-1])
    np.testing.assert_array_equal(own[0, 0], body.egocentric(batch[0, 0], facing[0, 0]))
    with pytest.raises(UserError, match=f"an observation of the {body.name} has .*, not 1"):
        body.check(batch[..., :1])


def turned_about_the_agent(world: World, name: str, angle: float) -> None:
    """Turn everything that moves freely about the agent, in MuJoCo's own state."""
    qpos, qvel = world.data.qpos.copy(), world.data.qvel.copy()
    center, half = qpos[:2].copy(), angle / 2
    turn = np.array([np.cos(half), 0, 0, np.sin(half)])
    for place, speed in FREE[name]:
        qpos[place : place + 2] = center + turned(qpos[place : place + 2] - center, np.array(angle))
        w, x, y, z = qpos[place + 3 : place + 7]
        a, d = turn[0], turn[3]
        qpos[place + 3 : place + 7] = [a * w - d * z, a * x - d * y, a * y + d * x, a * z + d * w]
        qvel[speed : speed + 3] = turned(qvel[speed : speed + 3], np.array(angle))
    world.env.set_state(qpos, qvel)


@pytest.mark.parametrize("angle", [1.0, -2.5])
@pytest.mark.parametrize("name", LEGS)
def test_a_turn_of_the_world_is_not_seen_from_the_body(name, angle):
    domain, world = opened(name)
    world.reset(1, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        world.step(rng.uniform(-1, 1, ACTIONS[domain.body.name]))
    world.env.set_state(world.data.qpos.copy(), rng.normal(size=world.data.qvel.shape))
    before = world.env.get_ob()
    turned_about_the_agent(world, domain.body.name, angle)
    after = world.env.get_ob()
    heading = domain.body.heading(before)
    facing = np.array(0.3) if heading is None else heading
    if heading is not None:
        change = domain.body.heading(after) - facing - angle
        assert np.cos(change) == pytest.approx(1), "the heading turns along"
    own = domain.body.egocentric(before, facing)
    assert np.abs(after - before).max() > 0.1, "which an observation does"
    np.testing.assert_allclose(domain.body.egocentric(after, facing + angle), own, atol=1e-6)


def test_an_unknown_world_is_named():
    from compdiffuser.domains import domain

    with pytest.raises(UserError, match="unknown world 'antmaze-gaint'; did you mean 'antmaze-giant'"):
        domain("antmaze-gaint")
