"""What a file of arrays claims, looked at before memory is taken: its arrays must be its own, and fit into it.

A file from a stranger may name arrays in other files, or sizes that it does not hold.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from compdiffuser.types import UserError

MOST_PACKED = 1100
"""Bytes that a compressed byte may stand for: zlib's limit is 1,032."""


def claimed(archive: zipfile.ZipFile) -> Iterator[tuple[str, int, int]]:
    """Arrays of an `.npz` file: name, bytes that its header claims, and bytes that the file may hold of it."""
    for member in archive.infolist():
        with archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, kind = read(file)
        held = min(member.file_size, MOST_PACKED * member.compress_size)
        yield member.filename, math.prod(shape) * kind.itemsize, held


def check_npz(path: Any) -> None:
    """Raises UserError where an array of an `.npz` file claims to be larger than the file."""
    with zipfile.ZipFile(path) as archive:
        for name, size, held in claimed(archive):
            if not 0 <= size <= held:
                raise UserError(f"'{name}' is said to have {size} bytes, and the file holds {held} of it")


def check_groups(group: Any, names: Iterable[str]) -> None:
    """Raises UserError where a group of an opened HDF5 file or group lies elsewhere; what is missing passes."""
    import h5py

    for name in names:
        if not isinstance(group.get(name, getlink=True, default=None), h5py.HardLink | None):
            raise UserError(f"group '{name}' is a link to another place; copy what is there into the file")


def check_hdf5(file: Any, names: Iterable[str]) -> None:
    """Raises UserError where a field of an opened HDF5 file or group lies elsewhere, is no array, or is too large."""
    import h5py

    most = MOST_PACKED * file.file.id.get_filesize()
    for name in names:
        if name not in file and file.get(name, getlink=True) is None:
            continue
        if not isinstance(file.get(name, getlink=True), h5py.HardLink):
            raise UserError(f"field '{name}' is a link to another place; copy what is there into the file")
        field = file[name]
        if not isinstance(field, h5py.Dataset) or field.is_virtual or field.external:
            raise UserError(f"field '{name}' is no array in this file; copy it into the file")
        if field.nbytes > most:
            raise UserError(f"field '{name}' is said to have {field.nbytes} bytes, more than the file can hold")
