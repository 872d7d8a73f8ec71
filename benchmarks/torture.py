"""What a run survives: `kill -9` at random moments, and damaged files of every kind.

    python benchmarks/torture.py --kills 200 --flips 2000

Kills: recordings, trainings and evaluations are killed at random moments and started again until they finish. Their
files must then be, bit for bit, those of a run that nobody disturbed; no process, no shared memory and no other file
may be left. Flips: see `damage.py`. Writes results/torture_kills.json and results/torture_files.json.
"""

from __future__ import annotations

import csv
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from damage import KINDS, damage_all
from figures import Figures
from reproduce import CALM, Clock, command, compdiffuser_command

from compdiffuser.artifact import CONFIG
from compdiffuser.files import read_json, sha256

PATIENCE = 5.0
"""Seconds that the workers of a killed run have to end."""
DATASET = "pointmaze-medium-stitch-v0"
SMALL = ("--device", "cpu", "--checkpoint-every", "50", "--log-every", "50")
KILLS = ("kills", "differing", "misleading", "failed", "processes left", "memory left", "files left")
FILES = ("damaged", "refused", "harmless", "another setting", "accepted", "tracebacks", "hangs", "crashes")


@dataclass(frozen=True)
class Benchmark:
    kills: int = 20
    """Over all commands together; 0: none."""
    flips: int = 200
    """Damaged files, over all kinds together; 0: none."""
    seed: int = 0
    results: Path = Path("results")
    hardware: str = "this machine"
    only: tuple[str, ...] = ()
    """Only these commands and kinds of files."""
    add: bool = False
    """Keep what earlier calls measured of other commands and kinds."""


@dataclass(frozen=True)
class Command:
    """Something that can be killed."""

    name: str
    line: Callable[[Path, Path], list[str]]
    """The command line, for a folder to write into and the folder of what was made before."""
    made: Callable[[Path], dict[str, Any]]
    """What must be the same in the end."""
    lies: Callable[[Path, dict[str, Any]], bool]
    """Whether a killed run's files pretend to be finished."""


def files(folder: Path) -> dict[str, Any]:
    """The bytes of datasets, by name."""
    return {path.name: sha256(path) for path in folder.glob("*.npz")}


def parts(folder: Path) -> dict[str, Any]:
    """The hashes of an artifact's parts, once they are checked, and the log but for its seconds."""
    listed = {name: part["sha256"] for name, part in read_json(folder / CONFIG)["parts"].items()}
    found = {name: sha256(folder / part["file"]) for name, part in read_json(folder / CONFIG)["parts"].items()}
    assert found == listed, f"{folder} is not whole"
    with open(folder / "log.csv", newline="") as file:
        log = [{name: row[name] for name in row if name != "seconds"} for row in csv.DictReader(file)]
    return {**found, "log": log}


def result(path: Path) -> dict[str, Any]:
    """An evaluation but for its times."""
    return {name: value for name, value in read_json(path).items() if name != "command"}


def evaluated(folder: Path) -> dict[str, Any]:
    return result(folder / "r.json")


def swept(folder: Path) -> dict[str, Any]:
    """The cells of a table: their agents, and their results."""
    agents = {path.parent.name: parts(path.parent) for path in folder.glob(f"runs/*/{CONFIG}")}
    return agents | {path.name: result(path) for path in folder.glob(f"results/{DATASET}-*.json")}


def another_dataset(folder: Path, expected: dict[str, Any]) -> bool:
    return any(expected[name] != found for name, found in files(folder).items())


def another_artifact(folder: Path, expected: dict[str, Any]) -> bool:
    return (folder / CONFIG).exists() and parts(folder) != expected


def finished_expert(folder: Path, expected: dict[str, Any]) -> bool:
    """The actor as it is lies beside its checkpoints; its record says whether it is trained to its end."""
    return another_artifact(folder, expected) and read_json(folder / CONFIG)["record"]["complete"]


