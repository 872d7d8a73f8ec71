"""A killed run loses nothing but time."""

import copy
import csv
import errno
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_run import CPU, MODEL, LineLearner, learner, settings, train
from torch import nn

from compdiffuser.training import loop
from compdiffuser.training.updater import Learner, Updater
from compdiffuser.types import UserError

SCRIPT = Path(__file__).with_name("small_run.py")


def start(out: Path, *options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(SCRIPT), str(out), *map(str, options)], stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.005)


def log_of(out: Path) -> list[list[str]]:
    with open(out / "log.csv", newline="") as file:
        return [row[:3] for row in csv.reader(file)]  # without the seconds


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_a_killed_run_continues_and_ends_with_the_same_bits(tmp_path):
    killed = start(tmp_path / "killed", "--steps", 300, "--pause", 0.004)
    wait_for(tmp_path / "killed" / "steps" / "resume.pt", killed)
    delay = random.uniform(0, 0.6)
    time.sleep(delay)
    killed.kill()
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL, "it finished before it was killed"
    step = torch.load(tmp_path / "killed" / "steps" / "resume.pt", weights_only=True)["step"]
    assert 0 < step < 300
    continued = start(tmp_path / "killed", "--steps", 300)
    _, whole = train(tmp_path / "whole", steps=300)
    finish(continued)
    weights = load_file(tmp_path / "killed" / "steps" / "weights-0.safetensors")
    assert same(weights, whole), f"killed {delay:.3f} s after the first checkpoint, continued from step {step}"
    log = log_of(tmp_path / "killed" / "steps")
    assert [int(row[0]) for row in log[1:]] == list(range(5, 301, 5))
    assert log == log_of(tmp_path / "whole")


def test_a_longer_run_continues_a_finished_one(tmp_path):
    train(tmp_path, steps=20)
    outcome, _ = train(tmp_path, steps=30)
    assert outcome.steps == 30
    assert [int(row[0]) for row in log_of(tmp_path)[1:]] == [5, 10, 15, 20, 25, 30]


def test_a_finished_run_started_again_is_what_it_was(tmp_path):
    first, weights = train(tmp_path, steps=20)
    again, same_weights = train(tmp_path, learner(weights=7), steps=20)
    assert same(weights, same_weights)
    assert again.steps == first.steps
    assert again.loss == pytest.approx(first.loss, rel=1e-4)
    assert again.seconds >= first.seconds


@pytest.mark.parametrize("flags", [{"capturable": True, "fused": True}, {"capturable": False, "fused": False}])
def test_a_run_begun_with_another_optimizer_continues_with_this_ones(tmp_path, flags):
    """On a GPU it is capturable, which a CPU's cannot be; once a CPU's was not fused."""
    for out in (tmp_path / "plain", tmp_path / "other"):
        train(out, steps=10)
    saved = torch.load(tmp_path / "other" / "resume.pt", weights_only=True)
    for group in saved["optimizer"]["param_groups"]:
        group.update(flags)
    torch.save(saved, tmp_path / "other" / "resume.pt")
    (_, plain), (_, other) = (train(tmp_path / name, steps=20) for name in ("plain", "other"))
    assert same(plain, other)
    resumed = torch.load(tmp_path / "other" / "resume.pt", weights_only=True)
    assert all(group["fused"] and not group["capturable"] for group in resumed["optimizer"]["param_groups"])


def test_a_line_cut_off_by_the_kill_is_dropped(tmp_path):
    train(tmp_path, steps=20)
    with open(tmp_path / "log.csv", "a") as file:
        file.write("25,0.1,0.001,3.5\n30,0.")
    train(tmp_path, steps=30)
    assert [int(row[0]) for row in log_of(tmp_path)[1:]] == [5, 10, 15, 20, 25, 30]


