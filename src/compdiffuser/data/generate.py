"""Makes a dataset: records its episodes in parallel, resumes where a run was cut off, writes the file at the end.

Episodes have random generators of their own, so a file depends on the seed and never on workers, engine or
interruptions. Finished shards wait in a work folder beside the file; the folder goes when the file is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from compdiffuser import parallel
from compdiffuser.data import storage
from compdiffuser.data.recipes import recipe
from compdiffuser.data.recording import FIELDS, LowLevelPolicy, Recipe
from compdiffuser.files import replacing, sha256
from compdiffuser.presets import preset
from compdiffuser.types import Array, Episodes, UserError

SHARD_EPISODES = 50
SPLITS = ("train", "val")
PACKAGES = ("compdiffuser", "mujoco", "numpy", "gymnasium", "ogbench", "gymnasium-robotics")

Arrays = dict[str, Array]


@dataclass(frozen=True)
class Shard:
    """Episodes `first` to `first + count − 1` of one split: the unit of work and of resuming."""

    dataset: str
    split: str
    first: int
    count: int
    seed: int
    policy: LowLevelPolicy | None

    @property
    def file(self) -> str:
        return f"{self.split}-{self.first:06d}.npz"


def make(
    name: str,
    episodes: int | None = None,
    workers: int | None = None,
    seed: int = 0,
    engine: str = "local",
    out: Path | None = None,
    policy: LowLevelPolicy | None = None,
) -> Path:
    """Record a dataset and its validation split (a tenth more episodes); returns the training file.

    A file that is already there, made the same way, is left alone.
    """
    record = preset(name)
    count = record.episodes if episodes is None else episodes
    if count < 1:
        raise UserError(f"the number of episodes is at least 1, not {count}")
    if seed < 0:
        raise UserError(f"the seed is at least 0, not {seed}")
    train = storage.file_of(name) if out is None else Path(out)
    if train.suffix != ".npz":
        raise UserError(f"a dataset is written to a file ending in .npz, not {train}")
    _prepare(train)
    counts = {"train": count, "val": max(count // 10, 1)}
    files = {"train": train, "val": storage.validation_of(train)}
    manifests = {split: describe(name, split, counts[split], seed, policy) for split in SPLITS}
    if all(_is_made(files[split], manifests[split]) for split in SPLITS):
        return train

    work = train.with_name(f".{train.stem}-{_key(manifests)}.work")
    shards = [
        Shard(name, split, first, min(SHARD_EPISODES, counts[split] - first), seed, policy)
        for split in SPLITS
        for first in range(0, counts[split], SHARD_EPISODES)
    ]
    finished = _record_all(shards, work, workers, engine)
    for split in reversed(SPLITS):  # the training file last: once it is there, both are
        parts = [finished[number] for number, shard in enumerate(shards) if shard.split == split]
        recorded = _join(parts)
        storage.save(recorded, files[split], {**manifests[split], "states": int(recorded.lengths.sum())})
    shutil.rmtree(work, ignore_errors=True)
    return train


def describe(name: str, split: str, episodes: int, seed: int, policy: LowLevelPolicy | None = None) -> dict[str, Any]:
    """The manifest of a dataset that is about to be made; the same manifest means the same arrays."""
    record = preset(name)
    parameters = recipe(record, policy).parameters()
    return {
        "name": name,
        "split": split,
        "source": "regenerate",
        "environment": record.environment,
        "maze": record.maze,
        "recipe": {"name": record.recipe, **parameters},
        "seed": seed,
        "episodes": episodes,
        "versions": {package: _version(package) for package in PACKAGES},
    }


def record_shard(shard: Shard) -> Arrays:
    """The fields of a shard's episodes, one after the other."""
    # Simulators draw from NumPy's global generator; the caller's own use of it is left as it was.
    before = np.random.get_state()  # noqa: NPY002
    try:
        maker = _recipe(shard)
        recordings = []
        for episode in range(shard.first, shard.first + shard.count):
            key = (SPLITS.index(shard.split), episode)
            rng = np.random.default_rng(np.random.SeedSequence(shard.seed, spawn_key=key))
            recordings.append(maker.record(episode, rng).arrays())
    finally:
        np.random.set_state(before)  # noqa: NPY002
    joined = {name: np.concatenate([arrays[name] for arrays in recordings]) for name in FIELDS}
    lengths = [len(arrays["observations"]) for arrays in recordings]
    joined["terminals"] = np.zeros(sum(lengths), bool)
    joined["terminals"][np.cumsum(lengths) - 1] = True
    return joined


def _record_all(shards: list[Shard], work: Path, workers: int | None, engine: str) -> dict[int, Arrays]:
    """Every shard by number: those that an earlier run left in the work folder, then the rest."""
    finished: dict[int, Arrays] = {}
    for number, shard in enumerate(shards):
        if (work / shard.file).exists():
            with np.load(work / shard.file, allow_pickle=False) as archive:
                finished[number] = dict(archive)
    missing = [number for number in range(len(shards)) if number not in finished]
    label = f"{shards[0].dataset} ({len(missing)} of {len(shards)} shards)"
    jobs = [shards[number] for number in missing]
    for job, arrays in parallel.stream(record_shard, jobs, workers, engine, progress=label):
        number = missing[job]
        with replacing(work / shards[number].file) as temporary:
            temporary.write_bytes(storage.npz_bytes(arrays))
        finished[number] = arrays
    return finished


def _join(parts: list[Arrays]) -> Episodes:
    return Episodes.from_terminals(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _prepare(path: Path) -> None:
    """Finds out before the work, not after it, that a file cannot be written there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write '{path}': {error.strerror or error}") from error
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"cannot write '{path}': permission denied")


def _is_made(path: Path, manifest: dict[str, Any]) -> bool:
    found = storage.manifest_of(path) if path.exists() else None
    if found is None or any(found.get(key) != value for key, value in manifest.items()):
        return False
    return sha256(path) == found.get("sha256")


def _key(manifests: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifests, sort_keys=True).encode()).hexdigest()[:12]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


_made: dict[tuple[str, str], Recipe] = {}


def _recipe(shard: Shard) -> Recipe:
    """One recipe, and with it one simulator, per process: maze environments are slow to open and leak."""
    key = (shard.dataset, shard.policy.name if shard.policy else "")
    if key not in _made:
        _made.clear()
        _made[key] = recipe(preset(shard.dataset), shard.policy)
    return _made[key]