def finished_result(folder: Path, expected: dict[str, Any]) -> bool:
    path = folder / "r.json"
    return path.exists() and read_json(path)["complete"] and result(path) != expected


def finished_sweep(folder: Path, expected: dict[str, Any]) -> bool:
    found = swept(folder).items()
    return any(expected[name] != made for name, made in found if name.endswith(".json"))


def data(out: Path, before: Path) -> list[str]:
    asked = ["--episodes", "120", "--workers", "2", "--out", str(out / "d.npz")]
    return compdiffuser_command("data", "make", DATASET, *asked)


def dataset(before: Path) -> str:
    return str(before / "data" / "d.npz")


def planner(out: Path, before: Path) -> list[str]:
    sizes = ["--width", "32", "--depth", "1", "--batch", "16", "--horizon", "16", "--overlap", "4"]
    return compdiffuser_command("train", dataset(before), "--steps", "300", *sizes, *SMALL, "--out", str(out))


def baseline(out: Path, before: Path) -> list[str]:
    sizes = ["--steps", "1000", "--set", "hidden=[32,32]", "batch=32"]
    return compdiffuser_command("train", dataset(before), "--method", "gcbc", *sizes, *SMALL, "--out", str(out))


def controller(out: Path, before: Path) -> list[str]:
    sizes = ["--steps", "250", "--batch", "8"]
    return compdiffuser_command("train-controller", dataset(before), *sizes, *SMALL, "--out", str(out))


def expert(out: Path, before: Path) -> list[str]:
    sizes = ["--steps", "480", "--environments", "4", "--processes", "2", "--replay", "240"]
    sizes += ["--random-steps", "80", "--batch", "16", "--updates-per-step", "0.5"]
    often = ["--log-every", "80", "--checkpoint-every", "120", "--device", "cpu"]
    return compdiffuser_command("data", "expert", "ant", *sizes, *often, "--out", str(out))


def evaluation(out: Path, before: Path) -> list[str]:
    asked = ["--tasks", "1,2", "--episodes", "2", "--seeds", "4", "--workers", "1", "--device", "cpu"]
    trained = str(before / "baseline")
    return compdiffuser_command("eval", trained, "--method", "gcbc", *asked, "--out", str(out / "r.json"))


def sweep(out: Path, before: Path) -> list[str]:
    """Cells of a table, trained and evaluated side by side."""
    script = str(Path(__file__).with_name("train_baselines.py"))
    cells = ["--datasets", DATASET, "--methods", "gcbc", "gcivl", "--jobs", "2", "--snapshots", "1"]
    sizes = ["--data-episodes", "32", "--updates", "100", "--seeds", "1", "--episodes", "1", "--batch", "32"]
    places = ["--hidden", "16", "--device", "cpu", "--runs", str(out / "runs"), "--results", str(out / "results")]
    return [sys.executable, script, *cells, *sizes, *places]


COMMANDS = [
    Command("data", data, files, another_dataset),
    Command("planner", planner, parts, another_artifact),
    Command("baseline", baseline, parts, another_artifact),
    Command("controller", controller, parts, another_artifact),
    Command("expert", expert, parts, finished_expert),
    Command("evaluation", evaluation, evaluated, finished_result),
    Command("sweep", sweep, swept, finished_sweep),
]


