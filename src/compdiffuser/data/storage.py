"""Datasets on disk: `.npz` files with OGBench's fields, a JSON manifest beside each, one folder for the known ones.
Files of others are read by `data.formats`.

A file appears whole or not at all, the same arrays give the same bytes, and reading never runs code from a file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from compdiffuser.checks import member
from compdiffuser.data import formats
from compdiffuser.data.fields import episodes_from, finite
from compdiffuser.files import replacing, sha256, write_json
from compdiffuser.presets import PRESETS, Preset, own_preset, preset
from compdiffuser.types import EXTRA, Array, Episodes, UserError

SAVED = ("observations", "actions", "terminals", *EXTRA)
MINARI = "minari:"
"""What the name of a Minari dataset begins with here."""
SUFFIXES = (".npz", ".hdf5", ".h5", ".zarr", ".zip")


def home() -> Path:
    """The folder of made datasets: $COMPDIFFUSER_HOME, else the platform's cache folder."""
    return Path(os.environ.get("COMPDIFFUSER_HOME") or platformdirs.user_cache_dir("compdiffuser")).expanduser()


def file_of(name: str, split: str = "train") -> Path:
    """Where a known dataset lies once it is made; OGBench's names: `NAME.npz` and `NAME-val.npz`."""
    return home() / "data" / f"{preset(name).name}{'-val' if split == 'val' else ''}.npz"


def validation_of(path: Path) -> Path:
    """The validation file that belongs to a training file."""
    return path.with_name(f"{path.stem}-val.npz")


def manifest_of(path: Path) -> dict[str, Any] | None:
    """What the manifest beside a dataset says, or None where there is none."""
    beside = path.with_suffix(".json")
    try:
        values = json.loads(beside.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"the manifest {beside} cannot be read: {error}") from error
    return values if isinstance(values, dict) else None


def check_name(path: Path) -> None:
    """Raises UserError for a file that no dataset is written to."""
    if path.suffix != ".npz":
        raise UserError(f"a dataset is written to a file ending in .npz, not {path}")


def locate(name_or_path: str | os.PathLike[str], split: str = "train") -> Path:
    """The file of a known name or a path. Raises UserError where there is none."""
    member("split", split, ("train", "val"))
    text = os.fspath(name_or_path)
    if text in PRESETS:
        path = file_of(text, split)
        if not path.exists():
            raise UserError(f"dataset '{text}' is not made yet; make it with: compdiffuser data make {text}")
        return path
    path = Path(text).expanduser()
    path = path if path.name.strip(".") else path.resolve()  # such as this folder, whose name is asked for below
    if path.suffix not in SUFFIXES and os.sep not in text and not path.exists():
        preset(text)  # raises, with the nearest name
    if formats.reader_of(path) is None:
        raise UserError(f"{text} is not a dataset: expected {formats.EXPECTED}")
    if split == "val" and not formats.keeps_splits(path):
        path = validation_of(path)
    if not path.exists():
        raise UserError(f"there is no file {path}")
    return path


def load(name_or_path: str | os.PathLike[str], split: str = "train") -> Episodes:
    """A made dataset by name, one of your own by the path of its file or folder, or one of Minari's as `minari:ID`.

    Formats are those of `data.formats`; a Minari dataset that is not here is downloaded. Checked as it is read: fields,
    lengths, finite values in float32, and the checksum where a manifest lies beside it.
    """
    if os.fspath(name_or_path).startswith(MINARI):
        from compdiffuser.data.minari_io import from_minari

        episodes = from_minari(os.fspath(name_or_path).removeprefix(MINARI), download=True)
        for name in ("observations", "actions", *EXTRA):
            if (array := getattr(episodes, name)) is not None:
                finite(os.fspath(name_or_path), name, array)
        return episodes
    path = locate(name_or_path, split)
    _verify(path)
    found, names = formats.read(path, split)
    return episodes_from(str(path), found, names)


def origin_of(name_or_path: str, split: str = "train") -> tuple[Path | None, dict[str, Any] | None]:
    """The file of a dataset, and its manifest; one of Minari's has no file here."""
    if name_or_path.startswith(MINARI):
        return None, {"name": name_or_path, "source": "minari"}
    path = locate(name_or_path, split)
    return path, manifest_of(path)


def preset_of(name_or_path: str, split: str = "train") -> Preset | None:
    """The preset of a dataset: by its own name, by its manifest's, or by its file's; None where none is known."""
    path, manifest = origin_of(name_or_path, split)
    names = (name_or_path, (manifest or {}).get("name"), path.stem.removesuffix("-val") if path else None)
    return next((PRESETS[name] for name in names if isinstance(name, str) and name in PRESETS), None)


def preset_for(name_or_path: str) -> Preset:
    """The preset of a known dataset; for data of one's own, chunks of 64 states of its first two dimensions.

    Raises UserError for a name that is unknown and a file that is not there.
    """
    if name_or_path in PRESETS:
        return PRESETS[name_or_path]
    name = name_or_path.removeprefix(MINARI).replace("/", "-")
    known = preset_of(name_or_path)
    return known or own_preset(name if name_or_path.startswith(MINARI) else locate(name_or_path).stem)


def save(episodes: Episodes, path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write the dataset and its manifest, each atomically; returns the manifest with its checksum."""
    fields = {name: getattr(episodes, name) for name in SAVED}
    return place(npz_bytes({name: array for name, array in fields.items() if array is not None}), path, manifest)


def place(content: bytes, path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write a dataset's bytes and its manifest.

    The old manifest goes first: a run that dies in between leaves a good file without one, never a wrong checksum.
    """
    complete = {**manifest, "sha256": hashlib.sha256(content).hexdigest()}
    with replacing(path) as temporary:
        temporary.write_bytes(content)
        path.with_suffix(".json").unlink(missing_ok=True)
    write_json(path.with_suffix(".json"), complete)
    return complete


def npz_bytes(arrays: dict[str, Array]) -> bytes:
    """An uncompressed `.npz` whose bytes depend on nothing but the arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(member, "w", force_zip64=True) as stream:
                # Of times, float32 would make neighbours equal where episodes are long.
                dtype = np.bool_ if array.dtype == np.bool_ else np.float64 if name == "times" else np.float32
                np.lib.format.write_array(stream, np.ascontiguousarray(array, dtype), allow_pickle=False)
    return buffer.getvalue()


def _verify(path: Path) -> None:
    expected = (manifest_of(path) or {}).get("sha256")
    if expected is None:
        return
    try:
        found = sha256(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    if found != expected:
        raise UserError(
            f"{path} is not the file its manifest describes: checksum {found[:12]}… instead of "
            f"{str(expected)[:12]}…; make it again or remove {path.with_suffix('.json').name}"
        )