@pytest.mark.parametrize("damage", ["cut", "emptied", "text", "another file of torch"])
def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path, damage):
    train(tmp_path, steps=10)
    path = tmp_path / "resume.pt"
    if damage == "another file of torch":
        torch.save({"weights": torch.zeros(3)}, path)
    else:
        path.write_bytes({"cut": path.read_bytes()[:5000], "emptied": b"", "text": b"not a checkpoint"}[damage])
    with pytest.raises(UserError, match=r"resume.pt' cannot be read .*; remove it to start anew") as error:
        train(tmp_path, steps=20)
    assert "\n" not in str(error.value)


def test_a_checkpoint_cannot_run_code(tmp_path):
    class Harm:
        def __reduce__(self):
            return Path.touch, (tmp_path / "harm",)

    torch.save({"step": 1, "seconds": 0.0, "config": Harm()}, tmp_path / "resume.pt")
    with pytest.raises(UserError, match="cannot be read"):
        train(tmp_path, steps=20)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"network": replace(MODEL.network, width=48)},
        {"network": replace(MODEL.network, depth=2)},
        {"neighbours": "encoder"},
    ],
)
def test_a_run_of_another_model_is_named(tmp_path, change):
    train(tmp_path, steps=10)
    with pytest.raises(UserError, match="holds a run of another model; choose another folder, or remove") as error:
        train(tmp_path, learner(replace(MODEL, **change)), steps=20)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "value", "was"), [("learning_rate", 0.01, 0.003), ("batch", 8, 16), ("seed", 1, 0)])
def test_a_run_with_other_settings_is_named(tmp_path, name, value, was):
    train(tmp_path, steps=10)
    with pytest.raises(UserError, match=f"holds a run with {name} {was}, not {value}; choose another folder"):
        train(tmp_path, steps=20, **{name: value})


def test_a_run_of_something_else_is_named(tmp_path):
    train(tmp_path, about={"dataset": "medium", "dims": [0, 1]}, steps=10)
    with pytest.raises(UserError, match="holds a run with dataset medium, not large; choose another folder"):
        train(tmp_path, about={"dataset": "large", "dims": [0, 1]}, steps=20)
    # What the run was too old to tell is no reason to refuse it.
    outcome, _ = train(tmp_path, about={"dataset": "medium", "stride": 4}, steps=20)
    assert outcome.steps == 20


def test_a_changed_byte_is_noticed(tmp_path):
    """In a weight too, where it would make another weight."""
    train(tmp_path, steps=10)
    content = (tmp_path / "resume.pt").read_bytes()
    weights = learner_bytes(tmp_path)
    at = content.index(weights) + len(weights) // 2
    (tmp_path / "resume.pt").write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(UserError, match=r"checkpoint '.*resume.pt' is corrupt; remove it to start anew"):
        train(tmp_path, steps=20)


def learner_bytes(out: Path) -> bytes:
    """The largest weight, as it lies in the file."""
    saved = torch.load(out / "resume.pt", weights_only=True)["module"]
    return max(saved.values(), key=torch.numel).numpy().tobytes()


def test_a_run_that_is_further_than_asked_is_named(tmp_path):
    train(tmp_path, steps=30)
    with pytest.raises(UserError, match="holds a run of 30 updates, more than 20; choose another folder or ask for"):
        train(tmp_path, steps=20)
    assert train(tmp_path, steps=30)[0].steps == 30


