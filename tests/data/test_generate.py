import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from compdiffuser.data import generate, storage
from compdiffuser.data.lockstep import alone
from compdiffuser.data.stitch import Stitch
from compdiffuser.domains.mazes import Maze, maze
from compdiffuser.domains.simulators import open_simulator
from compdiffuser.presets import preset
from compdiffuser.types import UserError

SMALL, SMALL_EPISODES = "pointmaze-medium-stitch-v0", 120  # as the fixture `small` has it: five shards
WORLD = preset(SMALL).domain


@pytest.mark.slow
def test_two_workers_make_the_same_bytes_as_one(small, tmp_path):
    other = generate.make(SMALL, SMALL_EPISODES, workers=2, out=tmp_path / "other.npz")
    assert other.read_bytes() == small.read_bytes()
    assert storage.validation_of(other).read_bytes() == storage.validation_of(small).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "other-val.json",
        "other-val.npz",
        "other.json",
        "other.npz",
    ]


def test_another_seed_differs_and_fewer_episodes_are_the_first_ones(small, tmp_path):
    few = storage.load(generate.make(SMALL, 3, workers=1, out=tmp_path / "few.npz"))
    np.testing.assert_array_equal(few.observations, storage.load(small)[:3].observations)
    other = storage.load(generate.make(SMALL, 3, workers=1, seed=1, out=tmp_path / "seed.npz"))
    assert not np.array_equal(few.observations, other.observations)


def test_validation_episodes_are_others(small):
    train, validation = storage.load(small), storage.load(small, split="val")
    assert (len(train), len(validation)) == (SMALL_EPISODES, SMALL_EPISODES // 10)
    assert not np.array_equal(train[0].observations, validation[0].observations)


@pytest.mark.slow
def test_killed_halfway_it_leaves_nothing_that_loads_and_resumes(small, tmp_path, monkeypatch):
    out = tmp_path / "killed.npz"
    command = ["data", "make", SMALL, "--episodes", str(SMALL_EPISODES), "--workers", "1", "--out", str(out)]
    program = f"from compdiffuser.cli import main; main({command})"
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".killed-*.work/*.npz")):
            assert time.monotonic() < deadline, "no shard was written"
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not out.exists()
    with pytest.raises(UserError, match="there is no file"):
        storage.load(out)
    left = len([path for path in tmp_path.glob(".killed-*.work/*.npz") if not path.name.startswith(".")])

    jobs = []
    stream = generate.parallel.stream
    monkeypatch.setattr(generate.parallel, "stream", lambda f, j, *a, **k: jobs.extend(j) or stream(f, j, *a, **k))
    generate.make(SMALL, SMALL_EPISODES, workers=1, out=out)
    assert len(jobs) == 5 - left < 5
    assert out.read_bytes() == small.read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_what_is_made_is_left_alone_and_what_is_damaged_is_made_again(tmp_path):
    out = generate.make(SMALL, 2, workers=1, out=tmp_path / "d.npz")
    whole, stamp = out.read_bytes(), out.stat().st_mtime_ns
    generate.make(SMALL, 2, workers=1, out=out)
    assert out.stat().st_mtime_ns == stamp
    out.write_bytes(whole[:-1])
    generate.make(SMALL, 2, workers=1, out=out)
    assert out.read_bytes() == whole


def test_manifest_says_how_it_was_made(small):
    manifest = storage.manifest_of(small)
    assert manifest["name"] == SMALL
    assert manifest["recipe"] == {"name": "stitch", "blocks": 4, "policy": "point", "steps": 201}
    assert (manifest["seed"], manifest["episodes"], manifest["states"]) == (0, 120, 120 * 201)
    assert set(manifest["versions"]) >= {"compdiffuser", "mujoco", "ogbench", "gymnasium"}
    assert len(manifest["sha256"]) == 64


def test_the_recipe_holds(small):
    """No state in a wall, about 0.19 m a step, four cells from start to goal, and then hovering there."""
    episodes, layout = storage.load(small), maze("medium")
    positions = episodes.observations.reshape(-1, 201, 2)
    assert not layout.in_wall(positions, margin=0.4).any()
    steps = np.linalg.norm(np.diff(positions, axis=1), axis=-1)
    assert steps.mean() == pytest.approx(0.192, abs=0.01)
    goals = [layout.cell(path[-1]) for path in positions]
    apart = [layout.distances(goal)[layout.cell(path[0])] for path, goal in zip(positions, goals, strict=True)]
    assert np.mean(np.array(apart) == 4) > 0.98  # a hovering point may just have crossed into the next cell
    near = np.linalg.norm(positions - np.array([layout.center(goal) for goal in goals])[:, None], axis=-1) < 1.0
    assert np.median(near.argmax(axis=1)) == pytest.approx(81, abs=6)
    noise = episodes.actions.reshape(-1, 201, 2)[:, :60].std(axis=1).mean()
    assert 0.3 < noise < 0.9