class Torture:
    """A command that is killed again and again."""

    def __init__(self, command: Command, room: Path, before: Path, rng: random.Random) -> None:
        self.command, self.room, self.before, self.rng = command, room, before, rng
        self.counts: Counter[str] = Counter(dict.fromkeys(KILLS, 0))
        clock = Clock()
        self._finish(self._start(before / command.name))
        self.seconds = clock.seconds
        self.expected = command.made(before / command.name)
        self.names = set(named(before / command.name))

    def kill(self, times: int) -> None:
        """Kill it so often, comparing whenever it came to its end."""
        while self.counts["kills"] < times:
            process = self._start(self.room)
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.rng.uniform(0, self.seconds))
            if process.poll() is None:
                self._kill(process)
            else:
                self._compare(process)
        self._compare(self._start(self.room))

    def _start(self, out: Path) -> subprocess.Popen[str]:
        out.mkdir(parents=True, exist_ok=True)
        environment = {**CALM, **os.environ, "COMPDIFFUSER_HOME": str(out / "home")}
        return subprocess.Popen(
            self.command.line(out, self.before), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env=environment,
        )  # fmt: skip

    def _finish(self, process: subprocess.Popen[str]) -> bool:
        """Whether it ended well; says why not."""
        _, said = process.communicate()
        if process.returncode:
            print(f"{self.command.name}: exit code {process.returncode}: {said.strip()[-500:]}", flush=True)
        return process.returncode == 0

    def _kill(self, process: subprocess.Popen[str]) -> None:
        family = session(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
        end = time.monotonic() + PATIENCE
        while (session(process.pid) or memory(family)) and time.monotonic() < end:
            time.sleep(0.05)
        left = session(process.pid)
        self.counts["kills"] += 1
        self.counts["processes left"] += len(left)
        self.counts["memory left"] += len(memory(family))
        self.counts["misleading"] += bool(self.command.lies(self.room, self.expected))
        for number in left:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def _compare(self, process: subprocess.Popen[str]) -> None:
        if not self._finish(process):
            self.counts["failed"] += 1
        elif self.command.made(self.room) != self.expected:
            self.counts["differing"] += 1
        self.counts["files left"] += len(set(named(self.room)) - self.names)
        shutil.rmtree(self.room)


def named(folder: Path) -> Iterator[str]:
    """Files below a folder, but for TensorBoard's; parts may be named by their hashes."""
    for path in folder.rglob("*"):
        if path.is_file() and "tensorboard" not in path.parts:
            yield re.sub(r"-[0-9a-f]{12}\.safetensors", ".safetensors", str(path.relative_to(folder)))


def session(number: int) -> list[int]:
    """Processes of a session that are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, leader = path.read_text().rsplit(")", 1)[1].split()[:4]
            if int(leader) == number and state != "Z":
                found.append(int(path.parent.name))
    return found


def memory(numbers: list[int]) -> list[str]:
    """Shared memory that is named by processes."""
    names = [path.name for path in Path("/dev/shm").glob("*")]
    return [name for name in names if {*re.split(r"\D+", name)} & {str(number) for number in numbers}]


def note(figures: Figures, row: str, counts: Counter[str], columns: tuple[str, ...]) -> None:
    for column in columns:
        figures.note(f"{row}, {column}", counts[column], "", row=row, column=column)


def torture(options: Benchmark, room: Path, figures: Figures) -> None:
    """Kill every command that was asked for; each is run undisturbed before, and later ones use what it made."""
    chosen = [each.name for each in COMMANDS if not options.only or each.name in options.only]
    for each in COMMANDS:
        rng = random.Random(f"{options.seed} {each.name}")
        tortured = Torture(each, room / "tortured", room / "before", rng)
        if each.name in chosen:
            tortured.kill(len(range(chosen.index(each.name), options.kills, len(chosen))))
            note(figures, each.name, tortured.counts, KILLS)


def main(options: Benchmark) -> None:
    told = command("python benchmarks/torture.py", options, ("kills", "flips", "seed"))
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        if options.kills:
            kills = Figures(options.results / "torture_kills.json", told, options.hardware, "kills", options.add)
            torture(options, room, kills)
        figures = Figures(options.results / "torture_files.json", told, options.hardware, "files", options.add)
        kinds = [kind for kind in KINDS if not options.only or kind in options.only] if options.flips else []
        for kind, counts in damage_all(kinds, options.flips, room, options.seed):
            note(figures, kind, counts, FILES)


if __name__ == "__main__":
    main(tyro.cli(Benchmark))
