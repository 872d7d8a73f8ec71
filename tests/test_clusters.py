"""Jobs on a Ray cluster: what a dead node leaves is done again, and a cluster that is not there is told at once."""

import os
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from lives import die_once, until

from compdiffuser import clusters, parallel
from compdiffuser.artifact import CONFIG
from compdiffuser.cli import main
from compdiffuser.clusters import check_reachable
from compdiffuser.data.shards import Recorded, Shard, record_shard
from compdiffuser.files import read_json
from compdiffuser.presets import preset
from compdiffuser.training.resume import NAME as RESUME
from compdiffuser.types import UserError

UMAZE = "robotics-pointmaze-umaze-v0"


def recorded(job: tuple[Shard, Path]) -> Recorded:
    """Record a shard, and leave a line when it begins. Those that begin third or later wait until a node was killed."""
    shard, folder = job
    with open(folder / f"{shard.first}.txt", "a") as file:
        file.write("begun\n")
    if len(list(folder.glob("*.txt"))) > 2:
        (folder / f"{shard.first}.waits").touch()
        assert until((folder / "killed").exists, seconds=120)
    return record_shard(shard)


def refuse(job: int) -> int:
    raise UserError(f"no {job} here")


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one node, of one CPU, which notices soon that another is gone."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    found = [os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])]
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", os.pathsep.join(found))
    # Long enough for a node that is slow on a busy machine: where the head is taken for dead, this process ends.
    watch = {"health_check_period_ms": 500, "health_check_timeout_ms": 8000, "health_check_failure_threshold": 2}
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": watch}
    made = Cluster(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()
    patch.undo()


@pytest.fixture
def second(cluster, monkeypatch):
    """A second node of it, which may be killed."""
    import ray

    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    monkeypatch.setattr(clusters, "PATIENCE", 60.0)
    yield cluster.add_node(num_cpus=1)
    ray.shutdown()


@pytest.mark.slow
def test_a_node_that_is_killed_loses_nothing_and_counts_nothing_twice(cluster, second, tmp_path):
    umaze = preset(UMAZE)
    shards = [Shard(umaze, "train", first, 2, seed=0) for first in range(0, 12, 2)]
    numbers, found = [], {}
    for number, made in parallel.stream(recorded, [(shard, tmp_path) for shard in shards], engine="ray"):
        if not numbers:  # wait for a job on each node
            assert until(lambda: len(list(tmp_path.glob("*.waits"))) == 2, seconds=120)
            cluster.remove_node(second, allow_graceful=False)
            (tmp_path / "killed").touch()
        numbers.append(number)
        found[number] = made
    assert sorted(numbers) == list(range(6))
    begun = [len(path.read_text().splitlines()) for path in tmp_path.glob("*.txt")]
    assert sum(begun) > 6  # what the dead node was doing began again
    for number, expected in enumerate(parallel.run(record_shard, shards, workers=1)):
        for name, array in expected.fields.items():
            np.testing.assert_array_equal(found[number].fields[name], array)
    with pytest.raises(UserError, match=r"^no 1 here$"):
        parallel.run(refuse, [1], engine="ray")


SWEEP = f"""
[train]
dataset = "{UMAZE}"
method = "gcbc"
device = "cpu"
steps = 2000
checkpoint_every = 100
set = ["hidden=[8]", "batch=8"]
[grid]
seed = [0, 1, 2]
[eval]
tasks = "1"
episodes = 1
seeds = 1
"""


@pytest.mark.long
def test_a_sweep_whose_node_is_killed_ends_as_a_local_one(cluster, second, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert main(["data", "make", UMAZE, "--episodes", "6", "--workers", "1"]) == 0
    Path("s.toml").write_text(SWEEP)

    def kill() -> None:
        """Once both nodes have kept something of their runs."""
        while len(list(Path("far").glob(f"*/{RESUME}"))) < 2:
            time.sleep(0.02)
        cluster.remove_node(second, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    assert main(["sweep", "s.toml", "--engine", "ray", "--out", "far"]) == 0
    killer.join()
    assert main(["sweep", "s.toml", "--out", "near"]) == 0
    far, near = ([dict(run, seconds=0) for run in read_json(f"{out}/sweep.json")["runs"]] for out in ("far", "near"))
    assert far == near
    for run in far:
        folders = [Path(out, run["folder"]) for out in ("far", "near")]
        assert len({read_json(folder / CONFIG)["parts"]["model"]["sha256"] for folder in folders}) == 1
    command = ["eval", str(folders[0]), "--method", "gcbc", "--seeds", "2", "--episodes", "1", "--device", "cpu"]
    assert main([*command, "--engine", "ray", "--out", "far.json"]) == 0
    assert main([*command, "--workers", "0", "--out", "near.json"]) == 0
    assert read_json("far.json") == read_json("near.json")


def test_a_cluster_that_is_not_there_is_told_at_once(monkeypatch):
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{taken.getsockname()[1]}")
        began = time.monotonic()
        with pytest.raises(UserError, match=r"cluster at RAY_ADDRESS '127\.0\.0\.1:\d+' cannot be reached: .+"):
            parallel.run(abs, [1], engine="ray")
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("address", ["nowhere", "host:", "host:port", ":6379", "ray://host:70000"])
def test_an_address_that_is_none_is_named(address):
    with pytest.raises(UserError, match=f"not '{address}'"):
        check_reachable(address)


@pytest.mark.parametrize("said", [b"HTTP/1.0 400 Bad Request\r\n\r\n", b""])
def test_another_server_is_no_cluster(said, monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            connection.recv(100)
            connection.sendall(said)
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(UserError, match="is no Ray cluster"):
            check_reachable(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()


def test_a_local_worker_that_is_killed_is_replaced(tmp_path):
    others = tmp_path / "others"
    others.mkdir()
    (others / "began").touch()
    assert parallel.run(die_once, [str(tmp_path), str(others), str(others)], workers=2) == ["done"] * 3
