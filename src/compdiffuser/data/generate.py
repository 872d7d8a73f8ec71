"""Makes a dataset: records its episodes in parallel, resumes where a run was cut off, writes the file at the end.

Episodes have random generators of their own, so a file depends on the seed and never on workers, engine or
interruptions. Finished shards wait in a work folder beside the file; the folder goes when the file is there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compdiffuser import parallel
from compdiffuser.data import storage
from compdiffuser.data.recipes import recipe
from compdiffuser.data.recording import Recipe, Steersman
from compdiffuser.data.walking import recorded
from compdiffuser.files import check_writable, replacing, sha256
from compdiffuser.presets import Preset, preset
from compdiffuser.runs import package_versions
from compdiffuser.types import Array, Episodes, UserError

SHARD_EPISODES = 50
SPLITS = ("train", "val")
PACKAGES = ("compdiffuser", "mujoco", "numpy", "gymnasium", "ogbench", "gymnasium-robotics")

Arrays = dict[str, Array]


@dataclass(frozen=True)
class Shard:
    """Episodes `first` to `first + count − 1` of one split: the unit of work and of resuming."""

    dataset: Preset
    split: str
    first: int
    count: int
    seed: int
    steersman: Steersman | None

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
    steersman: Steersman | None = None,
) -> Path:
    """Record a dataset and its validation split (a tenth more episodes); returns the training file.

    A file that is already there, made the same way, is left alone.
    """
    dataset = preset(name)
    count = recorded(dataset).episodes if episodes is None else episodes
    if count < 1:
        raise UserError(f"the number of episodes is at least 1, not {count}")
    if seed < 0:
        raise UserError(f"the seed is at least 0, not {seed}")
    train = storage.file_of(name) if out is None else Path(out)
    if train.suffix != ".npz":
        raise UserError(f"a dataset is written to a file ending in .npz, not {train}")
    check_writable(train)
    counts = {"train": count, "val": max(count // 10, 1)}
    files = {"train": train, "val": storage.validation_of(train)}
    manifests = {split: describe(dataset, split, counts[split], seed, steersman) for split in SPLITS}
    if all(_is_made(files[split], manifests[split]) for split in SPLITS):
        return train

    work = train.with_name(f".{train.stem}-{_key(manifests)}.work")
    shards = [
        Shard(dataset, split, first, min(SHARD_EPISODES, counts[split] - first), seed, steersman)
        for split in SPLITS
        for first in range(0, counts[split], SHARD_EPISODES)
    ]
    finished = _record_all(shards, work, workers, engine)
    for split in reversed(SPLITS):  # the training file last: once it is there, both are
        parts = [finished[number] for number, shard in enumerate(shards) if shard.split == split]
        joined = _join(parts)
        storage.save(joined, files[split], {**manifests[split], "states": int(joined.lengths.sum())})
    shutil.rmtree(work, ignore_errors=True)
    return train


def describe(
    dataset: Preset, split: str, episodes: int, seed: int, steersman: Steersman | None = None
) -> dict[str, Any]:
    """The manifest of a dataset that is about to be made; the same manifest means the same arrays."""
    return {
        "name": dataset.name,
        "split": split,
        "source": "regenerate",
        "environment": dataset.domain.environment or dataset.domain.name,
        "maze": None if dataset.maze is None else dataset.maze.name,
        "recipe": {"name": recorded(dataset).recipe, **recipe(dataset, steersman).parameters()},
        "seed": seed,
        "episodes": episodes,
        "versions": package_versions(PACKAGES, missing="not installed"),
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
    joined = {name: np.concatenate([arrays[name] for arrays in recordings]) for name in recordings[0]}
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
    label = f"{shards[0].dataset.name} ({len(missing)} of {len(shards)} shards)"
    jobs = [shards[number] for number in missing]
    for job, arrays in parallel.stream(record_shard, jobs, workers, engine, progress=label):
        number = missing[job]
        with replacing(work / shards[number].file) as temporary:
            temporary.write_bytes(storage.npz_bytes(arrays))
        finished[number] = arrays
    return finished


def _join(parts: list[Arrays]) -> Episodes:
    return Episodes.from_terminals(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _is_made(path: Path, manifest: dict[str, Any]) -> bool:
    found = storage.manifest_of(path) if path.exists() else None
    if found is None or any(found.get(key) != value for key, value in manifest.items()):
        return False
    return sha256(path) == found.get("sha256")


def _key(manifests: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifests, sort_keys=True).encode()).hexdigest()[:12]


_made: dict[tuple[str, str | None], Recipe] = {}


def _recipe(shard: Shard) -> Recipe:
    """One recipe, and with it one simulator, per process: maze environments are slow to open and leak."""
    key = (shard.dataset.name, shard.steersman.name if shard.steersman else None)
    if key not in _made:
        _made.clear()
        _made[key] = recipe(shard.dataset, shard.steersman)
    return _made[key]
