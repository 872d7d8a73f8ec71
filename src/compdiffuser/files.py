"""Files that are either whole or not there: written beside the target, flushed to disk, then renamed over it.

What a killed process left half written is swept by the next one that writes into the folder. What takes long to write,
such as a training, is `locked`: it has one writer at a time, and readers never wait.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from compdiffuser.shortages import REASONS
from compdiffuser.types import UserError

GRACE = 1.0
"""Seconds in which the workers of a killed process end, which hold its locks."""


@contextmanager
def replacing(path: str | Path, named: bool = True, place: Callable[[], Path] | None = None) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends well, and vanishes when it does not.

    Without `named`, `sync_folder` is left to whoever writes several files: until then, a power cut may lose its name.
    `place` gives another path in the folder, asked for when all is on disk.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{_host()}.{_writer()}.tmp")
    try:
        make_folder(path.parent)
        sweep(path.parent)
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path if place is None else place())
        if named:
            sync_folder(path.parent)
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_through(path: Path, data: bytes) -> None:
    """Write a file, and wait until the disk has it."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Around whatever writes to a path by itself: an error of the file system becomes a UserError that names it."""
    try:
        yield
    except OSError as error:
        raise _refused(Path(path), error) from error


def sweep(folder: Path) -> None:
    """Remove what processes of this machine that are no more left half written in a folder; looks once a process."""
    mark = (os.getpid(), folder.absolute())
    if mark in _swept:
        return
    _swept.add(mark)
    own = re.compile(rf"\..+\.{re.escape(_host())}\.(\d+)(?:-\d+)?\.tmp")
    with suppress(OSError):
        for path in folder.iterdir():
            if (found := own.fullmatch(path.name)) and not _runs(int(found[1])):
                path.unlink(missing_ok=True)


_swept: set[tuple[int, Path]] = set()


def _host() -> str:
    """This machine's name, for folders that several share."""
    return platform.node().replace(os.sep, "-") or "here"


def _writer() -> str:
    """This process, and which of its threads where it is not the main one."""
    thread = threading.current_thread()
    return f"{os.getpid()}" if thread is threading.main_thread() else f"{os.getpid()}-{thread.ident}"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


@contextmanager
def locked(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Be the only writer of a folder or a file within the block; the system ends the lock of a process that dies.

    What is not there yet is a file. Raises UserError where another process, or thread, is writing; `what` says what it
    does, such as "trains in".
    """
    from filelock import FileLock, Timeout

    path = Path(path)
    lock = path / ".lock" if path.is_dir() else path.with_name(f".{path.name}.lock")
    guard = FileLock(lock, thread_local=False)
    try:
        make_folder(lock.parent)
        guard.acquire(timeout=GRACE)
    except (Timeout, RuntimeError):  # the latter where this thread holds it
        raise UserError(f"{_holder(lock)} {what} '{path}' already; wait for its end, or choose another place") from None
    except OSError as error:
        raise _refused(path, error) from error
    try:
        with suppress(OSError):  # systems that lock the bytes themselves refuse
            lock.write_text(f"{os.getpid()} on {_host()}\n")
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        guard.release()


def _holder(lock: Path) -> str:
    """Who wrote a lock's file."""
    try:
        number = lock.read_text().split()
    except (OSError, ValueError):
        number = []
    return f"process {' '.join(number)}" if number else "another process"


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
        raise _refused(path, error) from error
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        read_only = os.statvfs(path.parent).f_flag & os.ST_RDONLY
        raise UserError(f"cannot write '{path}': {'read-only' if read_only else 'permission denied'}")


def _refused(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write '{path}': {REASONS.get(error.errno or 0, error.strerror or error)}")


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
