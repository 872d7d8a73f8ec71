"""Files and folders that people record into: which reader takes one, and the flat arrays that it finds.

A reader takes a path and a split, "train" or "val", and returns arrays by the names that `data.fields` knows, with the
names of observed numbers where the file has them. Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from compdiffuser.data.claims import check_hdf5, check_npz
from compdiffuser.data.fields import WANTED
from compdiffuser.shortages import shortage
from compdiffuser.types import Array, UserError, install

Read = tuple[dict[str, Array], list[str]]
Reader = Callable[[Path, str], Read]


def read(path: Path, split: str = "train") -> Read:
    """The arrays of a file or folder. Raises UserError where it cannot be read, or a package is missing."""
    reader = reader_of(path)
    if reader is None:
        raise UserError(f"{path} is not a dataset: expected {EXPECTED}")
    try:
        return reader(path, split)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except Exception as error:  # a damaged file raises anything: zip, zlib, OS, key and value errors
        if short := shortage(error):
            raise UserError(f"{path} cannot be read: {short}") from error
        raise UserError(f"{path} cannot be read as a dataset: {str(error) or type(error).__name__}") from error


EXPECTED = "a file ending in .npz, .hdf5 or .h5, a folder ending in .zarr, or one of LeRobot's with meta/info.json"


def reader_of(path: Path) -> Reader | None:
    """What reads a path, by its ending and, of a folder, by what lies in it."""
    if path.name.endswith((".zarr", ".zarr.zip")):
        return read_zarr
    if path.is_dir():
        return read_lerobot if (path / "meta" / "info.json").is_file() else None
    return {".npz": read_npz, ".hdf5": read_hdf5, ".h5": read_hdf5}.get(path.suffix)


def keeps_splits(path: Path) -> bool:
    """Whether a validation split lies in the file or folder itself, and not in a file beside it."""
    return path.is_dir() or path.name.endswith(".zarr.zip") or (path.suffix != ".npz" and not _beside(path).exists())


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}-val.npz")


def read_npz(path: Path, split: str) -> Read:
    check_npz(path)
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in WANTED if name in archive.files}, []


def read_hdf5(path: Path, split: str) -> Read:
    """Flat fields as in an `.npz`, or robomimic's demonstrations in a group `data`."""
    import h5py

    from compdiffuser.data.robomimic import demonstrations

    with h5py.File(path, "r") as file:
        if isinstance(file.get("data"), h5py.Group):
            return demonstrations(file, split)
        if split != "train":
            raise UserError("it has no validation split")
        check_hdf5(file, WANTED)
        return {name: np.asarray(file[name]) for name in WANTED if name in file}, []


def read_zarr(path: Path, split: str) -> Read:
    """Arrays of the root, of a group `data` and of a group `meta`, as replay buffers have them."""
    needs("zarr", "zarr")
    import zarr

    if split != "train":
        raise UserError("it has no validation split")
    found: dict[str, Array] = {}
    root: Any = zarr.open_group(str(path), mode="r")
    for group in (root, root.get("data"), root.get("meta")):
        for name, array in _arrays(group).items():
            if name in WANTED and name not in found:
                found[name] = np.asarray(array[...])
    return found, []


def _arrays(group: Any) -> Mapping[str, Any]:
    return dict(group.arrays()) if group is not None and hasattr(group, "arrays") else {}


def read_lerobot(path: Path, split: str) -> Read:
    needs("pyarrow", "lerobot")
    from compdiffuser.data.lerobot import frames

    return frames(path, split)


def needs(package: str, extra: str) -> None:
    """Raises UserError where a package is not installed."""
    if find_spec(package) is None:
        raise UserError(f"reading it needs '{package}'; {install(extra)}")
