"""What runs out is told in one sentence, and nothing is lost by it; `benchmarks/exhaustion.py` tries every command."""

import errno
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from lives import die

from compdiffuser import parallel, runs
from compdiffuser.cli import main
from compdiffuser.experts.layout import Layout
from compdiffuser.experts.replay import Replay
from compdiffuser.shortages import WorkerError, shortage
from compdiffuser.types import UserError


@contextmanager
def small_files():
    """No file may grow: a disk that is full, for who cannot mount one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "", "a.npz"), "'a.npz': no space is left on the device"),
        (OSError(errno.EMFILE, ""), "too many files are open"),
        (OSError("libtorch.so: failed to map segment from shared object"), "memory ran out"),
        (MemoryError(), "memory ran out"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "memory ran out"),
        (torch.OutOfMemoryError("CUDA out of memory"), "memory ran out"),
        (RuntimeError("can't start new thread"), "no further process or thread"),
        (ValueError("something else"), None),
        (RuntimeError("shapes do not fit"), None),
        (FileNotFoundError(errno.ENOENT, "", "a.npz"), None),
    ],
)
def test_errors_of_many_libraries_are_understood(error, words):
    told = shortage(error)
    assert told is None if words is None else words in str(told)


def test_what_caused_an_error_counts():
    error = ValueError("the file is not an image")
    error.__cause__ = OSError(errno.EMFILE, "")
    assert "too many files" in str(shortage(error))


@pytest.mark.parametrize(("error", "code"), [(MemoryError(), 2), (WorkerError("a worker process ended"), 1)])
def test_a_command_ends_in_one_sentence(error, code, monkeypatch, capsys):
    from compdiffuser.cli import Report

    def run(self):
        raise error

    monkeypatch.setattr(Report, "run", run)
    assert main(["report"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("compdiffuser: ")


def test_pytorch_is_not_loaded_into_too_little_memory():
    """Its libraries would end the process, or leave it without memory for a sentence."""
    script = """
import re, resource, sys
from importlib.util import find_spec
from pathlib import Path
from compdiffuser.shortages import look_before_pytorch, shortage
size = sum(path.stat().st_size for path in (Path(find_spec("torch").origin).parent / "lib").glob("*.so*"))
now = 1024 * int(re.findall(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[0])
resource.setrlimit(resource.RLIMIT_AS, (now + size, now + size))
look_before_pytorch()
try:
    import torch
except OSError as error:
    print(shortage(error))
print("libtorch" in Path("/proc/self/maps").read_text(), "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("memory ran out")
    assert second == "False False"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_standard_output_is_told(tmp_path):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "compdiffuser", "data", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "compdiffuser: no space is left on the device\n")


def test_curves_that_cannot_be_written_are_told(tmp_path):
    board = pytest.importorskip("compdiffuser.training.board").Board(tmp_path, 0)
    board.add(1, {"loss": 0.5})
    with small_files(), pytest.raises(UserError, match=r"cannot write .*events.* larger than is allowed"):
        board.add(2, {"loss": 0.4})
    board.close()


def test_transitions_have_their_place_before_anything_is_learned(tmp_path):
    """Else, writing into the mapped file would end the process without a word."""
    with small_files(), pytest.raises(UserError, match=r"cannot write .*replay.bin"):
        Replay(tmp_path / "replay.bin", 100, Layout(view=3), torch.device("cpu"))
    assert not list(tmp_path.iterdir())
    Replay(tmp_path / "replay.bin", 100, Layout(view=3), torch.device("cpu"))
    assert os.stat(tmp_path / "replay.bin").st_blocks * 512 >= 100 * 3 * 4


def test_a_checkpoint_that_does_not_fit_into_memory_is_not_called_corrupt(tmp_path, monkeypatch):
    torch.save({"step": 1}, tmp_path / "resume.pt")

    def load(*_, **__):
        raise MemoryError

    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(MemoryError):
        runs.read_checkpoint(tmp_path / "resume.pt")


def test_a_worker_that_was_killed_is_told():
    with pytest.raises(WorkerError, match="a worker process ended; if memory ran out, use fewer workers"):
        parallel.run(die, [1, 2], workers=2)


@pytest.mark.slow
def test_a_recording_that_found_no_room_is_made_by_the_same_command(tmp_path):
    out = tmp_path / "d.npz"
    command = [sys.executable, "-m", "compdiffuser", "data", "make", "pointmaze-medium-stitch-v0"]
    command += ["--episodes", "2", "--workers", "1", "--out", str(out)]

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = subprocess.run(command, preexec_fn=no_room, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("compdiffuser: ")
    assert done.stderr.count("\n") == 1
    assert not Path(out).exists()
    subprocess.run(command, capture_output=True, check=True)
    assert out.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"d.npz", "d.json", "d-val.npz", "d-val.json"}
