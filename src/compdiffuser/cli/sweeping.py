"""The runs of a sweep: read from a TOML file, checked before any work, and each done as a job of its own.

A run's folder is named by what it trains, so a sweep that is started again, or a file that changed, finds what is done.
`result.json` in it is the run's commit point: it is written when training and evaluation are over.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from compdiffuser.checks import brief, typed, unknown
from compdiffuser.cli.evaluate import Eval
from compdiffuser.cli.train import Train
from compdiffuser.cli.worlds import load_worlds, loaded_worlds
from compdiffuser.files import check_writable, make_folder, read_json, write_json
from compdiffuser.shortages import WorkerError, shortage
from compdiffuser.types import UserError

TABLES = ("train", "grid", "runs", "eval")
TRAIN_FIELDS = tuple(field.name for field in fields(Train) if field.name not in ("out", "json"))
EVAL_FIELDS = tuple(
    field.name
    for field in fields(Eval)
    if field.name not in ("name", "method", "engine", "gpus", "out", "json", "plots", "png", "video", "video_task")
)
ELSEWHERE = ("device", "compile", "checkpoint_every", "log_every")
"""Settings that do not make a run another one: where it runs, and what it says on the way."""
PATHS = ("controller", "plans")
RESULT, OUTPUT = "result.json", "output.txt"


@dataclass(frozen=True)
class Run:
    """One training and its evaluation."""

    train: Train
    """Its `out` is the run's folder."""
    evaluation: Eval | None
    """None where the file has no table `eval`."""
    varied: Mapping[str, Any]
    """What distinguishes it: the settings that the sweep varies."""
    command: str
    """The sweep's."""
    worlds: tuple[str, ...] = ()
    """Files that register worlds."""
    threads: int = 1

    @property
    def folder(self) -> Path:
        assert self.train.out is not None
        return self.train.out

    @property
    def result(self) -> dict[str, Any] | None:
        """What the run came to; None where it is not finished, or was evaluated in another way."""
        path = self.folder / RESULT
        found = read_json(path) if path.exists() else None
        return found if isinstance(found, dict) and found.get("asked") == self._asked else None

    @property
    def _asked(self) -> dict[str, Any]:
        return {"train": given(self.train), "eval": given(self.evaluation) if self.evaluation else None}

    def perform(self) -> str | None:
        """Train where that is not done, evaluate, and leave `result.json`; a sentence where it failed.

        What the commands print goes to `output.txt`.
        """
        import torch

        torch.set_num_threads(self.threads)
        try:
            for file in self.worlds:
                load_worlds(file)
            with _printing_to(self.folder / OUTPUT):
                self._perform()
        except Exception as error:
            short = str(error) if isinstance(error, UserError | WorkerError) else shortage(error)
            if short is None:
                raise
            return short
        return None

    def _perform(self) -> None:
        if self._trained() is None:
            self.train.run()
        measured = None if self.evaluation is None else {**self.evaluation.measured(), "command": self.command}
        result = {"asked": self._asked, "training": self._trained(), "evaluation": measured}
        write_json(self.folder / RESULT, result)

    def _trained(self) -> dict[str, Any] | None:
        """Updates, seconds and loss of a finished training; one that was cut off has no outcome."""
        from compdiffuser.artifact import CONFIG

        path = self.folder / CONFIG
        record = read_json(path).get("record", {}) if path.exists() else {}
        outcome: dict[str, Any] | None = record.get("outcome")
        return outcome


def perform(run: Run) -> str | None:
    """The job of a run."""
    return run.perform()


def read_sweep(path: Path, folder: Path, engine: str = "local", threads: int = 1) -> list[Run]:
    """The runs that a file asks for, each in its folder below `folder`.

    Raises UserError where one could not be trained or evaluated, where two are the same, and where there is none.
    """
    from compdiffuser.evaluation.results import provenance

    tables = _tables(path)
    runs: dict[Path, Run] = {}
    checksums: dict[str, str | None] = {}
    command = provenance()["command"]
    for settings in _combinations(path, tables):
        varied = {name: value for name, value in settings.items() if name not in tables.get("train", {})}
        train = _options(Train, settings, TRAIN_FIELDS, "a training", dataset=settings.get("dataset"))
        preset = _checked(train, engine)
        if train.dataset not in checksums:
            checksums[train.dataset] = _checksum(train.dataset)
        train = replace(train, out=folder / _name(train, varied, checksums[train.dataset]))
        evaluation = None
        if "eval" in tables:
            place = {"name": str(train.out), "method": train.method}
            evaluation = _options(Eval, {"workers": 0} | tables["eval"], EVAL_FIELDS, "an evaluation", **place)
            evaluation.check(preset)
        run = Run(train, evaluation, varied, command, loaded_worlds(), threads)
        if run.folder in runs:
            raise UserError(f"'{path}' asks for a run twice: {described(run.varied) or train.dataset}")
        runs[run.folder] = run
    check_writable(folder / RESULT)
    return list(runs.values())


