from unittest.mock import MagicMock

import numpy as np
import pytest
from small_experts import tiny, untrained

from compdiffuser.domains.body import rotated, turned
from compdiffuser.domains.simulators import open_simulator
from compdiffuser.experts.policy import Expert
from compdiffuser.experts.tasks import view
from compdiffuser.experts.worlds import WORLDS
from compdiffuser.types import UserError

GYM = {"ant": "online-ant-v0", "humanoid": "online-humanoid-v0", "ant-ball": "online-antball-v0"}
NAMES = {"ant": "ant", "humanoid": "humanoid", "ant-ball": "ball"}


def gym(body, monkeypatch):
    """OGBench's environment; the one with a ball wants to draw, and is left in the belief that it does."""
    from ogbench.online_locomotion.ant_ball import AntBallEnv

    monkeypatch.setattr(AntBallEnv, "render", lambda self: setattr(self.mujoco_renderer, "viewer", MagicMock()))
    return open_simulator(f"ogbench.online_locomotion:{GYM[body]}")


@pytest.mark.parametrize("body", WORLDS)
def test_a_bare_world_moves_as_ogbench_does(body, monkeypatch):
    import mujoco

    env, world, rng = gym(body, monkeypatch), WORLDS[body](2), np.random.default_rng(0)
    world.start(0, rng, "standing")
    world.start(1, rng, "standing")
    env.reset(seed=0)
    data = world.data[1]
    mujoco.mj_resetData(env.model, env.data)
    env.set_state(data.qpos.copy(), data.qvel.copy())
    if body == "humanoid":
        mujoco.mj_step1(env.model, env.data)
    for _ in range(20):
        action = rng.uniform(-1, 1, world.actions)
        world.advance(np.stack([0 * action, action]))
        seen = env.step(action)[0]
        np.testing.assert_array_equal(env.data.qpos, data.qpos)
        np.testing.assert_array_equal(env.data.qvel, data.qvel)
    if body != "ant-ball":  # whose own observation is another than the maze's
        np.testing.assert_allclose(world.observations()[1, 2:], seen, atol=1e-12)
    env.close()


def test_a_humanoid_faces_where_its_torso_points():
    world, rng = WORLDS["humanoid"](5), np.random.default_rng(0)
    for number, pose in enumerate(("standing", "lying", "dropped", "lying", "standing")):
        world.start(number, rng, pose)
    turns = np.stack([data.xmat[1] for data in world.data])
    np.testing.assert_allclose(world.headings(), np.arctan2(turns[:, 3], turns[:, 0]), atol=1e-12)
    assert world.observations().shape == (5, 69)
    assert (world.observations()[[0, 4], 23] > 1.2).all()
    with pytest.raises(UserError, match="starts standing or lying or dropped, not 'flying'"):
        world.start(0, rng, "flying")


def spun(world, angle):
    """Turn all that is in a world about the vertical."""
    import mujoco

    spin = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    for data in world.data:
        for joint in range(world.model.njnt):
            if world.model.jnt_type[joint] == 0:
                at, speed = world.model.jnt_qposadr[joint], world.model.jnt_dofadr[joint]
                data.qpos[at : at + 3] = turned(data.qpos[at : at + 3], np.array(angle))
                result = np.zeros(4)
                mujoco.mju_mulQuat(result, spin, data.qpos[at + 3 : at + 7])
                data.qpos[at + 3 : at + 7] = result
                data.qvel[speed : speed + 3] = turned(data.qvel[speed : speed + 3], np.array(angle))
        mujoco.mj_forward(world.model, data)
        mujoco.mj_step1(world.model, data)


@pytest.mark.parametrize("body", ["ant-ball", "humanoid"])
def test_an_expert_does_the_same_in_a_turned_world(body):
    config = tiny(NAMES[body])
    expert = Expert(config, untrained(config)[1])
    angle, rng = 2.1, np.random.default_rng(0)
    world = WORLDS[body](3)
    for number in range(3):
        world.start(number, rng, "standing")
    for _ in range(4):
        world.advance(rng.uniform(-1, 1, (3, world.actions)))
    commands = rng.normal(size=(3, 2))
    seen, done = [], []
    for turn in (0.0, angle):
        spun(world, turn)
        observations, headings = world.observations(), world.headings()
        seen.append(view(config, observations, headings)[0])
        done.append(expert.act(observations, turned(commands, np.array(turn)), headings))
    np.testing.assert_allclose(*seen, atol=1e-8)
    np.testing.assert_allclose(*done, atol=1e-5)
    # The world's own view is another one.
    assert np.abs(world.observations() - seen[0][:, :1]).max() > 0.1


def test_the_ball_spins_as_the_world_sees_it():
    # One quarter turn about the vertical: what was the ball's own x axis is y.
    quarter = np.array([np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4)])
    np.testing.assert_allclose(rotated(np.array([1.0, 0, 0]), quarter), [0, 1, 0], atol=1e-12)
