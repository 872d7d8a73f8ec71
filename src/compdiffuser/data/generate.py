"""Makes a dataset: records its episodes in parallel, resumes where a run was cut off, writes the file at the end.

Episodes have random generators of their own, so a file depends on the seed and never on workers, engine or
interruptions. Finished shards wait in a work folder beside the file; the folder goes when the file is there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from compdiffuser import parallel
from compdiffuser.data import storage
from compdiffuser.data.recipes import recipe, recipe_of
from compdiffuser.data.recording import Steersman
from compdiffuser.data.shards import SPLITS, Recorded, Shard, record_shard
from compdiffuser.data.walking import recorded
from compdiffuser.files import check_writable, locked, replacing, sha256
from compdiffuser.presets import Preset, preset
from compdiffuser.runs import memory, package_versions
from compdiffuser.shortages import shortage
from compdiffuser.types import Episodes, UserError

SHARD_EPISODES = 32
NUMBERS = 4  # of a state, for each that is observed: actions, qpos and qvel come with it
PACKAGES = ("compdiffuser", "mujoco", "numpy", "gymnasium", "ogbench", "gymnasium-robotics")


def make(
    name: str,
    episodes: int | None = None,
    workers: int | None = None,
    seed: int = 0,
    engine: str = "local",
    out: Path | None = None,
    steersmen: Sequence[Steersman] = (),
) -> Path:
    """Record a dataset and its validation split (a tenth more episodes); returns the training file.

    A file that is already there, made the same way, is left alone.
    """
    dataset = preset(name)
    count = recorded(dataset).episodes if episodes is None else episodes
    for what, number, least in (("number of episodes", count, 1), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, Integral):
            raise UserError(f"the {what} is a whole number, not {number!r}")
        if number < least:
            raise UserError(f"the {what} is at least {least}, not {number}")
    count, seed = int(count), int(seed)  # NumPy's whole numbers are none in JSON
    check_memory(dataset, count)
    train = storage.file_of(name) if out is None else Path(out)
    storage.check_name(train)
    check_writable(train)
    counts = {"train": count, "val": max(count // 10, 1)}
    files = {"train": train, "val": storage.validation_of(train)}
    manifests = {split: describe(dataset, split, counts[split], seed, steersmen) for split in SPLITS}
    work = train.with_name(f".{train.stem}-{_key(manifests)}.work")
    if all(_is_made(files[split], manifests[split]) for split in SPLITS):
        shutil.rmtree(work, ignore_errors=True)  # of a run that was killed after its last file
        return train

    make = recipe_of(dataset)
    shards = [
        Shard(dataset, split, first, min(SHARD_EPISODES, counts[split] - first), seed, tuple(steersmen), make)
        for split in SPLITS
        for first in range(0, counts[split], SHARD_EPISODES)
    ]
    with locked(train, "records"):
        finished = _record_all(shards, work, workers, engine)
        for split in reversed(SPLITS):  # the training file last: once it is there, both are
            parts = [finished[number] for number, shard in enumerate(shards) if shard.split == split]
            joined = _join(parts)
            found = {"states": int(joined.lengths.sum()), "blown_up": sum(part.blown_up for part in parts)}
            storage.save(joined, files[split], manifests[split] | found)
        shutil.rmtree(work, ignore_errors=True)
    return train


def check_memory(dataset: Preset, episodes: int) -> None:
    """Raises UserError where so many episodes are larger than memory allows: they are joined in it and then written."""
    states = episodes * recorded(dataset).steps
    needed, there = 3 * states * 4 * NUMBERS * (dataset.domain.body.width or 2), memory()
    if there is not None and needed > there:
        sizes = f"need about {needed / 1e9:,.1f} GB of memory, and this machine has {there / 1e9:,.1f} GB"
        raise UserError(f"{states:,} states of '{dataset.name}' {sizes}; record fewer episodes")


def describe(
    dataset: Preset, split: str, episodes: int, seed: int, steersmen: Sequence[Steersman] = ()
) -> dict[str, Any]:
    """The manifest of a dataset that is about to be made; the same manifest means the same arrays."""
    return {
        "name": dataset.name,
        "split": split,
        "source": "regenerate",
        "environment": dataset.domain.environment or dataset.domain.name,
        "maze": None if dataset.maze is None else dataset.maze.name,
        "recipe": {"name": recorded(dataset).recipe, **recipe(dataset, steersmen).parameters()},
        "seed": seed,
        "episodes": episodes,
        "versions": package_versions(PACKAGES, missing="not installed"),
    }


def _record_all(shards: list[Shard], work: Path, workers: int | None, engine: str) -> dict[int, Recorded]:
    """Every shard by number: those that an earlier run left in the work folder, then the rest."""
    finished: dict[int, Recorded] = {}
    for number, shard in enumerate(shards):
        if (found := _left(work / shard.file)) is not None:
            finished[number] = found
    missing = [number for number in range(len(shards)) if number not in finished]
    label = f"{shards[0].dataset.name} ({len(missing)} of {len(shards)} shards)"
    jobs = [shards[number] for number in missing]
    for job, made in parallel.stream(record_shard, jobs, workers, engine, progress=label):
        number = missing[job]
        with replacing(work / shards[number].file) as temporary:
            temporary.write_bytes(storage.npz_bytes({**made.fields, "blown_up": np.array([made.blown_up])}))
        finished[number] = made
    return finished


def _left(path: Path) -> Recorded | None:
    """The shard that an earlier run left in a file; None where there is none, or it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            fields = dict(archive)
        return Recorded(blown_up=int(fields.pop("blown_up")[0]), fields=fields)
    except Exception as error:  # a damaged file raises anything; it is recorded again
        if shortage(error) is not None:
            raise
        return None


def _join(parts: list[Recorded]) -> Episodes:
    names = parts[0].fields
    return Episodes.from_terminals(**{name: np.concatenate([part.fields[name] for part in parts]) for name in names})


def _is_made(path: Path, manifest: dict[str, Any]) -> bool:
    found = storage.manifest_of(path) if path.exists() else None
    if found is None or any(found.get(key) != value for key, value in manifest.items()):
        return False
    return sha256(path) == found.get("sha256")


def _key(manifests: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifests, sort_keys=True).encode()).hexdigest()[:12]
