from dataclasses import replace

import numpy as np
import pytest
from followers import oracle_follower
from meadow import BALL, MEADOW, Herder, Meadow

from compdiffuser.evaluation.problems import Placement, Task
from compdiffuser.evaluation.replay import Recorder, has_scene, replay
from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
from compdiffuser.presets import preset

POINT = preset("pointmaze-medium-stitch-v0")
UMAZE = preset("robotics-pointmaze-umaze-v0")
ANT = preset("antmaze-medium-stitch-v0")


def recorded(task, steps: int) -> tuple[Recorder, list[EpisodeResult]]:
    recorder = Recorder(oracle_follower(task))
    return recorder, evaluate(recorder, task, tasks=[1, 2], episodes=1, step_limit=steps, workers=0)


@pytest.mark.slow
@pytest.mark.parametrize("task", [POINT, UMAZE, ANT], ids=lambda task: task.domain.name)
def test_an_episode_is_played_again_as_it_was_and_the_recorder_changes_nothing(task):
    recorder, results = recorded(task, steps=60)
    alone = evaluate(oracle_follower(task), task, tasks=[1, 2], episodes=1, step_limit=60, workers=1)
    for row, (result, same) in enumerate(zip(results, alone, strict=True)):
        assert (result.success, result.steps, result.decisions) == (same.success, same.steps, same.decisions)
        played = replay(task.domain, result.problem, recorder.actions(row, result.steps))
        np.testing.assert_array_equal(task.domain.body.position(played.observations), result.path)
        np.testing.assert_array_equal(played.qpos[:, :2], result.path)
        np.testing.assert_array_equal(result.path, same.path)
        np.testing.assert_array_equal(recorder.plans(row)[0][1].start, task.space.planned(recorder.starts[row]))


def test_a_world_without_a_scene_is_played_again_too():
    ends = (np.array([1.0, 1.0, 2.0, 2.0]), np.array([0.0, 0.0, 4.0, 2.0]))
    recorder = Recorder(Herder())
    (result,) = evaluate(recorder, BALL, workers=0, placements=[ends])
    assert isinstance(result.problem, Placement)
    played = replay(BALL.domain, result.problem, recorder.actions(0, result.steps))
    np.testing.assert_array_equal(played.observations, result.path)
    assert (played.model, played.qpos) == (None, None)
    assert (has_scene(BALL.domain), has_scene(POINT.domain)) == (False, True)


class Bare(Meadow):
    """Gives its own arrays."""

    def step(self, action):
        return super().step(action)._replace(observation=self.state)

    def scene(self):
        return "model", self.state


def test_a_world_that_writes_into_what_it_gave_is_played_again_as_it_was():
    actions = np.full((5, 2), 0.1)
    played, same = (replay(replace(MEADOW, make=kind), Task(1, 0), actions) for kind in (Bare, Meadow))
    np.testing.assert_array_equal(played.observations, same.observations)
    np.testing.assert_array_equal(played.qpos, same.observations)


def test_replaying_nothing_shows_the_start():
    played = replay(POINT.domain, Task(1, 0), np.zeros((0, 2)))
    assert played.observations.shape == (1, 2)


class Idle:
    """A policy without plans."""

    def reset(self, observations, goals):
        self.episodes = len(observations)

    def act(self, observations, active):
        return np.zeros((self.episodes, 1))


class Replans(Idle):
    """A policy that gives its second episode another plan with every action."""

    def reset(self, observations, goals):
        super().reset(observations, goals)
        self.plans = ["a", "b"]

    def act(self, observations, active):
        self.plans[1] += "+"
        return super().act(observations, active)


def test_every_plan_is_kept_with_its_step_and_a_policy_without_plans_has_none():
    recorder = Recorder(Replans())
    recorder.reset(np.zeros((2, 2)), np.ones((2, 2)))
    for _ in range(3):
        recorder.act(np.zeros((2, 2)), np.ones(2, bool))
    assert recorder.plans(0) == [(0, "a")]
    assert recorder.plans(1) == [(0, "b"), (0, "b+"), (1, "b++"), (2, "b+++")]
    assert recorder.actions(0, steps=2).shape == (2, 1)
    recorder = Recorder(Idle())
    recorder.reset(np.zeros((2, 2)), np.ones((2, 2)))
    recorder.act(np.zeros((2, 2)), np.ones(2, bool))
    assert recorder.plans(1) == []
    assert recorder.decisions is None
