"""What happens when something runs out: space on a disk, open files, memory, standard output.

    python benchmarks/exhaustion.py --times 3 --hardware "two CPU cores"

Every command is run undisturbed first. Then it is run so often with too little of one thing, at a random amount between
nothing and what it took, and must end in one sentence: no traceback, no crash, no hang. Some amounts are enough after
all. It is then run again in the same folder with all it needs, and must make, bit for bit, what it made undisturbed.
Disks are small file systems in memory, which only root can mount. Writes results/exhaustion.json.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import tyro
from figures import Figures
from reproduce import CALM, command, compdiffuser_command
from torture import COMMANDS, Command, note

from compdiffuser.planning.plan import Plan

LIMIT = 300
"""Seconds after which a command hangs."""
COLUMNS = ("tried", "one sentence", "enough", "no sentence", "crashes", "hangs", "lost")
MODEL = "robotics-pointmaze-umaze-v0"
ENOUGH = 2**28
"""Bytes of a disk on which every command has enough."""
PAGE = resource.getpagesize()
"""Bytes of the smallest file system."""
STARTS, FEW = 2**28, 16
"""Bytes of memory and open files without which neither Python nor NumPy start."""


@dataclass(frozen=True)
class Benchmark:
    times: int = 3
    """Amounts that are tried, for each command and each thing that runs out."""
    seed: int = 0
    results: Path = Path("results")
    hardware: str = "this machine"
    commands: tuple[str, ...] = ()
    """Only these commands."""
    resources: tuple[str, ...] = ()
    """Only these things that run out."""
    add: bool = False
    """Keep what earlier calls measured of other things."""


def plan(out: Path, before: Path) -> list[str]:
    places = ["--start=-1,1", "--goal=-1,-1", "--candidates", "2", "--chunks", "2", "--steps", "2", "--device", "cpu"]
    return compdiffuser_command("plan", MODEL, *places, "--save", str(out / "p.npz"), "--png", str(out / "p.png"))


def planned(folder: Path) -> dict[str, Any]:
    found = Plan.load(folder / "p.npz")
    return {"states": found.states.tobytes(), "scores": found.scores.tobytes()}


def report(out: Path, before: Path) -> list[str]:
    """A page whose tables are not written yet, and the project's results."""
    root = Path(__file__).parents[1]
    if not (out / "results").exists():
        shutil.copytree(root / "results", out / "results")
        (out / "README.md").write_text("<!-- table: planner-training -->\n<!-- /table -->\n")
    return compdiffuser_command("report", "--root", str(out))


def reported(folder: Path) -> dict[str, Any]:
    return {"page": (folder / "README.md").read_text()}


def serve(out: Path, before: Path) -> list[str]:
    """A server; it is told to stop once it is up."""
    return compdiffuser_command("serve", "--port", "0", "--device", "cpu", "--models", MODEL)


OTHERS = [
    Command("plan", plan, planned, lambda folder, expected: False),
    Command("report", report, reported, lambda folder, expected: False),
    Command("serve", serve, lambda folder: {}, lambda folder, expected: False),
]


@dataclass
class Room:
    """Where a command runs: its folder, its surroundings, and what it may take."""

    out: Path
    environment: dict[str, str] = field(default_factory=dict)
    limits: dict[int, int] = field(default_factory=dict)
    stdout: Any = subprocess.DEVNULL
    restrict: Callable[[], None] = lambda: None
    """Makes it scarce, once what the command reads lies in its folder."""
    relieve: Callable[[], None] = lambda: None
    """Makes enough of it available again."""


