"""Tasks and placements in the real worlds."""

import numpy as np
import pytest

from compdiffuser.domains import DOMAINS
from compdiffuser.domains.robotics import TASKS
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.problems import Task

POINTS = [DOMAINS["pointmaze-medium"], DOMAINS["robotics-pointmaze-umaze"]]


@pytest.mark.parametrize("name", DOMAINS)
def test_every_task_starts_and_ends_in_free_cells(name):
    domain = DOMAINS[name]
    tasks = [Task(number, seed=number) for number in range(1, domain.tasks + 1)]
    with EnvironmentPool(domain, workers=0) as pool:
        observations, goals = pool.reset(tasks)
    assert goals.shape == observations.shape
    domain.body.check(observations)
    for places in domain.space.groups(domain.space.planned(np.stack([observations, goals]))).values():
        assert not domain.maze.in_wall(places).any()


@pytest.mark.parametrize("size", TASKS)
def test_tasks_between_cells_are_those_of_the_benchmark(size):
    domain = DOMAINS[f"robotics-pointmaze-{size.lower()}"]
    with EnvironmentPool(domain, workers=0) as pool:
        ends = pool.reset([Task(number + 1, seed=0) for number in range(domain.tasks)])
    starts, goals = (domain.maze.cells(domain.body.position(observed)).tolist() for observed in ends)
    assert [(tuple(start), tuple(goal)) for start, goal in zip(starts, goals, strict=True)] == list(TASKS[size])


@pytest.mark.parametrize("domain", POINTS, ids=lambda domain: domain.name)
def test_worlds_leave_no_files_open(domain, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    domain.open()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("domain", POINTS, ids=lambda domain: domain.name)
def test_a_simulation_that_blows_up_is_told_and_leaves_no_log(domain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = domain.open()
    world.reset(1, seed=0)
    assert world.step(np.zeros(2)).unstable is False
    assert world.step(np.full(2, np.nan)).unstable is True
    world.reset(1, seed=0)
    assert world.step(np.zeros(2)).unstable is False
    assert list(tmp_path.iterdir()) == []
