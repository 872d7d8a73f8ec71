"""Training on two processes, started as a user would: `accelerate launch`. Without a GPU they talk through gloo."""

import csv
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

SCRIPT = Path(__file__).with_name("small_run.py")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.slow
def test_two_processes_learn_one_model(tmp_path):
    command = [
        sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch",
        "--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no",
        "--dynamo_backend", "no", "--main_process_port", str(free_port()),
        str(SCRIPT), str(tmp_path), "--steps", "150", "--time-limit", "0.7",
    ]  # fmt: skip
    run = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr.decode()
    # By steps, and by the clock, which both must read alike to end together and with the same rates.
    for name in ("steps", "time"):
        first, second = (load_file(tmp_path / name / f"weights-{rank}.safetensors") for rank in (0, 1))
        assert all(torch.equal(first[key], second[key]) for key in first)
    with open(tmp_path / "steps" / "log.csv", newline="") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    assert len(losses) == 30
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
