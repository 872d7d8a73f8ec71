"""Benchmarks side by side on one machine, as a file says.

    python benchmarks/lanes.py benchmarks/one_gpu.toml [--only WORD …] [--dry]

The commands of a lane run one after the other, lanes beside each other. A lane begins when those it names in `after`
have ended, and keeps to its processor `cores` where it names some: timings want a GPU and cores of their own. A command
that fails does not end its lane; the exit code is then 1. What commands print goes to runs/lanes/LANE.log.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from reproduce import Clock, compdiffuser_command, named

from compdiffuser.types import UserError


@dataclass(frozen=True)
class Benchmark:
    file: Annotated[Path, tyro.conf.Positional]
    """A TOML file with a table for each lane."""
    only: tuple[str, ...] = ()
    """Only lanes with one of these names, or whose name contains one of these words."""
    logs: Path = Path("runs/lanes")
    dry: bool = False
    """Print the commands, and run none."""


@dataclass
class Lane:
    name: str
    commands: Sequence[str]
    after: Sequence[str] = ()
    """Lanes that must have ended before this one begins."""
    cores: Sequence[int] = ()
    """Processor cores that it keeps to; none: all."""
    threads: int = 1
    """That each process computes with, unless OMP_NUM_THREADS says otherwise."""
    ended: threading.Event = field(default_factory=threading.Event)
    failed: list[str] = field(default_factory=list)
    """Its commands that ended with an error."""

    def run(self, before: Sequence[Lane], logs: Path) -> None:
        """Wait for the lanes `before` this one, then run its commands."""
        try:
            for lane in before:
                lane.ended.wait()
            with (logs / f"{self.name}.log").open("a") as log:
                for command in self.commands:
                    self._run(command, log)
        finally:
            self.ended.set()

    def _run(self, command: str, log: Any) -> None:
        clock = Clock()
        environment = {"OMP_NUM_THREADS": str(self.threads), **os.environ}
        process = subprocess.Popen(arguments(command), stdout=log, stderr=subprocess.STDOUT, env=environment)
        if self.cores:
            os.sched_setaffinity(process.pid, self.cores)
        code = process.wait()
        if code:
            self.failed.append(command)
        print(f"{self.name}: {command}: {f'failed with exit code {code} after ' if code else ''}{clock.seconds:.0f} s")


def main() -> None:
    options = tyro.cli(Benchmark)
    try:
        lanes = read(options.file)
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    lanes = {name: lanes[name] for name in named(lanes, options.only)}
    if options.dry:
        for lane in lanes.values():
            print(*(f"{lane.name}: {command}" for command in lane.commands), sep="\n")
        return
    options.logs.mkdir(parents=True, exist_ok=True)
    running = []
    for lane in lanes.values():
        before = [lanes[name] for name in lane.after if name in lanes]
        running.append(threading.Thread(target=lane.run, args=(before, options.logs)))
        running[-1].start()
    for thread in running:
        thread.join()
    sys.exit(1 if any(lane.failed for lane in lanes.values()) else 0)


def read(file: Path) -> dict[str, Lane]:
    """The lanes of a file by name, in its order. Raises UserError where it says something else."""
    try:
        tables: Mapping[str, Any] = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{file}: {error}") from None
    known = ("commands", "after", "cores", "threads")
    lanes: dict[str, Lane] = {}
    for name, table in tables.items():
        if not isinstance(table, dict) or "commands" not in table:
            raise UserError(f"{file}: '{name}' is no lane, a table with 'commands'")
        for key in table:
            if key not in known:
                raise UserError(f"{file}: lane '{name}' has a field '{key}'; known: {', '.join(known)}")
        for other in table.get("after", ()):
            if other not in lanes:  # so that no two wait for each other
                raise UserError(f"{file}: lane '{name}' comes after '{other}', which is no lane above it")
        lanes[name] = Lane(name, **table)
    return lanes


def arguments(command: str) -> list[str]:
    """A command's words; `python` and `compdiffuser` are those that run this script."""
    first, *others = shlex.split(command)
    if first == "compdiffuser":
        return compdiffuser_command(*others)
    return [sys.executable if first == "python" else first, *others]


if __name__ == "__main__":
    main()
