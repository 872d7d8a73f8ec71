"""OGBench's own files: taken where the user has them, else downloaded through `ogbench`. Copied byte for byte."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compdiffuser.data import storage
from compdiffuser.presets import preset
from compdiffuser.types import UserError

TIMEOUT_SECONDS = 30.0


def fetch(name: str, out: Path | None = None) -> Path:
    """Put OGBench's training and validation files where this library looks for them; returns the training file."""
    if not preset(name).domain.official:
        raise UserError(f"'{name}' has no official file; make it with: compdiffuser data make {name}")
    train = storage.file_of(name) if out is None else Path(out)
    storage.check_name(train)
    held = _on_disk(name)
    found = held or _downloaded(name)
    if held and held.parent == _folders()[0] and not storage.validation_of(held).exists():
        with contextlib.suppress(UserError):  # a download that was cut off between both files; the first one will do
            _downloaded(name)
    validation = storage.validation_of(found)
    if validation.exists():
        _copy(name, "val", validation, storage.validation_of(train))
    _copy(name, "train", found, train)
    return train


def _folders() -> list[Path]:
    return [Path("~/.ogbench/data").expanduser(), storage.home()]


def _on_disk(name: str) -> Path | None:
    return next((file for folder in _folders() if (file := folder / f"{name}.npz").exists()), None)


def _downloaded(name: str) -> Path:
    import ogbench

    folder = _folders()[0]
    try:
        with _patience(), contextlib.redirect_stdout(sys.stderr):
            ogbench.download_datasets([name], dataset_dir=str(folder))
    except OSError as error:  # urllib's errors are OSErrors too
        raise UserError(
            f"OGBench's file for '{name}' is neither in {folder} nor can it be downloaded ({error}); "
            f"make it with: compdiffuser data make {name}"
        ) from error
    return folder / f"{name}.npz"


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """A host that does not answer is given up on."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _copy(name: str, split: str, source: Path, target: Path) -> None:
    """The bytes unchanged, after a check that they load; the manifest says where they are from."""
    episodes = storage.load(source)
    world = preset(name).domain
    manifest: dict[str, Any] = {
        "name": name,
        "split": split,
        "source": "official",
        "environment": world.environment,
        "maze": None if world.maze is None else world.maze.name,
        "episodes": len(episodes),
        "states": int(episodes.lengths.sum()),
    }
    storage.place(source.read_bytes(), target, manifest)
