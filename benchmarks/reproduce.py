"""What all benchmarks share: running `compdiffuser`, timing, what a training took, and the command behind a figure."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compdiffuser import artifact
from compdiffuser.artifact import CONFIG
from compdiffuser.files import read_json, replacing, write_json
from compdiffuser.packing import smaller

CALM = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "4"}
"""For processes that run side by side."""


CHILD = """import sys
from compdiffuser.runs import end_with
end_with(int(sys.argv.pop(1)))
from compdiffuser.cli import main
sys.exit(main())"""


class Failed(RuntimeError):
    """A command that ended with an error."""

    def __init__(self, arguments: Sequence[str], said: str) -> None:
        self.said = said.strip()
        """What it wrote to its standard error."""
        super().__init__(f"compdiffuser {' '.join(arguments)}: {' '.join(self.said.splitlines()[-1:])}")


class Clock:
    """Measures time, from when it is made. Given a GPU, it waits for its work to be done."""

    def __init__(self, device: Any = None) -> None:
        self.device = device
        self._began = self._now()

    @property
    def seconds(self) -> float:
        return self._now() - self._began

    def _now(self) -> float:
        if self.device is not None and self.device.type == "cuda":
            import torch

            torch.cuda.synchronize(self.device)
        return time.perf_counter()


def compdiffuser_command(*arguments: str) -> list[str]:
    """`compdiffuser …` as this Python runs it, in a process that ends with this one."""
    return [sys.executable, "-c", CHILD, str(os.getpid()), *arguments]


def compdiffuser(*arguments: str, **environment: str) -> str:
    """Run `compdiffuser …` in a process of its own; its standard output. `environment` sets variables that are not set.

    Raises Failed where its exit code is not 0.
    """
    run = subprocess.run(
        compdiffuser_command(*arguments), capture_output=True, text=True, env={**environment, **os.environ}
    )  # fmt: skip
    if run.returncode:
        raise Failed(arguments, run.stderr)
    return run.stdout


def measured(*arguments: str) -> tuple[str, dict[str, float]]:
    """Run `compdiffuser …` as above: its standard output, its seconds, and its peak memory in bytes.

    Memory is that of the largest of its processes, the one that plans; a GPU's is not in it.
    """
    clock = Clock()
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
        process = subprocess.Popen(compdiffuser_command(*arguments), stdout=said, stderr=complained)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # it has been waited for
        said.seek(0)
        complained.seek(0)
        if process.returncode:
            raise Failed(arguments, complained.read())
        unit = 1 if sys.platform == "darwin" else 1024
        return said.read(), {"seconds": round(clock.seconds, 1), "peak_memory": usage.ru_maxrss * unit}


def resident(process: int) -> float:
    """MiB of memory that a process holds."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def share_of_cores(jobs: int) -> int:
    """Worker processes for each of so many jobs side by side."""
    return max((os.cpu_count() or 1) // jobs, 1)


def options_of(**given: Any) -> list[str]:
    """Command-line options; those that are None are left out."""
    named = ((f"--{name.replace('_', '-')}", value) for name, value in given.items() if value is not None)
    return [word for name, value in named for word in (name, str(value))]


def training_of(run: Path) -> dict[str, Any]:
    """Time, size and hardware of the training that left an artifact in `run`."""
    record = read_json(run / CONFIG)["record"]
    about = {"parameters": record["parameters"], "batch": record["training"]["batch"], "device": record["device"]}
    return {**record["outcome"], **about}


def named(cells: Iterable[str], words: Sequence[str]) -> list[str]:
    """The cells that words stand for: a cell's whole name for this one alone, others for all that contain them.

    Without words, all.
    """
    cells = list(cells)

    def meant(cell: str) -> bool:
        return any(word == cell if word in cells else word in cell for word in words)

    return [cell for cell in cells if not words or meant(cell)]


@contextmanager
def updating(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON object in a file, or an empty one; what the block leaves in it is written back.

    Processes take turns: the folder is locked meanwhile.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        content = read_json(path) if path.exists() else {}
        yield content
        write_json(path, content)
    finally:
        os.close(folder)


def ship(run: Path, target: Path, bits: int = 16) -> None:
    """Copy an artifact, which takes the place of an older one at once, and its log, without what a run resumes from."""
    found = artifact.read(run)
    artifact.save(target, smaller(found) if bits == 8 else found)
    with replacing(target / "log.csv") as temporary:
        shutil.copy(run / "log.csv", temporary)


def command(start: str, options: Any, names: Sequence[str], **more: Any) -> str:
    """`start`, those of the named options that differ from a script's defaults, and `more`."""
    changed = {name: value for name in names if (value := getattr(options, name)) != getattr(type(options), name)}
    words = [f"--{name.replace('_', '-')} {_word(value)}" for name, value in (changed | more).items()]
    return " ".join([start, *words])


def _word(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
