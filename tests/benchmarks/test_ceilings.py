"""Ceilings: plans that are perfect or recorded, and experts that play themselves."""

from types import SimpleNamespace

import numpy as np
import pytest

from compdiffuser.domains import Stepped
from compdiffuser.files import read_json, write_json
from compdiffuser.presets import preset
from compdiffuser.types import Episodes, UserError

ARENA, MEDIUM = preset("antsoccer-arena-stitch-v0"), preset("antsoccer-medium-stitch-v0")
HUMANOID, ANT = preset("humanoidmaze-medium-stitch-v0"), preset("antmaze-medium-stitch-v0")


@pytest.fixture
def ceilings(benchmark_script):
    return benchmark_script("ceilings")


@pytest.fixture
def measuring(benchmark_script):
    return benchmark_script("measuring")


def observed(ant, ball) -> np.ndarray:
    """Soccer's observations [..., 42] with nothing but places."""
    ant, ball = np.asarray(ant, float), np.asarray(ball, float)
    states = np.zeros((*ant.shape[:-1], 42))
    states[..., :2], states[..., 15:17] = ant, ball
    states[..., 3] = 1  # upright
    return states


def test_a_perfect_plan_keeps_to_free_cells_and_reaches_its_goal(ceilings):
    start, goal = HUMANOID.maze.center(((1, 1), (6, 6)))
    (plan,) = ceilings.Perfect(HUMANOID).plan_batch(start[None], goal[None], seed=0)
    assert plan.ok
    assert plan.fault() is None
    assert np.linalg.norm(plan.states[-1] - goal) < 1


def test_recorded_plans_are_every_nth_state_and_the_last(ceilings):
    stride = ARENA.chunks.stride
    line = np.linspace([0, 0], [4, 4], 3 * stride + 2)
    planner = ceilings.Recorded(ARENA, [observed(line, line + 1)])
    (plan,) = planner.plan_batch(np.zeros((1, 4)), np.zeros((1, 4)), seed=[3])
    assert plan.stride == stride
    np.testing.assert_allclose(plan.states[:, :2], line[[0, stride, 2 * stride, 3 * stride, 3 * stride + 1]])
    ((start, goal),) = planner.placements
    np.testing.assert_allclose((start, goal), [[0, 0, 1, 1], [4, 4, 5, 5]])
    with pytest.raises(UserError, match="1 recorded plans, for 2 problems"):
        planner.plan_batch(np.zeros((2, 4)), np.zeros((2, 4)))


def test_episodes_are_told_apart_by_where_the_ball_starts(ceilings):
    places = MEDIUM.maze.center(((1, 1), (1, 2), (6, 6)))
    parts = [observed(np.stack([ant, ant + 1]), np.stack([ball, ball])) for ant in places for ball in places]
    flat = np.concatenate(parts)
    episodes = Episodes.from_terminals(flat, np.zeros((len(flat), 8)), np.tile([False, True], len(parts)))
    dribbled = ceilings.held_out(episodes, MEDIUM, True, 10, seed=0)
    walked = ceilings.held_out(episodes, MEDIUM, False, 10, seed=0)
    assert (len(dribbled), len(walked)) == (3, 6)
    assert all(np.array_equal(states[0, :2], states[0, 15:17]) for states in dribbled)
    assert len(ceilings.held_out(episodes, MEDIUM, False, 4, seed=0)) == 4


def test_where_the_ant_has_to_arrive_the_ball_does_not_count(ceilings):
    class World:
        def place(self, start, goal, seed):
            return observed(start[:2], start[2:]), observed(goal[:2], goal[2:])

        def step(self, action):
            return Stepped(observed(action, [0, 0]), success=True)

    world = ceilings.WalkedWorld(World)
    world.place(np.zeros(4), np.array([5.0, 0, 0, 0]), seed=0)
    assert not world.step(np.array([3.5, 0])).success
    assert world.step(np.array([4.5, 0])).success
    task = ceilings.walked(ARENA)
    assert [group.name for group in task.domain.asked] == ["agent"]


def test_experts_walk_to_the_ball_and_dribble_until_it_is_far(ceilings):
    policy = ceilings.SoccerExperts(ARENA)
    policy.reset(observed([[0, 0]], [[9, 0]]), observed([[9, 9]], [[9, 9]]))
    modes = []
    for away in (9, 4, 2.9, 4, 5.1, 4):
        actions = policy.act(observed([[0, 0]], [[away, 0]]), np.ones(1, bool))
        assert actions.shape == (1, 8)
        modes.append(bool(policy.dribbling[0]))
    assert modes == [False, False, True, True, False, False]


