"""The torture sees what it looks for."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from compdiffuser.files import write_json
from compdiffuser.types import UserError


@pytest.fixture
def damage(benchmark_script):
    return benchmark_script("damage")


def refuse(folder):
    raise UserError("no, in one sentence")


def mumble(folder):
    raise UserError("no,\nin two lines")


def test_every_end_of_a_reader_is_told_apart(damage, tmp_path, monkeypatch):
    monkeypatch.setattr(damage, "LIMIT", 1)
    ends = {
        "read": lambda folder: "what it says",
        "refused": refuse,
        "tracebacks": lambda folder: {}["nothing"],
        "hangs": lambda folder: time.sleep(60),
        "crashes": lambda folder: os.kill(os.getpid(), signal.SIGKILL),
    }
    assert {name: damage.attempt(read, tmp_path)[0] for name, read in ends.items()} == {name: name for name in ends}
    assert damage.attempt(ends["read"], tmp_path) == ("read", "what it says")
    assert damage.attempt(mumble, tmp_path)[0] == "tracebacks"


def test_every_damage_changes_its_file(damage, tmp_path):
    rng = random.Random(0)
    for number in range(30):
        for name in ("a.json", "a.npz", "a.pt"):
            path = tmp_path / name
            if name == "a.json":
                write_json(path, {"one": [1, {"two": 2.5}], "three": "four"})
            elif name == "a.npz":
                np.savez(path, states=np.ones((3, 2), np.float32), meta=np.array("text"))
            else:
                path.write_bytes(bytes(range(100)))
            before = path.read_bytes()
            damage.DAMAGES[number % 3](path, rng)
            assert path.read_bytes() != before


def test_what_was_read_is_told_apart(damage):
    base = {"a": [1.0, None], "b": {"c": np.zeros((2, 3), np.float32)}}
    same = json.loads(json.dumps({"a": base["a"]})) | {"b": {"c": np.zeros((2, 3), np.float32)}}
    others = [{**base, "a": [1.0]}, {**base, "a": [1, None]}, {**base, "b": {"c": np.zeros((3, 2), np.float32)}}, {}]
    assert damage.digest(base) == damage.digest(same)
    assert len({damage.digest(each) for each in (base, *others)}) == 5


@pytest.mark.slow
def test_readers_of_some_kinds_refuse_what_is_damaged(damage, tmp_path):
    kinds = ("dataset without manifest", "controller", "result")
    for kind, found in damage.damage_all(kinds, 24, tmp_path, seed=1):
        assert found["damaged"] == 8, kind
        assert found["refused"] + found["harmless"] + found["another setting"] == 8, kind


def test_processes_and_memory_that_are_left_are_seen(benchmark_script):
    torture = benchmark_script("torture")
    command = [sys.executable, "-c", "import os, time; os.fork(); print(flush=True); time.sleep(600)"]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
    for _ in range(2):
        process.stdout.readline()
    family = torture.session(process.pid)
    assert len(family) == 2
    process.kill()
    process.wait()
    (left,) = torture.session(process.pid)
    os.kill(left, signal.SIGKILL)
    process.stdout.close()
    name = f"/dev/shm/sem.test-{process.pid}-x"
    with open(name, "w"):
        assert torture.memory(family) == [os.path.basename(name)]
    os.unlink(name)
    assert torture.memory(family) == []
