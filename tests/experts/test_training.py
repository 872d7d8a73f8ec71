import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from compdiffuser.cli import main
from compdiffuser.experts.policy import load_expert
from compdiffuser.experts.training import train_expert
from compdiffuser.types import UserError

RUN = """
import sys
from pathlib import Path
from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.training import train_expert
import json
train_expert(ExpertConfig.from_dict(json.loads(sys.argv[1])), Path(sys.argv[2]), progress=False)
"""


def logged(out) -> list[int]:
    with open(out / "log.csv", newline="") as file:
        return [int(row["steps"]) for row in csv.DictReader(file)]


def test_a_run_leaves_an_expert_and_its_log(small, tmp_path, monkeypatch):
    monkeypatch.setattr("compdiffuser.experts.evaluation.STEPS", 20)
    rows = train_expert(small, tmp_path, progress=False)
    assert [row["steps"] for row in rows] == logged(tmp_path) == [96, 192]
    expert, config = load_expert(tmp_path, noise=0.2)
    assert config == small
    assert (expert.inputs, expert.actions) == (29, 8)
    assert (tmp_path / "actor.safetensors").stat().st_size < 500_000
    # It is continued, not repeated.
    rows = train_expert(replace(small, steps=288), tmp_path, progress=False)
    assert logged(tmp_path) == [96, 192, 288]
    assert rows[-1]["seconds"] >= rows[-2]["seconds"]
    with pytest.raises(UserError, match=r"holds a run with batch 16, not 32"):
        train_expert(replace(small, batch=32), tmp_path, progress=False)
    (tmp_path / "checkpoint.pt").write_bytes(b"half of a file")
    with pytest.raises(UserError, match="cannot be read"):
        train_expert(small, tmp_path, progress=False)


def test_a_killed_run_continues(small, tmp_path, monkeypatch):
    import json

    endless = replace(small, steps=10**9, log_every=10**9, checkpoint_every=32)
    command = [sys.executable, "-c", RUN, json.dumps(endless.to_dict()), str(tmp_path)]
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 60
    while not (tmp_path / "checkpoint.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    steps = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["steps"]
    monkeypatch.setattr("compdiffuser.experts.evaluation.STEPS", 20)
    rows = train_expert(replace(endless, steps=steps + 64), tmp_path, progress=False)
    assert [row["steps"] for row in rows] == [steps + 64]


def test_mistakes_are_sentences(tmp_path, capsys):
    assert main(["data", "expert", "cat"]) == 2
    assert "unknown expert 'cat'" in capsys.readouterr().err
    assert main(["data", "expert", "ant", "--evaluate", "--out", str(tmp_path)]) == 2
    assert "config.json' does not exist" in capsys.readouterr().err
    assert main(["data", "expert", "ant", "--environments", "3", "--updates-per-step", "0.5"]) == 2
    assert "make 1.5 updates at a time" in capsys.readouterr().err