def test_recorded_actions_replay_in_the_real_environment(small):
    episode = storage.load(small)[7]
    env = open_simulator("ogbench.locomaze:pointmaze-medium-v0", terminate_at_goal=False)
    env.reset(seed=0)
    env.set_xy(episode.qpos[0].astype(np.float64))
    for action, expected in zip(episode.actions[:-1], episode.observations[1:], strict=True):
        np.testing.assert_allclose(env.step(action)[0], expected, atol=1e-4)


def test_a_body_brings_its_own_policy(tmp_path):
    class Still:
        name, actions, noise, limit = "still", 2, 0.0, 1.0

        def act(self, observations, directions):
            np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0, atol=1e-3)
            return np.zeros((len(observations), 2))

    episode = alone(Stitch(preset(SMALL), [Still()]).record(WORLD.open(), 0, np.random.default_rng(0))).arrays()
    assert np.abs(np.diff(episode["observations"], axis=0)).max() < 1e-6


def test_simulators_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for name in ("ogbench.locomaze:pointmaze-medium-v0", "gymnasium_robotics:PointMaze_UMaze-v3"):
        open_simulator(name)
    assert not list(tmp_path.iterdir())
    assert (len(os.listdir("/proc/self/fd")) if before else 0) == before


def test_numpys_global_generator_is_left_as_it_was(tmp_path):
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.RandomState(5).uniform()
    generate.make(SMALL, 1, workers=1, out=tmp_path / "d.npz")
    assert np.random.uniform() == expected  # noqa: NPY002


def test_a_place_that_cannot_be_written_to_is_named_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write '.*file/d\.npz': File exists"):
        generate.make(SMALL, 1, out=tmp_path / "file" / "d.npz")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(UserError, match=r"cannot write '.*d\.npz': permission denied"):
        generate.make(SMALL, 1, out=tmp_path / "d.npz")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "pointmaze-tiny"}, "unknown dataset 'pointmaze-tiny'"),
        ({"episodes": 0}, "the number of episodes is at least 1, not 0"),
        ({"seed": -1}, "the seed is at least 0, not -1"),
        ({"workers": 0}, "the number of workers is at least 1, not 0"),
        ({"engine": "slurm"}, "unknown engine 'slurm'; known engines: local, ray"),
        ({"out": "data.txt"}, "a file ending in .npz, not data.txt"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments, sentence):
    with pytest.raises(UserError, match=sentence):
        generate.make(**{"name": SMALL, "episodes": 1, "workers": 1, "out": tmp_path / "d.npz", **arguments})


def test_numpys_whole_numbers_are_whole_numbers(tmp_path):
    files = [
        generate.make(SMALL, episodes=whole(1), seed=whole(3), workers=1, out=tmp_path / f"{whole.__name__}.npz")
        for whole in (int, np.int64)
    ]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_data_larger_than_memory_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("compdiffuser.data.generate.memory", lambda: 10**9)
    with pytest.raises(UserError, match=r"20,100,000 states of .* need about 1\.9 GB of memory, .* has 1\.0 GB"):
        generate.make("pointmaze-24x32-seed-0-stitch", episodes=100_000)


def test_a_maze_without_a_way_of_four_cells_is_told():
    dataset = preset(SMALL)
    short = Maze.drawn("short", ["####", "#..#", "####"], unit=4, origin=(-4, -4))
    walled = replace(dataset, domain=replace(dataset.domain, maze=short))
    with pytest.raises(UserError, match=r"no way of 4 cells leads from cell \(1, \d\) of maze 'short'"):
        alone(Stitch(walled).record(None, 0, np.random.default_rng(0)))


def test_a_world_of_any_size_is_recorded_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(tmp_path))
    path = generate.make("pointmaze-8x8-seed-0-stitch", episodes=3, workers=1)
    episodes = storage.load("pointmaze-8x8-seed-0-stitch")
    layout = preset("pointmaze-8x8-seed-0-stitch").maze
    assert path.name == "pointmaze-8x8-seed-0-stitch.npz"
    assert len(episodes) == 3
    assert not layout.in_wall(episodes.observations, margin=0.4).any()
