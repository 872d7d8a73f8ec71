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
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise UserError(f"cannot write '{path}': {reason}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """The parsed file, or a sentence that names it."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"'{path}' does not exist") from None
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' is not readable JSON: {error}") from None


def sha256(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pretrained_folder() -> Path:
    """Where shipped planners, controllers and experts lie: in the package when installed, else in the source tree."""
    inside = Path(__file__).parent / "pretrained"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "pretrained"
