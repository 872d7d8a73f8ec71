"""Weights on disk: a folder with `config.json` and named parts, each a safetensors file.

One format serves planners, baselines, controllers and experts. `config.json` says what kind of artifact it is and holds
the SHA-256 of every part. It is written last and is the only commit point: whoever reads it finds the old artifact or
the new one, however the writer ended. A new part never overwrites a file that the old `config.json` names.

Nothing is unpickled, so an artifact from a stranger is safe to open: what cannot be is refused in one sentence, before
memory is taken for it. Arrays are NumPy's, so that worker processes need not import PyTorch.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialize

from compdiffuser.checks import brief
from compdiffuser.files import read_json, replacing, sync_folder, write_json, write_through
from compdiffuser.types import Array, UserError

if TYPE_CHECKING:
    from torch import Tensor

CONFIG = "config.json"
SUFFIX = ".safetensors"
RESERVED = ("kind", "format", "parts")
NAME = re.compile(r"[a-z][a-z0-9_]*")
FILE = re.compile(r"[\w-][\w.-]{,200}\.safetensors")
LARGEST_CONFIG = 2**24
"""Bytes that a config may have."""
ATTEMPTS = 100
"""Times that a reader begins anew because a writer replaced the artifact meanwhile."""

Part = dict[str, Array]


@dataclass(frozen=True, eq=False)
class Artifact:
    """What lies in a folder."""

    kind: str
    """Such as "planner"."""
    format: int
    """Version of the config, counted up when older ones can no longer be read."""
    config: dict[str, Any]
    """Everything else that `config.json` holds, ready for JSON."""
    parts: dict[str, Part]
    """Arrays by the name of their part, such as "model"."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each part's file, where the artifact was loaded from one."""

    def __post_init__(self) -> None:
        if taken := [name for name in RESERVED if name in self.config]:
            raise UserError(f"'{taken[0]}' is a name that config.json uses itself; choose another")
        if wrong := [name for name in self.parts if not NAME.fullmatch(name)]:
            raise UserError(f"a part's name is made of small letters, digits and underscores, not '{wrong[0]}'")


def save(folder: str | os.PathLike[str], artifact: Artifact) -> Path:
    """Write an artifact; until its last file is in place, the one that was there before stays.

    Raises UserError where a part holds values that are not finite, or cannot be written.
    """
    folder = Path(folder)
    for name, part in artifact.parts.items():
        check_finite(f"part '{name}' of the {artifact.kind}", part)
    before = _files(read_config(folder) or {})
    with ThreadPoolExecutor() as pool:  # the disk brings several files down in hardly more time than one
        writes = {name: pool.submit(_write, folder, name, part, before) for name, part in artifact.parts.items()}
    listed = {name: write.result() for name, write in writes.items()}
    sync_folder(folder)
    head = {"kind": artifact.kind, "format": artifact.format, "parts": listed}
    write_json(folder / CONFIG, {**head, **artifact.config})
    _sweep(folder, {entry["file"] for entry in listed.values()}, {*listed}, {*before})
    return folder


def _write(folder: Path, name: str, part: Part, before: Mapping[str, str]) -> dict[str, str]:
    """Write a part; its file and its hash, which is taken while the disk writes."""
    # Of other memory layouts, safetensors would write the bytes as they lie.
    data = serialize({key: np.asarray(array, order="C") for key, array in part.items()})
    with ThreadPoolExecutor(1) as hashing:
        digest = hashing.submit(lambda: hashlib.sha256(data).hexdigest())
        with replacing(folder / f"{name}{SUFFIX}", named=False, place=lambda: path) as temporary:
            write_through(temporary, data)
            path = folder / _file(folder, name, digest.result(), before)
    return {"file": path.name, "sha256": digest.result()}


def load(
    folder: str | os.PathLike[str], kind: str, format: int, parts: Sequence[str] = ("model",)
) -> Artifact:  # fmt: skip
    """Read an artifact of a kind, in which `parts` must not be missing; further parts are read too.

    Raises UserError where there is none, where it is of another kind or format, and where a part is missing, damaged
    or not finite.
    """
    folder = Path(folder)
    if not is_folder(folder):
        raise UserError(f"there is no {kind} at '{brief(str(folder))}'")
    for _ in range(ATTEMPTS):
        before = _bytes(folder / CONFIG)
        try:
            return _read(folder, _config(folder), kind, format, parts)
        except UserError as error:
            # A writer may have replaced the parts that this config names: then there is another config by now.
            refusal = error
            if _bytes(folder / CONFIG) == before:
                break
    raise refusal


def read(folder: str | os.PathLike[str]) -> Artifact:
    """An artifact of any kind, as it is stored. Raises UserError where there is none, or it is bad."""
    values = _config(Path(folder))
    kind, format = (values.get(name) if isinstance(values, dict) else None for name in ("kind", "format"))
    if not isinstance(kind, str) or not isinstance(format, int):
        raise UserError(f"'{folder}' holds no artifact that says what it is")
    return load(folder, kind, format, parts=())