def test_experts_take_the_straight_line_or_the_next_cell(ceilings):
    straight, through = ceilings.SoccerExperts(ARENA), ceilings.SoccerExperts(MEDIUM)
    np.testing.assert_allclose(straight.subgoal(np.zeros(2), np.array([16.0, 0])), [10, 0], atol=1e-4)
    np.testing.assert_allclose(straight.subgoal(np.zeros(2), np.array([0, 3.0])), [0, 3])
    maze = MEDIUM.maze
    near, goal = maze.center((1, 1)), maze.center((1, 2)) + 0.5
    np.testing.assert_allclose(through.subgoal(near, goal), maze.center((1, 2)))
    np.testing.assert_allclose(through.subgoal(goal - 0.3, goal), goal)


def test_an_expert_walks_to_the_next_cell_and_in_the_last_one_to_the_goal(ceilings, monkeypatch):
    policy, maze = ceilings.WalkingExpert(ANT), ANT.maze
    monkeypatch.setattr(policy.walker, "act", lambda observations, commands: commands)
    corner, beside, goal = maze.center((1, 1)), maze.center((1, 2)), maze.center((1, 2)) + np.array([0.5, -0.5])
    observations, goals = np.zeros((2, 29)), np.zeros((2, 29))
    observations[:, :2], goals[:, :2] = [corner, beside], goal
    policy.reset(observations, goals)
    told = policy.act(observations, np.ones(2, bool))
    np.testing.assert_allclose(told, [[1, 0], [0.5**0.5, -(0.5**0.5)]], atol=1e-5)


@pytest.mark.slow
def test_experts_score(ceilings):
    from compdiffuser.evaluation.rollout import evaluate

    ended = evaluate(ceilings.SoccerExperts(ARENA), ARENA, [1], 2, step_limit=400, workers=0)
    assert all(episode.success for episode in ended)


def test_a_world_has_the_cells_that_make_sense_in_it(measuring, monkeypatch):
    controller = SimpleNamespace(estimator=None, told=False)
    monkeypatch.setattr(measuring, "learned", lambda *given: (controller, {"made_of": {}}))
    monkeypatch.setattr(measuring, "told", lambda controller: controller)
    monkeypatch.setattr(measuring.storage, "load", lambda *given: SimpleNamespace(lengths=np.array([201, 150])))
    every = ("perfect", "perfect-true-heading", "experts", "recorded")
    options = SimpleNamespace(cells=every, step_limit=None, eval_episodes=2, look_ahead=None)

    def limits(dataset):
        return {cell.name: cell.limit for cell in measuring.cells_of(options, dataset)}

    assert limits(HUMANOID) == {"perfect": 5000, "perfect-true-heading": 5000}
    assert limits(ANT) == {"experts": 1000, "perfect": 1000}
    assert limits(ARENA) == {"experts": 5000, "recorded-dribble": 402, "recorded-navigate": 402}
    options.cells = ("experts",)
    assert limits(HUMANOID) == {}


def test_a_figure_that_was_made_of_the_same_is_not_measured_again(measuring, tmp_path, capsys):
    options = SimpleNamespace(results=tmp_path, seeds=1, eval_episodes=2, look_ahead=None, workers=0)
    made_of = {"controller": "abc"}

    def begin(seed):
        raise AssertionError("it is measured")

    cell = measuring.Cell("perfect", ANT, 10, begin, {"made_of": made_of})
    asked = {"seeds": 1, "episodes": 2, "limit": 10, "look_ahead": None}
    path = tmp_path / f"{ANT.name}-perfect.json"
    write_json(path, {"asked": asked, "made_of": made_of, "success": 50.0})
    measuring.measure(cell, options)
    assert "measured before, 50.0%" in capsys.readouterr().out
    for other in ({"made_of": {"controller": "def"}}, {"asked": {**asked, "seeds": 2}}):
        write_json(path, {**read_json(path), **other})
        with pytest.raises(AssertionError, match="it is measured"):
            measuring.measure(cell, options)


@pytest.mark.slow
def test_recorded_placements_count_as_episodes_of_one_task(measuring, tmp_path):
    class Still:
        def reset(self, observations, goals):
            """Nothing to plan."""

        def act(self, observations, active):
            return np.zeros((len(observations), 8))

    here, there = np.array([0.0, 0, 2, 2]), np.array([8.0, 8, 2, 2])  # the ball lies at its goal, or not
    places = [(here, there), (here, there + 4)]
    cell = measuring.Cell("recorded-dribble", ARENA, 3, lambda seed: measuring.Try(Still(), places), {"made_of": {}})
    options = SimpleNamespace(results=tmp_path, seeds=1, eval_episodes=1, look_ahead=None, workers=0)
    measuring.measure(cell, options)
    result = read_json(tmp_path / f"{ARENA.name}-recorded-dribble.json")
    assert (result["success"], result["tasks"], result["episodes_per_task"]) == (50.0, [1], 2)
    assert result["evaluation"]["seconds"] >= 0
