"""`compdiffuser sweep`: train and evaluate every run that a TOML file asks for, and tell all of them in one table."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from compdiffuser.types import UserError, counted

if TYPE_CHECKING:
    from compdiffuser.cli.sweeping import Run

MISSING = "–"


@dataclass(frozen=True)
class Sweep:
    """Train and evaluate over presets, seeds and settings, and compare them in one table.

    The file has tables [train], settings of all runs; [grid], lists of values of which every combination is a run;
    [[runs]], settings that belong together; and [eval]. Fields are the options of train and eval, as in
    learning_rate = 5e-4. Killed and started again, finished runs stay and others continue from their checkpoints.
    """

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.toml")]
    """What to run; examples/sweep.toml shows one."""
    out: Path | None = None
    """Folder of the sweep, with a folder for each run, sweep.json and table.md; by default runs/FILE."""
    engine: Literal["local", "ray"] = "local"
    """`local` processes, or a `ray` cluster: the one that RAY_ADDRESS names, else one on this machine. All its nodes
    must see the folder of the sweep and the data."""
    workers: int | None = None
    """Runs side by side; by default 1, with Ray as many as the cluster has room for."""
    threads: int = 1
    """CPU threads of each run. Results are the same, bit for bit, where this number is."""
    gpus: float = 0.0
    """With --engine ray: GPUs that each run takes, such as 1 or 0.5. Without it, a run on Ray sees none."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print one JSON object instead of the table."""

    def run(self) -> int:
        from compdiffuser import parallel
        from compdiffuser.cli.sweeping import described, perform, read_sweep
        from compdiffuser.files import locked
        from compdiffuser.runs import RUNS

        if self.threads < 1:
            raise UserError(f"a run has at least 1 thread, not {self.threads}")
        if self.workers is not None and self.workers < 1:
            raise UserError(f"the number of workers is at least 1, not {self.workers}")
        if self.engine != "ray" and self.gpus:
            raise UserError(f"a share of {self.gpus:g} GPUs is for --engine ray; runs here share the machine's")
        folder = self.out or RUNS / self.file.stem
        runs = read_sweep(self.file, folder.absolute(), self.engine, self.threads)
        workers = self.workers if self.engine == "ray" else self.workers or 1
        folder.mkdir(parents=True, exist_ok=True)
        failed: dict[Path, str] = {}
        with locked(folder, "sweeps into"):
            left = [run for run in runs if run.result is None]
            self._say(f"{counted(len(runs), 'run')}, {len(runs) - len(left)} of them finished before")
            self._keep(folder, runs, failed)
            made = parallel.stream(perform, left, workers, self.engine, cpus=self.threads, gpus=self.gpus)
            for number, sentence in made:
                run = left[number]
                if sentence is not None:
                    failed[run.folder] = sentence
                self._keep(folder, runs, failed)
                self._say(f"{described(run.varied) or run.train.dataset}: {sentence or 'done'}")
        self._tell(folder, runs, failed)
        return 2 if failed else 0

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def _keep(self, folder: Path, runs: Sequence[Run], failed: Mapping[Path, str]) -> None:
        """Write the table as it is by now."""
        from compdiffuser.files import replacing, write_json
        from compdiffuser.reporting.grid import markdown

        rows = [row(run, failed.get(run.folder)) for run in runs]
        write_json(folder / "sweep.json", self._summary(rows))
        with replacing(folder / "table.md") as temporary:
            temporary.write_text(markdown(*cells(rows)) + "\n", encoding="utf-8")

    def _summary(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        complete = all(each["state"] == "done" for each in rows)
        return {"complete": complete, "file": str(self.file), "runs": list(rows)}

    def _tell(self, folder: Path, runs: Sequence[Run], failed: Mapping[Path, str]) -> None:
        from rich.console import Console
        from rich.table import Table

        rows = [row(run, failed.get(run.folder)) for run in runs]
        if self.json:
            print(json.dumps(self._summary(rows), ensure_ascii=False), flush=True)
            return
        head, body = cells(rows)
        table = Table(*head)
        for line in body:
            table.add_row(*line)
        console = Console()
        console.print(table)
        console.print(f"written {folder / 'table.md'} and {folder / 'sweep.json'}")


def row(run: Run, failure: str | None = None) -> dict[str, Any]:
    """What the table says of a run."""
    result = run.result
    known: dict[str, Any] = {"state": "done" if result else failure or "not finished"}
    if result:
        training, measured = result["training"], result["evaluation"]
        known |= {"updates": training["steps"], "loss": training["loss"], "seconds": training["seconds"]}
        if measured is not None:
            known |= {name: measured[name] for name in ("success", "std", "episodes")}
    settings = {"dataset": run.train.dataset, "method": run.train.method, **run.varied}
    return {"settings": settings, "varied": list(run.varied), "folder": run.folder.name, **known}


def cells(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Head and lines of the table: the settings that vary, then what each run came to."""
    from compdiffuser.cli.sweeping import word

    names = list(dict.fromkeys(name for each in rows for name in each["varied"])) or ["dataset"]
    evaluated, undone = any("success" in each for each in rows), any(each["state"] != "done" for each in rows)
    measures = ["updates", "training, s", "loss", *(["success %", "episodes"] if evaluated else [])]
    body = []
    for each in rows:
        line = [word(each["settings"].get(name, MISSING)) for name in names]
        measured = [f"{each['updates']:,}", f"{each['seconds']:.0f}", f"{each['loss']:.4f}"] if "loss" in each else []
        measured += [f"{each['success']:.1f} ± {each['std']:.1f}", str(each["episodes"])] if "success" in each else []
        line += measured + [MISSING] * (len(measures) - len(measured))
        body.append([*line, each["state"]] if undone else line)
    return [*names, *measures, *(["state"] if undone else [])], body