@dataclass
class Took:
    """The most that a command took undisturbed: bytes on disk, bytes of memory, open files."""

    disk: int = 0
    memory: int = 0
    files: int = 0

    def look(self, process: int) -> None:
        """At a process that runs."""
        with suppress(OSError, IndexError):
            peak = re.findall(r"VmPeak:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]
            self.memory = max(self.memory, 1024 * int(peak))
            self.files = max(self.files, len(os.listdir(f"/proc/{process}/fd")))


Scarce = Callable[[Path, Took, random.Random], AbstractContextManager[Room]]


@contextmanager
def full_disk(folder: Path, took: Took, rng: random.Random) -> Iterator[Room]:
    left = rng.randrange(0, took.disk + 1)

    def resize(size: int) -> None:
        run("mount", "-o", f"remount,size={size}", str(folder))

    def used() -> int:
        found = os.statvfs(folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    with mounted(folder, ENOUGH):
        yield Room(folder, restrict=lambda: resize(max(used() + left, PAGE)), relieve=lambda: resize(ENOUGH))


@contextmanager
def full_temporary(folder: Path, took: Took, rng: random.Random) -> Iterator[Room]:
    elsewhere = folder.with_name("temporary")
    with mounted(elsewhere, PAGE):
        yield Room(folder, {"TMPDIR": str(elsewhere)})


@contextmanager
def read_only(folder: Path, took: Took, rng: random.Random) -> Iterator[Room]:
    with mounted(folder, ENOUGH):
        how = ("mount", "-o")
        yield Room(
            folder, restrict=lambda: run(*how, "remount,ro", str(folder)),
            relieve=lambda: run(*how, "remount,rw", str(folder)),
        )  # fmt: skip


@contextmanager
def few_files(folder: Path, took: Took, rng: random.Random) -> Iterator[Room]:
    yield Room(folder, limits={resource.RLIMIT_NOFILE: rng.randint(FEW, max(took.files, FEW))})


@contextmanager
def little_memory(folder: Path, took: Took, rng: random.Random) -> Iterator[Room]:
    yield Room(folder, limits={resource.RLIMIT_AS: rng.randint(STARTS, max(took.memory, STARTS))})


@contextmanager
def full_output(folder: Path, took: Took, rng: random.Random) -> Iterator[Room]:
    with open("/dev/full", "w") as full:
        yield Room(folder, stdout=full)


RESOURCES: dict[str, Scarce] = {
    "full disk": full_disk,
    "full temporary folder": full_temporary,
    "read-only disk": read_only,
    "few open files": few_files,
    "little memory": little_memory,
    "full standard output": full_output,
}
MOUNTED = ("full disk", "full temporary folder", "read-only disk")


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    """A file system of so many bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield
    finally:
        run("umount", "-l", str(folder))


def run(*line: str) -> None:
    subprocess.run(line, check=True, capture_output=True)


def can_mount(room: Path) -> bool:
    try:
        with mounted(room / "try", PAGE):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


class Scarcity:
    """A command that is run with too little of something."""

    def __init__(self, command: Command, room: Path, before: Path) -> None:
        self.command, self.room, self.before, self.took = command, room / "scarce", before, Took()
        made = before / command.name
        outcome, said = self.attempt(Room(made))
        assert outcome == "enough", f"{command.name} undisturbed: {outcome}: {said}"
        self.expected = command.made(made)
        written = (path for path in made.rglob("*") if path.is_file() and path.parent.name != "results")
        self.took.disk = sum(path.stat().st_size for path in written)

    def lack(self, scarce: Scarce, rng: random.Random) -> list[str]:
        """Run it with too little and then with enough: what came of it."""
        shutil.rmtree(self.room, ignore_errors=True)
        with scarce(self.room, self.took, rng) as place:
            outcome, said = self.attempt(place)
            place.relieve()
            ended, then = self.attempt(Room(self.room))
            lost = ended != "enough" or self.command.made(self.room) != self.expected
        told = f"{self.command.name}, {place.limits or place.environment or place.out}: {outcome}: {said[-1500:]}"
        print(told if outcome != "enough" else told.splitlines()[0][:200], flush=True)
        if lost:
            print(f"{self.command.name}: lost: {ended}: {then[-1500:]}", flush=True)
        return ["tried", outcome, *(["lost"] if lost else [])]

    def attempt(self, place: Room) -> tuple[str, str]:
        """What a run came to, and what it said."""

        def limit() -> None:
            for kind, most in place.limits.items():
                resource.setrlimit(kind, (most, most))

        place.out.mkdir(parents=True, exist_ok=True)
        line = self.command.line(place.out, self.before)
        place.restrict()
        home = {"COMPDIFFUSER_HOME": str(self.before / "home")}
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                line, stdout=place.stdout, stderr=said, preexec_fn=limit, start_new_session=True,
                env={**CALM, **os.environ, **home, **place.environment},
            )  # fmt: skip
            hangs = self._wait(process, said)
            said.seek(0)
            words = said.read().strip()
        return ("hangs" if hangs else judged(process.returncode, words)), words

    def _wait(self, process: subprocess.Popen[bytes], said: IO[str]) -> bool:
        """Wait for the end; whether it had to be brought about. A server is told to stop when it is up."""
        begun, told = time.monotonic(), False
        while process.poll() is None and time.monotonic() - begun < LIMIT:
            self.took.look(process.pid)
            if self.command.name == "serve" and not told and b"http://" in os.pread(said.fileno(), 4096, 0):
                process.terminate()
                told = True
            time.sleep(0.05)
        hangs = process.poll() is None
        for number in [process.pid] if hangs else []:
            os.killpg(number, signal.SIGKILL)
        process.wait()
        if told and process.returncode == -signal.SIGTERM:
            process.returncode = 0  # a server that was told to stop ends so
        return hangs


def judged(code: int, said: str) -> str:
    """What an exit code and the words before it mean."""
    lines = said.splitlines()
    if code in (0, 3):
        return "enough" if "Traceback" not in said else "no sentence"
    if code not in (1, 2):
        return "crashes"
    sentence = bool(lines) and lines[-1].startswith("compdiffuser: ")
    return (
        "one sentence" if sentence and not any(word in said for word in ("Traceback", "Exception")) else "no sentence"
    )


def main(options: Benchmark) -> None:
    told = command("python benchmarks/exhaustion.py", options, ("times", "seed"))
    figures = Figures(options.results / "exhaustion.json", told, options.hardware, "exhaustion", options.add)
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        chosen = [name for name in RESOURCES if not options.resources or name in options.resources]
        if not can_mount(room):
            print(f"left out, since only root can mount file systems: {', '.join(MOUNTED)}", flush=True)
            chosen = [name for name in chosen if name not in MOUNTED]
        counts = {name: Counter[str]() for name in chosen}
        for each in [*COMMANDS[:-1], *OTHERS]:
            scarcity = Scarcity(each, room, room / "before")
            if options.commands and each.name not in options.commands:
                continue
            for name in chosen:
                rng = random.Random(f"{options.seed} {each.name} {name}")
                for _ in range(options.times):
                    counts[name].update(scarcity.lack(RESOURCES[name], rng))
                note(figures, name, counts[name], COLUMNS)


if __name__ == "__main__":
    main(tyro.cli(Benchmark))
