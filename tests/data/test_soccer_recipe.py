from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from compdiffuser.data import generate, storage
from compdiffuser.data.lockstep import alone
from compdiffuser.data.recipes import recipe
from compdiffuser.data.soccer import REACH
from compdiffuser.domains import World
from compdiffuser.domains.body import BODIES
from compdiffuser.experts.policy import experts_for
from compdiffuser.presets import preset
from compdiffuser.types import UserError

ARENA, MEDIUM = (preset(f"antsoccer-{size}-stitch-v0") for size in ("arena", "medium"))
BODY = BODIES["ant-ball"]


class Still:
    """A steersman that does nothing and remembers what it saw and was told."""

    actions, noise, limit = 8, 0.0, 1.0

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: list[np.ndarray] = []
        self.told: list[np.ndarray] = []

    def act(self, observations, commands):
        self.seen.extend(observations.copy())
        self.told.extend(commands.copy())
        return np.zeros((len(observations), 8))


@cache
def opened(dataset: str) -> World:
    return preset(dataset).domain.open()


@cache
def begun(name: str, episodes: int = 40) -> list[tuple[bool, np.ndarray, np.ndarray, np.ndarray]]:
    """Of episodes of one state: whether it dribbles, its observation, what its steersman was told, and the goal."""
    dataset, world = preset(name), opened(name)
    short = replace(dataset, recording=replace(dataset.recording, steps=1))
    found = []
    for seed in range(episodes):
        ant, ball = Still("ant"), Still("ball")
        episode = recipe(short, [ant, ball]).record(world, seed, np.random.default_rng(seed))
        observation = alone(episode).arrays()["observations"][0]
        assert len(ant.told) + len(ball.told) == 1
        asked = ball if ball.told else ant
        seen = observation if ball.told else BODY.ant(observation)
        np.testing.assert_allclose(asked.seen[0], seen, rtol=1e-6)
        found.append((bool(ball.told), observation, asked.told[0], np.array(world.goal)))
    return found


@pytest.mark.parametrize("dataset", [ARENA, MEDIUM], ids=["arena", "medium"])
def test_a_coin_decides_between_walking_and_dribbling(dataset):
    episodes, maze = begun(dataset.name), dataset.maze
    assert 8 < sum(dribbles for dribbles, *_ in episodes) < 32
    for dribbles, observation, _, goal in episodes:
        ant, ball, end = (maze.cell(place) for place in (BODY.position(observation), BODY.ball(observation), goal))
        assert (ant == ball) == dribbles
        assert end not in (ant, ball)
        assert not any(maze.walls[cell] for cell in (ant, ball, end))


def test_without_walls_an_ant_goes_straight_and_a_ball_ten_metres_ahead_at_most():
    far = []
    for dribbles, observation, told, goal in begun(ARENA.name):
        if not dribbles:
            way = goal - BODY.position(observation)
            np.testing.assert_allclose(told, way / np.linalg.norm(way), atol=1e-5)
            continue
        ball = BODY.ball(observation)
        distance = np.linalg.norm(goal - ball)
        far.append(distance > REACH)
        np.testing.assert_allclose(told, ball + (goal - ball) * min(1, REACH / distance), atol=1e-4)
    assert any(far)
    assert not all(far)


def test_between_walls_both_follow_the_benchmarks_own_subgoals():
    simulator = opened(MEDIUM.name).env
    for dribbles, observation, told, goal in begun(MEDIUM.name):
        place = BODY.ball(observation) if dribbles else BODY.position(observation)
        subgoal, _ = simulator.get_oracle_subgoal(place, goal)
        way = subgoal - place
        np.testing.assert_allclose(told, subgoal if dribbles else way / np.linalg.norm(way), atol=1e-5)


def test_soccer_needs_two_experts_and_a_ball():
    with pytest.raises(UserError, match="is walked by the ant and ball expert, and only ant was given"):
        recipe(ARENA, [Still("ant")])
    ant = preset("antmaze-medium-stitch-v0")
    with pytest.raises(UserError, match=r"is of the body 'ant', which has no ball"):
        recipe(replace(ant, recording=ARENA.recording), [Still("ant"), Still("ball")])


@pytest.mark.slow
def test_a_ball_is_taken_along_or_left_alone(tmp_path):
    path = generate.make(ARENA.name, 16, workers=1, out=tmp_path / "arena.npz", steersmen=experts_for(ARENA))
    policies = storage.manifest_of(path)["recipe"]["policies"]
    assert [name.split("-expert-")[0] for name in policies] == ["ant", "ball"]
    episodes = storage.load(path)
    assert {name: getattr(episodes, name).shape[1] for name in ("observations", "actions", "qpos", "qvel")} == {
        "observations": 42, "actions": 8, "qpos": 22, "qvel": 20,
    }  # fmt: skip
    moved = [np.linalg.norm(np.ptp(BODY.ball(episode.observations), axis=0)) for episode in episodes]
    together = [
        ARENA.maze.cell(e.observations[0, :2]) == ARENA.maze.cell(BODY.ball(e.observations[0])) for e in episodes
    ]
    assert np.median([far for far, same in zip(moved, together, strict=True) if same]) > 8
    assert np.median([far for far, same in zip(moved, together, strict=True) if not same]) < 0.5
    assert not ARENA.maze.in_wall(BODY.ball(episodes.observations)).any()