def test_a_slow_run_is_kept_by_the_clock(tmp_path, monkeypatch):
    """Between checkpoints that are far apart, as those of a small network on a GPU are."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    kept = []
    monkeypatch.setattr(loop, "save_resume", lambda out, updater, config, step, *more: kept.append(step))
    told = []
    loop.fit(learner(), settings(steps=5, checkpoint_every=3), CPU, tmp_path, progress=False, on_checkpoint=told.append)
    assert kept == [1, 2, 3, 4, 5, 5]  # and once more at the end
    assert told == [3]


def test_a_run_that_ends_while_its_checkpoint_is_looked_at_comes_there_again(tmp_path):
    """Else what is made of a checkpoint, such as a snapshot of an agent, would be missing for good."""
    told = []

    def look(step):
        told.append(step)
        if len(told) == 2:
            raise InterruptedError

    def run():
        loop.fit(learner(), settings(steps=8, checkpoint_every=3), CPU, tmp_path, progress=False, on_checkpoint=look)

    with pytest.raises(InterruptedError):
        run()
    run()
    assert told == [3, 6, 6]


def test_curves_of_runs_that_follow_each_other_within_a_second_are_all_kept(tmp_path, monkeypatch):
    board = pytest.importorskip("compdiffuser.training.board")
    monkeypatch.setattr(board.time, "time", lambda: 1e9)
    for step in (0, 10):
        board.Board(tmp_path, step).close()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.fixture
def foreground():
    """As in a terminal: tests may run in a background that ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_keeps_what_was_learned(tmp_path, monkeypatch, foreground):
    """After the updates at hand, and with the bits of a run that was not stopped."""
    losses = []

    def loss(self, module, generator, of=LineLearner.loss):
        losses.append(1)
        if len(losses) == 7:
            signal.raise_signal(signal.SIGINT)
        return of(self, module, generator)

    monkeypatch.setattr(LineLearner, "loss", loss)
    with pytest.raises(KeyboardInterrupt, match="stopped after 7 updates, which are kept; the same command") as stopped:
        train(tmp_path / "stopped", steps=20)
    assert (stopped.value.updates, stopped.value.seconds > 0) == (7, True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert torch.load(tmp_path / "stopped" / "resume.pt", weights_only=True)["step"] == 7
    _, continued = train(tmp_path / "stopped", steps=20)
    assert len(losses) == 20
    assert same(continued, train(tmp_path / "whole", steps=20)[1])


def test_ctrl_c_twice_stops_at_once(tmp_path, monkeypatch, foreground):
    def loss(self, module, generator):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(LineLearner, "loss", loss)
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        train(tmp_path, steps=20)
    assert not (tmp_path / "resume.pt").exists()


def test_what_ignores_ctrl_c_goes_on_ignoring_it(tmp_path, monkeypatch, foreground):
    def loss(self, module, generator, of=LineLearner.loss):
        signal.raise_signal(signal.SIGINT)
        return of(self, module, generator)

    monkeypatch.setattr(LineLearner, "loss", loss)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert train(tmp_path, steps=3)[0].steps == 3


def test_a_full_disk_is_a_sentence_and_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    train(tmp_path, steps=10)
    before = (tmp_path / "resume.pt").read_bytes()

    def full(state, file):
        file.write(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(UserError, match=r"cannot write '.*resume.pt': no space is left on the device"):
        train(tmp_path, steps=20)
    assert (tmp_path / "resume.pt").read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_adams_means_lie_as_the_weights_do_whatever_run_saved_them():
    """Fused Adam would take a mean for another number's where they lie otherwise, and say nothing."""

    class Turned(Learner):
        def __init__(self):
            self.module = nn.Linear(3, 5, bias=False)
            self.module.weight = nn.Parameter(torch.arange(15.0).reshape(3, 5).T / 15)  # lies in memory by columns

        def loss(self, module, generator):
            return (module.weight * torch.arange(1.0, 16).reshape(5, 3)).sin().sum()

    def run(saved=None):
        updater = Updater(Turned(), settings(warmup=0, learning_rate=0.1), CPU)
        if saved is not None:
            updater.restore(saved)
        for step in range(2):
            updater.update(step, 0.0)
        return updater

    begun = run()
    state = copy.deepcopy(begun.state())
    for means in state["optimizer"]["state"].values():
        means |= {name: mean.contiguous() for name, mean in means.items()}
    resumed, straight = run(state), run(begun.state())
    assert torch.equal(resumed.parameters[0], straight.parameters[0])
    means = resumed.optimizer.state[resumed.parameters[0]]
    assert means["exp_avg"].stride() == means["exp_avg_sq"].stride() == resumed.parameters[0].stride() == (1, 5)