@contextmanager
def describing(folder: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Around whatever is made of a config: a value that cannot be becomes a UserError that names the file."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
        raise UserError(f"'{Path(folder) / CONFIG}' does not describe {_a(kind)}: {brief(error)}") from None


def record_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """How an artifact was made, as its config tells it. Raises UserError where that is no object of names."""
    record = config.get("record", {})
    if not isinstance(record, dict) or not isinstance(record.get("data", {}), dict):
        raise UserError(f"the record and its data are objects, not {brief(record)}")
    return record


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a folder; there is none of a name that the file system cannot have."""
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    """`config.json` of a folder as it stands, unchecked; None where there is none that can be read."""
    try:
        values = _config(Path(folder))
    except UserError:
        return None
    return values if isinstance(values, dict) else None


def kind_of(folder: str | os.PathLike[str]) -> str | None:
    """The kind of the artifact in a folder; None where it holds none."""
    kind = (read_config(folder) or {}).get("kind")
    return kind if isinstance(kind, str) else None


def arrays(state: Mapping[str, Tensor], half: bool = False) -> Part:
    """A module's state as a part, in half precision where asked for."""
    return {
        name: (tensor.half() if half and tensor.is_floating_point() else tensor).detach().cpu().numpy()
        for name, tensor in state.items()
    }


def tensors(part: Mapping[str, Array]) -> dict[str, Tensor]:
    """A part as tensors of its own memory, all real numbers as float32."""
    import torch

    return {
        name: torch.tensor(array, dtype=torch.float32 if np.issubdtype(array.dtype, np.floating) else None)
        for name, array in part.items()
    }


def check_finite(what: str, part: Mapping[str, Array]) -> None:
    """Raises UserError where an array holds NaN or infinite values."""
    for name, array in part.items():
        if not _finite(array):
            raise UserError(f"{what} holds values that are not finite, in '{name}'")


def _finite(array: Array) -> bool:
    if array.dtype == np.float16:  # where the exponent's bits are all set; a fourth of isfinite's time
        return not ((array.view(np.uint16) & 0x7C00) == 0x7C00).any()
    return not np.issubdtype(array.dtype, np.inexact) or bool(np.isfinite(array).all())


def _config(folder: Path) -> Any:
    """What `config.json` holds. Raises UserError where there is none, or one that is too large or no JSON."""
    try:
        size = (folder / CONFIG).stat().st_size
    except (OSError, ValueError):
        size = 0  # reading it says why
    if size > LARGEST_CONFIG:
        raise UserError(f"'{folder / CONFIG}' has {size} bytes; a config has at most {LARGEST_CONFIG}")
    return read_json(folder / CONFIG)


def _read(folder: Path, values: Any, kind: str, format: int, needed: Sequence[str]) -> Artifact:
    _check_kind(folder, values, kind, format)
    parts: dict[str, Part] = {}
    hashes: dict[str, str] = {}
    for name, file, digest in _listed(folder, values, kind):
        parts[name], hashes[name] = _part(folder / file, kind, digest), digest
    if missing := [name for name in needed if name not in parts]:
        raise UserError(f"the {kind} '{folder}' has no part '{missing[0]}'")
    config = {key: value for key, value in values.items() if key not in RESERVED}
    return Artifact(kind, format, config, parts, hashes)


def _check_kind(folder: Path, values: Any, kind: str, format: int) -> None:
    if not isinstance(values, dict) or not {"kind", "format"} & {*values}:
        raise UserError(f"'{folder / CONFIG}' does not describe {_a(kind)}: it has no 'kind'")
    # Before artifacts had a kind, they had a format.
    if (found := values.get("kind", kind)) != kind:
        raise UserError(f"'{folder}' holds {_a(brief(found))}, not {_a(kind)}")
    if (version := values.get("format")) != format:
        raise UserError(f"'{folder}' has {kind} format {brief(version)}, this version reads {format}")


def _listed(folder: Path, values: dict[str, Any], kind: str) -> list[tuple[str, str, str]]:
    """Name, file and hash of each part. Raises UserError where a config does not list them."""
    try:
        listed = [(str(name), entry["file"], entry["sha256"]) for name, entry in values["parts"].items()]
        if wrong := [file for _, file, _ in listed if not FILE.fullmatch(file)]:
            raise UserError(f"'{folder / CONFIG}' names a file '{brief(wrong[0])}', which is no part of {_a(kind)}")
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"'{folder / CONFIG}' does not describe {_a(kind)}: it does not list its parts") from None
    return listed


def _part(path: Path, kind: str, digest: str) -> Part:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"the {kind} '{path.parent}' has no {path.name}") from None
    except OSError as error:
        raise UserError(f"'{path}' cannot be read: {error.strerror or error}") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise UserError(f"'{path}' is corrupt: it is not the file that {CONFIG} describes")
    try:
        part = parse(data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise UserError(f"'{path}' is corrupt: {brief(error)}") from None
    check_finite(f"'{path}'", part)
    return part


def _file(folder: Path, name: str, digest: str, before: Mapping[str, str]) -> str:
    """The file to write a part to: of its plain name, unless one with other contents is there."""
    plain = f"{name}{SUFFIX}"
    taken = (folder / plain).exists() and before.get(plain) != digest
    return f"{name}-{digest[:12]}{SUFFIX}" if taken else plain


def _files(values: dict[str, Any]) -> dict[str, str]:
    """Files that a config names as parts, and their hashes."""
    parts = values.get("parts")
    entries = [entry for entry in parts.values() if isinstance(entry, dict)] if isinstance(parts, dict) else []
    named = {entry.get("file"): str(entry.get("sha256")) for entry in entries}
    return {file: digest for file, digest in named.items() if isinstance(file, str) and FILE.fullmatch(file)}


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (OSError, ValueError):
        return None


def _a(kind: Any) -> str:
    """A kind with its article."""
    return f"{'an' if str(kind)[:1] in 'aeiou' else 'a'} {kind}"


def _sweep(folder: Path, current: set[str], parts: set[str], before: set[str]) -> None:
    """Remove the parts of artifacts that lay here before, and of writers that did not come to their end."""
    own = re.compile(rf"({'|'.join(map(re.escape, parts))})(-[0-9a-f]{{12}})?{re.escape(SUFFIX)}")
    left = before | {path.name for path in folder.glob(f"*{SUFFIX}") if own.fullmatch(path.name)}
    for name in left - current:
        with suppress(OSError):
            (folder / name).unlink()
