"""The record of a training run, and what commands know of processes, devices and folders."""

import json
import platform

import pytest
import torch
from small_run import CPU, learner, settings

import compdiffuser
from compdiffuser.runs import choose_device, device_name, package_versions, processes, rank, run_folder
from compdiffuser.training.run import run_training
from compdiffuser.types import UserError

COMMON = {"training", "parameters", "processes", "device", "versions", "data", "outcome"}


def test_a_record_has_what_all_have_and_what_is_its_own(tmp_path):
    trained, seen = learner(), []
    record = run_training(
        trained, settings(steps=20), CPU, tmp_path, about={"dataset": "lines"}, own={"method": "lines"},
        manifest={"source": "drawn"}, progress=False, on_checkpoint=lambda *told: seen.append(told),
    )  # fmt: skip
    assert {*record} == COMMON | {"method"}
    assert json.loads(json.dumps(record)) == record
    assert record["training"] == settings(steps=20).to_dict()
    assert record["parameters"] == sum(p.numel() for p in trained.module.parameters())
    assert (record["processes"], record["device"]) == (1, platform.processor() or "cpu")
    assert record["versions"] == {"compdiffuser": compdiffuser.__version__, "torch": torch.__version__}
    assert (record["method"], record["data"], record["outcome"]["steps"]) == ("lines", {"source": "drawn"}, 20)
    assert [updates for updates, _ in seen] == [10, 20]
    assert all({*early} == {*record} - {"outcome"} for _, early in seen)


def test_a_run_of_something_else_is_refused(tmp_path):
    for dataset in ("lines", "lines"):
        run_training(learner(), settings(steps=10), CPU, tmp_path, about={"dataset": dataset}, progress=False)
    with pytest.raises(UserError, match="holds a run with dataset lines, not circles"):
        run_training(learner(), settings(steps=10), CPU, tmp_path, about={"dataset": "circles"}, progress=False)


def test_parameters_may_be_counted_otherwise(tmp_path):
    record = run_training(learner(), settings(steps=1), CPU, tmp_path, about={}, parameters=7, progress=False)
    assert (record["parameters"], record["data"]) == (7, {})


def test_processes_are_counted(monkeypatch):
    assert (rank(), processes()) == (0, 1)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert (rank(), processes()) == (2, 4)


def test_folders_of_runs():
    assert str(run_folder("maze", "gcbc")) == "runs/maze-gcbc"
    assert str(run_folder("maze", "rvs", "sa")) == "runs/maze-rvs-sa"


def test_versions_of_packages():
    found = package_versions(("numpy", "no-such-package"))
    assert {*found} == {"numpy"}
    assert package_versions(("no-such-package",), missing="not installed") == {"no-such-package": "not installed"}


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == CPU
    assert device_name(CPU)
    with pytest.raises(UserError, match="unknown device 'gpu7'; choose auto, cpu or cuda"):
        choose_device("gpu7")
    with pytest.raises(UserError, match="device 'cuda' was asked for, but no GPU is visible"):
        choose_device("cuda")
