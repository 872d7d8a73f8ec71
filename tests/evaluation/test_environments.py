import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from compdiffuser.data.mazes import maze
from compdiffuser.evaluation.environments import EnvironmentPool, WorkerError
from compdiffuser.evaluation.tasks import ROBOTICS_TASKS, make_environment
from compdiffuser.presets import PRESETS, preset
from compdiffuser.types import UserError

MEDIUM = preset("pointmaze-medium-stitch-v0")
UMAZE = preset("robotics-pointmaze-umaze-v0")


@pytest.mark.parametrize("task", [MEDIUM, UMAZE], ids=lambda task: task.environment)
def test_episodes_depend_on_their_seed_and_not_on_the_workers(task):
    recorded = []
    for workers in (1, 2):
        with EnvironmentPool(task, workers) as pool:
            observations, goals = pool.reset([1, 2, 1], seeds=[5, 6, 7])
            again, _ = pool.reset([1, 2, 1], seeds=[5, 6, 7])
            np.testing.assert_array_equal(observations, again)
            active = np.array([True, True, False])
            steps = [pool.step(np.full((3, 2), 0.3), active).observations for _ in range(5)]
            np.testing.assert_array_equal(steps[-1][2], observations[2])
            recorded.append(np.concatenate([observations, goals, *steps]))
    np.testing.assert_array_equal(*recorded)
    assert np.abs(recorded[0][0] - recorded[0][2]).max() > 0  # the same task with another seed


@pytest.mark.parametrize("name", {record.environment: name for name, record in PRESETS.items()}.values())
def test_every_task_starts_and_ends_in_free_cells(name):
    task = preset(name)
    with EnvironmentPool(task, workers=1) as pool:
        numbers = list(range(1, pool.n_tasks + 1))
        observations, goals = pool.reset(numbers, seeds=numbers)
    assert goals.shape == observations.shape
    layout = maze(task.maze)
    assert not layout.in_wall(np.stack([observations[:, :2], goals[:, :2]])).any()
    if task.environment in ROBOTICS_TASKS:
        cells = [(layout.cell(o[:2]), layout.cell(g[:2])) for o, g in zip(observations, goals, strict=True)]
        assert tuple(cells) == ROBOTICS_TASKS[task.environment]


def test_environments_leave_no_files_open(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for task in (MEDIUM, UMAZE):
        make_environment(task)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("task", [MEDIUM, UMAZE], ids=lambda task: task.environment)
def test_a_simulation_that_blows_up_is_told_and_leaves_no_log(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment = make_environment(task)
    environment.reset(1, seed=0)
    assert environment.step(np.zeros(2))[2] is False
    assert environment.step(np.full(2, np.nan))[2] is True
    environment.reset(1, seed=0)
    assert environment.step(np.zeros(2))[2] is False
    assert list(tmp_path.iterdir()) == []


def test_bad_tasks_and_workers_are_named():
    with pytest.raises(UserError, match="at least 1 worker process, not 0"):
        EnvironmentPool(MEDIUM, workers=0)
    with EnvironmentPool(MEDIUM, workers=1) as pool, pytest.raises(UserError, match=r"unknown task 6; .* tasks 1 to 5"):
        pool.reset([6], seeds=[0])


def test_a_worker_that_dies_is_told_in_one_sentence():
    with EnvironmentPool(UMAZE, workers=2) as pool:
        pool.reset([1, 2], seeds=[0, 0])
        os.kill(pool._workers[1][0].pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match="a worker process of PointMaze_UMaze-v3 died with exit code -9"):
            pool.step(np.zeros((2, 2)), np.ones(2, bool))


def test_an_error_in_a_worker_is_passed_on():
    with EnvironmentPool(MEDIUM, workers=1) as pool:
        pool.reset([1], seeds=[0])
        with pytest.raises(WorkerError, match="failed in a worker process: ValueError"):
            pool.step(np.zeros((1, 7)), np.ones(1, bool))


def test_workers_do_not_import_torch():
    code = "import sys, compdiffuser.evaluation.environments; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 0
