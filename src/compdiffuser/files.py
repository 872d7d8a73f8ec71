"""Files that are either whole or not there: written beside the target, flushed to disk, then renamed over it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from compdiffuser.types import UserError

REASONS = {errno.ENOSPC: "no space is left on the device", errno.EACCES: "permission denied", errno.EROFS: "read-only"}


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends well, and vanishes when it does not."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        make_folder(path.parent)
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise UserError(f"cannot write '{path}': {reason}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they outlast a power cut."""
    if folder.is_dir() or folder == folder.parent:
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk, where the file system can."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise UserError where a file cannot be written there: found out before the work, not after it."""
    path = Path(path)
    if path.is_dir():
        raise UserError(f"cannot write '{path}': it is a folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write '{path}': {REASONS.get(error.errno or 0, error.strerror or error)}") from error
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"cannot write '{path}': permission denied")


def write_json(path: str | Path, value: Any) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """The parsed file. Raises UserError where it is missing or no JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"'{path}' does not exist") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"'{path}' is not readable JSON: {error}") from None


def sha256(path: str | Path) -> str:
    """The hash of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pretrained_folder() -> Path:
    """Where shipped planners, controllers and experts lie: in the package when installed, else in the source tree."""
    inside = Path(__file__).parent / "pretrained"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "pretrained"
