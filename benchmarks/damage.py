"""Files of every kind, damaged at random, and what their readers make of them.

A byte is flipped, a file is cut short, or a value is replaced by another: one that is missing, not finite, of another
type, of another shape. A reader may refuse the file in one sentence, or read what it would have read anyway. It must
not read something else, end in a traceback, hang, or crash. JSON is text that people may edit: there, a value that is
as possible as the old one is read, and counted as another setting.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import pickle
import random
import resource
import shutil
import signal
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compdiffuser.artifact import CONFIG
from compdiffuser.baselines.checkpoint import load as load_baseline
from compdiffuser.baselines.gcbc import GCBCConfig
from compdiffuser.baselines.training import train_baseline, train_config
from compdiffuser.cli.data import Info
from compdiffuser.data import storage
from compdiffuser.experts.policy import load_expert
from compdiffuser.files import pretrained_folder, read_json
from compdiffuser.following.inverse_dynamics import InverseDynamicsConfig, load_controller, train_controller
from compdiffuser.models import DenoiserConfig
from compdiffuser.models.dit1d import DiT1dConfig
from compdiffuser.planning.checkpoint import load as load_planner
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.training import train_planner
from compdiffuser.presets import preset
from compdiffuser.reporting.report import read_results, render
from compdiffuser.reporting.tables import TABLES
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import Episodes, UserError

LIMIT = 30
"""Seconds after which a reader hangs."""
MEMORY = 2**32
"""Bytes that a reader may take for a file of a few kilobytes."""
VALUES: tuple[Any, ...] = (
    None, True, "", "x", 0, -1, 1.5, 10**12, 10**30, 1e300, math.nan, math.inf, [], {}, [[]], "9" * 1000,
)  # fmt: skip
PRESET = preset("pointmaze-medium-stitch-v0")


def digest(*things: Any) -> str:
    """Differs where something that was read does."""
    found = hashlib.sha256()
    for thing in things:
        if isinstance(thing, dict):
            found.update(digest(*(part for item in sorted(thing.items(), key=str) for part in item)).encode())
        elif isinstance(thing, list | tuple):
            found.update(digest(*thing, len(thing)).encode())
        elif isinstance(thing, torch.Tensor | np.ndarray):
            array = np.asarray(thing)
            found.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
        else:
            found.update(repr(thing).encode())
    return found.hexdigest()


# What is damaged: how it is made in a folder, and how it is read.


def episodes() -> Episodes:
    """Straight walks, just enough to train on."""
    rng = np.random.default_rng(0)
    steps = np.cumsum(rng.normal(0.1, 0.02, (8, 40, 2)), axis=1)
    ends = np.tile(np.arange(40) == 39, 8)
    walked = steps.reshape(-1, 2).astype(np.float32)
    return Episodes.from_terminals(walked, rng.uniform(-1, 1, (320, 2)).astype(np.float32), ends)


def make_dataset(folder: Path) -> None:
    storage.save(episodes(), folder / "d.npz", {"name": PRESET.name, "seed": 0, "episodes": 8})


def make_bare(folder: Path) -> None:
    make_dataset(folder)
    (folder / "d.json").unlink()


def read_dataset(folder: Path) -> str:
    """Its arrays, and what `compdiffuser data info` tells of it."""
    found = storage.load(str(folder / "d.npz"))
    arrays = [getattr(found, name) for name in ("observations", "actions", "starts", "lengths")]
    for as_json in (True, False):
        with redirect_stdout(io.StringIO()) as told:
            Info(str(folder / "d.npz"), json=as_json).run()
    return digest(*arrays, told.getvalue())


def make_planner(folder: Path) -> None:
    run_planner(folder)
    (folder / "resume.pt").unlink()


def run_planner(folder: Path) -> None:
    small = replace(PRESET, chunks=replace(PRESET.chunks, horizon=16, overlap=4))
    model = DenoiserConfig(horizon=16, overlap=4, network=DiT1dConfig(width=16, depth=1, heads=2, patch=4))
    train_planner(episodes(), small, folder, model=model, config=TrainConfig(steps=3, batch=8), progress=False)


def read_planner(folder: Path) -> str:
    found = load_planner(folder)
    support = None if found.support is None else [found.support.segments, found.support.described()]
    plain = [each.to_dict() for each in (found.normalizer, found.calibration, found.preset, found.denoiser.config)]
    return digest(found.denoiser.state_dict(), *plain, support, found.record)


def make_checkpoint(folder: Path) -> None:
    run_planner(folder)
    for path in [*folder.glob("*.safetensors"), folder / CONFIG, folder / "log.csv"]:
        path.unlink()
    shutil.rmtree(folder / "tensorboard", ignore_errors=True)


def read_checkpoint(folder: Path) -> str:
    """The finished run, started again, makes its planner of the checkpoint."""
    run_planner(folder)
    return digest(load_planner(folder).denoiser.state_dict())


def make_baseline(folder: Path) -> None:
    config = GCBCConfig(hidden=(8,), batch=8)
    train_baseline(
        "gcbc", episodes(), PRESET, folder, config=config, training=train_config(config, 50), progress=False
    )  # fmt: skip
    (folder / "resume.pt").unlink()


def read_baseline(folder: Path) -> str:
    found = load_baseline(folder, "gcbc")
    return digest(
        found.weights, repr(found.config), repr(found.sizes), found.goal_dims, found.seeds, found.preset.to_dict(),
        found.record,
    )  # fmt: skip


def make_controller(folder: Path) -> None:
    model = InverseDynamicsConfig(2, 2, hidden=(8,), body=PRESET.domain.body.name, space=PRESET.space, horizons=(2, 4))
    train_controller(
        episodes(), PRESET, folder, model=model, config=TrainConfig(steps=3, batch=8), progress=False
    )  # fmt: skip
    (folder / "resume.pt").unlink()


def read_controller(folder: Path) -> str:
    found = load_controller(folder)
    return digest(found.network.state_dict(), found.network.config.to_dict(), found.speeds, found.record)


def make_expert(folder: Path) -> None:
    for path in (pretrained_folder() / "experts" / "ant").iterdir():
        shutil.copy(path, folder)


def read_expert(folder: Path) -> str:
    found, config = load_expert(folder)
    return digest(found.weights, config.to_dict())


def make_plan(folder: Path) -> None:
    made = folder / "planner"
    make_planner(made)
    Planner(load_planner(made), "cpu").plan([0.5, 0.5], [3, 3], n_chunks=2, n_candidates=2).save(folder / "plan.npz")
    shutil.rmtree(made)


def read_plan(folder: Path) -> str:
    found = Plan.load(folder / "plan.npz")
    return digest(found.to_dict(), found.states, found.chunks, found.scores)


def make_result(folder: Path) -> None:
    shutil.copy(Path(__file__).parents[1] / "results" / f"{PRESET.name}-replan.json", folder / "r.json")


def read_result(folder: Path) -> str:
    """All tables of a page."""
    page = "".join(f"<!-- table: {name} -->\n<!-- /table -->\n" for name in TABLES)
    return digest(render(page, read_results(folder), "page"))


KINDS: dict[str, tuple[Callable[[Path], None], Callable[[Path], str]]] = {
    "dataset": (make_dataset, read_dataset),
    "dataset without manifest": (make_bare, read_dataset),
    "planner": (make_planner, read_planner),
    "checkpoint of a training": (make_checkpoint, read_checkpoint),
    "baseline": (make_baseline, read_baseline),
    "controller": (make_controller, read_controller),
    "expert": (make_expert, read_expert),
    "plan": (make_plan, read_plan),
    "result": (make_result, read_result),
}


# How it is damaged.


def flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def cut(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content))])


def replace_value(path: Path, rng: random.Random) -> None:
    """Another value of a JSON file or of an `.npz` file; of other files, another byte."""
    if path.suffix == ".json":
        content = read_json(path)
        holder, key = rng.choice(list(leaves(content)))
        if isinstance(holder, dict) and rng.random() < 0.2:
            del holder[key]
        else:
            holder[key] = rng.choice(VALUES)
        path.write_text(json.dumps(content))
    elif path.suffix == ".npz" and zipfile.is_zipfile(path):
        with np.load(path) as archive:
            arrays = dict(archive)
        name = rng.choice(sorted(arrays.keys() - {"scores"}))  # which may be empty, and NaN
        others = list(other_arrays(arrays[name]))
        arrays[name] = rng.choice(others)
        with open(path, "wb") as file:
            np.savez(file, **arrays)
    else:
        flip(path, rng)


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested lists and dictionaries, as its holder and its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from leaves(inner)


def other_arrays(array: np.ndarray) -> Iterator[np.ndarray]:
    """Arrays that no reader may take for this one."""
    yield np.array("x")
    yield array[..., None]
    if array.ndim:
        yield array[:0]
    if array.dtype.kind == "f" and array.size:
        for value in (np.nan, np.inf):
            other = array.copy()
            other.flat[0] = value
            yield other
        yield array.astype(np.complex64) + 1j
        yield np.full(array.shape, 1e300)


DAMAGES = (flip, cut, replace_value)


# What comes of it.


def damage_all(kinds: Sequence[str], times: int, room: Path, seed: int) -> Iterator[tuple[str, Counter[str]]]:
    """Damage files of all kinds so often, and count by kind what their readers made of it."""
    for number, kind in enumerate(kinds):
        rng, (make, read) = random.Random(f"{seed} {kind}"), KINDS[kind]
        whole, damaged = room / f"whole {kind}", room / f"damaged {kind}"
        whole.mkdir()
        make(whole)
        expected = attempt(read, copied(whole, damaged))
        if expected[0] != "read":
            raise RuntimeError(f"an undamaged {kind} is not read: {expected}")
        names = sorted(path.name for path in whole.iterdir() if counts(path))
        found: Counter[str] = Counter()
        for _ in range(number, times, len(kinds)):
            name, damage = rng.choice(names), rng.choice(DAMAGES)
            before = (copied(whole, damaged) / name).read_bytes()
            damage(damaged / name, rng)
            outcome, said = attempt(read, damaged)
            if outcome == "read":
                another = "another setting" if name.endswith(".json") else "accepted"
                outcome = "harmless" if said == expected[1] else another
            found.update(["damaged", outcome])
            if outcome not in ("harmless", "another setting", "refused"):
                after = (damaged / name).read_bytes()
                print(f"{kind}: {outcome}: {damage.__name__} {name}: {changed(before, after)} {said}", flush=True)
        yield kind, found


def counts(path: Path) -> bool:
    """Whether a file is read again; logs are for people, and the checkpoint of a training is a kind of its own."""
    return path.is_file() and path.suffix in (".npz", ".json", ".safetensors", ".pt")


def copied(whole: Path, damaged: Path) -> Path:
    shutil.rmtree(damaged, ignore_errors=True)
    return Path(shutil.copytree(whole, damaged))


def changed(before: bytes, after: bytes) -> str:
    """Where two contents differ first, with what stood there."""
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    was, now = (content[max(at - 30, 0) : at + 30] for content in (before, after))
    return f"at {at} of {len(before)}, {was!r} became {now!r}:"


def attempt(read: Callable[[Path], str], folder: Path) -> tuple[str, str]:
    """Read in a process of its own, with limits; what came of it, and what was read or said."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        signal.alarm(LIMIT)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(theirs, "wb") as answer:
            answer.write(pickle.dumps(outcome_of(read, folder)))
            answer.flush()
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        content = answer.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return ("hangs" if number == signal.SIGALRM else "crashes"), signal.Signals(number).name
    return pickle.load(io.BytesIO(content)) if content else ("crashes", "without a word")


def outcome_of(read: Callable[[Path], str], folder: Path) -> tuple[str, str]:
    try:
        return "read", read(folder)
    except UserError as error:
        return ("refused", str(error)) if "\n" not in str(error) else ("tracebacks", f"several lines: {error}")
    except BaseException as error:
        return "tracebacks", f"{type(error).__name__}: {error}"
