import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from meadow import MEADOW, WALK, Meadow

from compdiffuser.domains import DOMAINS, Domain
from compdiffuser.evaluation.environments import EnvironmentPool, WorkerError
from compdiffuser.evaluation.problems import Placement, Task
from compdiffuser.types import UserError

MEDIUM, UMAZE = DOMAINS["pointmaze-medium"], DOMAINS["robotics-pointmaze-umaze"]
THREE = [Task(1, 5), Task(2, 6), Task(1, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("domain", [MEDIUM, UMAZE, MEADOW], ids=lambda domain: domain.name)
def test_episodes_depend_on_their_seed_and_not_on_the_workers(domain):
    recorded = []
    for workers in (0, 1, 2):
        with EnvironmentPool(domain, workers) as pool:
            observations, goals = pool.reset(THREE)
            again, _ = pool.reset(THREE)
            np.testing.assert_array_equal(observations, again)
            active = np.array([True, True, False])
            steps = [pool.step(np.full((3, 2), 0.3), active).observations for _ in range(5)]
            np.testing.assert_array_equal(steps[-1][2], observations[2])
            np.testing.assert_array_equal(pool.observations, steps[-1])
            recorded.append(np.concatenate([observations, goals, *steps]))
    np.testing.assert_array_equal(recorded[0], recorded[1])
    np.testing.assert_array_equal(recorded[0], recorded[2])
    assert np.abs(recorded[0][0] - recorded[0][2]).max() > 0  # the same task with another seed


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("domain", [MEDIUM, UMAZE, WALK.domain], ids=lambda domain: domain.name)
def test_an_agent_is_put_anywhere_and_its_goal_too(domain, workers):
    start, goal = domain.maze.center((1, 1)) + 0.1, domain.maze.center((1, 3)) - 0.1
    with EnvironmentPool(domain, workers) as pool:
        observations, goals = pool.reset([Placement(start, goal, 0), Placement(goal, start, 0)])
    places = domain.space.places(domain.space.planned(np.stack([observations, goals])))
    np.testing.assert_allclose(places, [[start, goal], [goal, start]])


def test_all_that_moves_is_placed():
    with EnvironmentPool(MEADOW, workers=0) as pool:
        observations, goals = pool.reset([Placement(np.array([1, 2, 3, 3]), np.array([1, 1, 4, 2]), 0)])
    np.testing.assert_array_equal(observations, [[1, 2, 3, 3]])
    np.testing.assert_array_equal(goals, [[1, 1, 4, 2]])


@pytest.mark.parametrize("place", [[1.0, 1.0], [1.0, 1.0, 1.0, np.nan], [[1.0] * 4]])
def test_a_placement_has_finite_numbers_for_all_that_moves(place):
    right = np.ones(4)
    with EnvironmentPool(MEADOW, workers=0) as pool:
        with pytest.raises(UserError, match="a start in meadow is 4 finite numbers"):
            pool.reset([Placement(np.array(place), right, 0)])
        with pytest.raises(UserError, match="a goal in meadow is 4 finite numbers"):
            pool.reset([Placement(right, np.array(place), 0)])


def test_a_domain_that_only_this_process_knows_runs_in_workers():
    mine = replace(MEADOW, name="a meadow that nobody has registered")
    assert mine.name not in DOMAINS
    with EnvironmentPool(mine, workers=1) as pool:
        pool.reset([Task(1, 0)])
        assert pool.step(np.array([[0.1, 0.0]]), np.ones(1, bool)).observations.shape == (1, 4)


def test_a_domain_that_cannot_be_sent_is_told_and_runs_in_this_process():
    local = Domain("local", lambda: Meadow(), tasks=1)
    with pytest.raises(UserError, match=r"'local' cannot be sent to worker processes .* use 0 workers"):
        EnvironmentPool(local, workers=1)
    with EnvironmentPool(local, workers=0) as pool:
        pool.reset([Task(1, 0)])


class Whole(Meadow):
    def reset(self, task, seed):
        self.place(np.array([1, 1, 2, 1]), np.array([0, 0, 5, 1]), seed)
        return np.array([1, 1, 2, 1]), np.array([0, 0, 5, 1])


def test_a_world_that_begins_in_whole_numbers_moves():
    with EnvironmentPool(replace(MEADOW, make=Whole), workers=0) as pool:
        pool.reset([Task(1, 0)])
        (seen,) = pool.step(np.array([[0.15, 0.0]]), np.ones(1, bool)).observations
    np.testing.assert_allclose(seen, [1.15, 1, 2, 1])


class Counting(Meadow):
    opened = closed = 0

    def __init__(self):
        Counting.opened += 1

    def close(self):
        Counting.closed += 1


def test_worlds_are_opened_as_needed_reused_and_closed():
    with EnvironmentPool(replace(MEADOW, make=Counting), workers=0) as pool:
        pool.reset([Task(1, 0)])
        pool.reset([Task(1, 0), Task(2, 0)])
        pool.reset([Task(3, 0)])
        assert (Counting.opened, Counting.closed) == (2, 0)
    assert Counting.closed == 2


def test_bad_tasks_workers_and_domains_are_named():
    with pytest.raises(UserError, match="at least 0, not -1"):
        EnvironmentPool(MEADOW, workers=-1)
    with pytest.raises(UserError, match="'data' has no simulator"):
        EnvironmentPool(Domain("data"))
    with (
        EnvironmentPool(MEADOW, workers=0) as pool,
        pytest.raises(UserError, match="unknown task 4; meadow has tasks 1 to 3"),
    ):
        pool.reset([Task(4, 0)])
    with pytest.raises(UserError, match="has no numbered tasks"):
        Task(1, 0).check(replace(MEADOW, tasks=0))


def test_a_worker_that_dies_is_told_in_one_sentence():
    with EnvironmentPool(MEADOW, workers=2) as pool:
        pool.reset([Task(1, 0), Task(2, 0)])
        os.kill(pool._hosts[1].process.pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match="a worker process of meadow died with exit code -9"):
            pool.step(np.zeros((2, 2)), np.ones(2, bool))


def test_an_error_in_a_worker_is_passed_on_and_the_pool_can_be_used_again():
    with EnvironmentPool(MEADOW, workers=2) as pool:
        pool.reset([Task(1, 0), Task(2, 0)])
        with pytest.raises(WorkerError, match="meadow failed in a worker process: ValueError"):
            pool.step(np.zeros((2, 7)), np.ones(2, bool))
        observations, _ = pool.reset([Task(1, 0), Task(2, 0)])
        np.testing.assert_array_equal(pool.step(np.zeros((2, 2)), np.ones(2, bool)).observations, observations)


def test_workers_do_not_import_torch():
    code = "import sys, compdiffuser.evaluation.environments; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 0