def described(varied: Mapping[str, Any]) -> str:
    """The settings of a run, in a line."""
    return ", ".join(f"{name} {word(value)}" for name, value in varied.items())


def _tables(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises UserError where it is no TOML, or holds something else."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no file '{path}'") from None
    except OSError as error:
        raise UserError(f"'{path}' cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"'{path}' is no TOML: {brief(error)}") from None
    for name, table in found.items():
        if name not in TABLES:
            raise unknown(f"table in '{path}'", name, TABLES, "tables")
        rows = table if name == "runs" else [table]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise UserError(f"'{name}' in '{path}' must be written as {'[[runs]]' if name == 'runs' else f'[{name}]'}")
    return found


def _combinations(path: Path, tables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The settings of every run: those of `train`, of one of `runs`, and of each combination in `grid`."""
    common, grid = tables.get("train", {}), tables.get("grid", {})
    for name, values in grid.items():
        _known(name, TRAIN_FIELDS, "a training")
        if not isinstance(values, list) or not values:
            raise UserError(f"{name} in [grid] must be a list of at least one value, not {brief(values)}")
    found = []
    for own in tables.get("runs", [{}]):
        for first, second in itertools.combinations((common, own, grid), 2):
            if twice := sorted(first.keys() & second.keys()):
                raise UserError(f"'{path}' gives {twice[0]} twice for a run; give it in one table alone")
        for values in itertools.product(*grid.values()):
            found.append({**common, **own, **dict(zip(grid, values, strict=True))})
    if not found or not any(found):
        raise UserError(f"'{path}' asks for no run; name a dataset in [train]")
    return found


def _options(kind: Any, settings: Mapping[str, Any], names: Sequence[str], what: str, **own: Any) -> Any:
    """A command's options from what TOML holds. Raises UserError for an unknown field, or a value of another type."""
    for name in settings:
        _known(name, names, what)
    if "dataset" in own and own["dataset"] is None:
        raise UserError("a run has no dataset; name one in [train]")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    values |= {name: Path(value) for name, value in values.items() if name in PATHS and isinstance(value, str)}
    options = kind(**(values | own))
    typed(options)
    return options


def _known(name: str, names: Sequence[str], what: str) -> None:
    if name not in names:
        raise unknown(f"field of {what}", name, names, "fields")


def _checked(train: Train, engine: str) -> Any:
    """The preset of a training that can be begun; on a cluster, devices are those of its nodes."""
    from compdiffuser.runs import choose_device

    if engine == "local":
        choose_device(train.device)
    return replace(train, device="cpu").check()


def given(options: Any) -> dict[str, Any]:
    """The options that differ from their defaults and make a difference, as JSON has them."""
    names = TRAIN_FIELDS if isinstance(options, Train) else EVAL_FIELDS
    usual = {field.name: field.default for field in fields(options)}
    found = {name: getattr(options, name) for name in names if name not in (*ELSEWHERE, "workers")}
    plain: dict[str, Any] = json.loads(json.dumps({n: v for n, v in found.items() if v != usual[n]}, default=str))
    if plain.get("preset") == "default" and "begin_with" not in plain:  # which is what is meant where none is given
        del plain["preset"]
    return plain


def _name(train: Train, varied: Mapping[str, Any], checksum: str | None) -> str:
    """A folder's name: what distinguishes the run, and a hash of all that makes it, its data included."""
    identity = {**given(train), "data": checksum}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:10]
    told = re.sub(r"[^\w.=+]+", "-", "-".join(f"{name}-{word(value)}" for name, value in varied.items()))[:80]
    return f"{told}-{digest}".lstrip("-.")


def _checksum(dataset: str) -> str | None:
    """The checksum of a dataset in one file; None of others, which training itself compares."""
    from compdiffuser.data import storage
    from compdiffuser.files import sha256

    path, manifest = storage.origin_of(dataset)
    known = (manifest or {}).get("sha256")
    return str(known) if known else sha256(path) if path is not None and path.is_file() else None


def word(value: Any) -> str:
    """A setting, without the brackets of a list."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


@contextmanager
def _printing_to(path: Path) -> Iterator[None]:
    make_folder(path.parent)
    with open(path, "a", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
        yield
