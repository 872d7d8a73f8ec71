import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from small_experts import tiny

from compdiffuser.experts.config import EXPERTS
from compdiffuser.experts.figures import write_log
from compdiffuser.experts.policy import load_expert
from compdiffuser.experts.training import Run, train_expert
from compdiffuser.types import UserError

RUN = """
import json, sys
from pathlib import Path
from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.training import train_expert
train_expert(ExpertConfig.from_dict(json.loads(sys.argv[1])), Path(sys.argv[2]), processes=1, progress=False)
"""


def logged(out) -> list[int]:
    with open(out / "log.csv", newline="") as file:
        return [int(row["steps"]) for row in csv.DictReader(file)]


@pytest.mark.slow
def test_a_run_leaves_an_expert_and_its_log(small, tmp_path, short_walks):
    rows = train_expert(small, tmp_path, progress=False)
    assert [row["steps"] for row in rows] == logged(tmp_path) == [96, 192]
    assert "distance" not in rows[0]
    assert "distance" in rows[1]
    expert, config = load_expert(tmp_path, noise=0.2)
    assert config == small
    assert (expert.inputs, expert.actions) == (29, 8)
    # It is continued, not repeated.
    rows = train_expert(replace(small, steps=288), tmp_path, progress=False)
    assert logged(tmp_path) == [96, 192, 288]
    assert rows[-1]["seconds"] >= rows[-2]["seconds"]
    with pytest.raises(UserError, match=r"holds a run with batch 16, not 32"):
        train_expert(replace(small, batch=32), tmp_path, progress=False)
    with pytest.raises(UserError, match=r"holds a run with name ant, not ball"):
        train_expert(tiny("ball"), tmp_path, progress=False)
    (tmp_path / "checkpoint.pt").write_bytes(b"half of a file")
    with pytest.raises(UserError, match="cannot be read"):
        train_expert(small, tmp_path, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["humanoid", "ball"])
def test_every_body_trains_and_continues(name, tmp_path, short_walks):
    train_expert(tiny(name), tmp_path, progress=False)
    rows = train_expert(tiny(name, steps=256), tmp_path, progress=False)
    assert [row["steps"] for row in rows] == [96, 192, 256]


@pytest.mark.slow
def test_time_ends_a_run_and_counts_over_resumes(small, tmp_path, short_walks):
    limited = replace(small, steps=10**9, time_limit=0.5)
    first = train_expert(limited, tmp_path, progress=False)
    assert 0.5 <= first[-1]["seconds"] < 5
    again = train_expert(limited, tmp_path, progress=False)
    assert again == first
    more = train_expert(replace(limited, time_limit=0.8), tmp_path, progress=False)
    assert more[-1]["steps"] > first[-1]["steps"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("ant", marks=pytest.mark.long), "humanoid"])
def test_a_killed_run_continues_with_its_transitions(name, tmp_path, short_walks):
    endless = tiny(name, steps=10**9, log_every=10**9, measure_every=10**9, checkpoint_every=32)
    command = [sys.executable, "-c", RUN, json.dumps(endless.to_dict()), str(tmp_path)]
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 60
    while not (tmp_path / "checkpoint.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    steps = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["steps"]
    rows = train_expert(replace(endless, steps=steps + 64), tmp_path, progress=False)
    assert [row["steps"] for row in rows] == [steps + 64]
    (tmp_path / "replay.bin").unlink()
    with pytest.raises(UserError, match="cannot go on without its transitions"):
        train_expert(replace(endless, steps=steps + 128), tmp_path, progress=False)


def test_mistakes_are_sentences(tmp_path, capsys):
    from compdiffuser.cli import main

    for arguments, said in (
        (["cat"], "unknown expert 'cat'"),
        (["ant", "--evaluate", "--out", str(tmp_path)], "config.json' does not exist"),
        (["ant", "--environments", "3", "--updates-per-step", "0.5"], "make 1.5 updates at a time"),
        (["ant", "--learning-rate", "nan"], "learning_rate must be a finite number, not nan"),
        (["humanoid-student", "--out", str(tmp_path)], "give its folder with --teacher"),
    ):
        assert main(["data", "expert", *arguments]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_figure_is_one_json_object(tmp_path, capsys, short_walks):
    from compdiffuser.cli import main

    config = tiny("ball")
    train_expert(config, tmp_path, progress=False)
    capsys.readouterr()
    assert main(["data", "expert", "ball", "--evaluate", "--rounds", "1", "--json", "--out", str(tmp_path)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["episodes"] == 64
    assert 0 <= figures["reached"] <= 1
    assert set(EXPERTS) == {"ant", "humanoid", "ball", "humanoid-student"}


def test_a_run_that_was_killed_before_its_last_actor_gets_it_when_started_again(small, tmp_path, short_walks):
    """The checkpoint is written first; a finished run without an actor went on without one for good."""
    train_expert(small, tmp_path, processes=0, progress=False)
    for file in tmp_path.glob("*.safetensors"):
        file.unlink()
    (tmp_path / "config.json").unlink()
    train_expert(small, tmp_path, processes=0, progress=False)
    assert load_expert(tmp_path)[1].name == small.name


def test_a_run_that_diverges_keeps_its_last_good_checkpoint(tmp_path, short_walks):
    config = tiny("ant", checkpoint_every=32, measure_every=10**6)
    train_expert(replace(config, steps=96), tmp_path, processes=0, progress=False)
    before, log = load_expert(tmp_path)[0].weights, (tmp_path / "log.csv").read_bytes()
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    for group in saved["learner"]["optimizer"]["param_groups"]:
        group["weight_decay"] = math.inf  # the next update leaves nothing finite
    torch.save(saved, tmp_path / "checkpoint.pt")
    updates = saved["learner"]["updates"]
    said = rf"not finite after \d+ updates with learning rate 0.0003, .* keeps the checkpoint of update {updates};"
    with pytest.raises(UserError, match=said):
        train_expert(config, tmp_path, processes=0, progress=False)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["steps"] == 96
    after = load_expert(tmp_path)[0].weights
    assert all((after[name] == weight).all() for name, weight in before.items())
    assert (tmp_path / "log.csv").read_bytes() == log


def test_a_run_that_was_killed_between_its_files_repairs_them_at_once(small, tmp_path, short_walks, monkeypatch):
    """Before its next step, be it over or not."""
    short = replace(small, steps=128, checkpoint_every=128, log_every=128, measure_every=10**6)
    train_expert(short, tmp_path, processes=0, progress=False)
    expected, log = load_expert(tmp_path)[0].weights, (tmp_path / "log.csv").read_bytes()

    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "advance", stop)
    for lost in ("config.json", "actor*.safetensors", "log.csv"):
        for path in tmp_path.glob(lost):
            path.unlink()
        with pytest.raises(KeyboardInterrupt):
            train_expert(replace(short, steps=192), tmp_path, processes=0, progress=False)
        found = load_expert(tmp_path)[0].weights
        assert all((found[name] == weight).all() for name, weight in expected.items())
        assert (tmp_path / "log.csv").read_bytes() == log


def test_a_log_keeps_every_digit_of_its_counts(tmp_path):
    write_log(tmp_path / "log.csv", [{"steps": 12_345_678, "loss": 0.123456789}])
    assert (tmp_path / "log.csv").read_text().splitlines()[1] == "12345678,0.123457"
