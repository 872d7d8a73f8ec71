"""What a computer runs out of: space on a disk, memory, open files, processes. One sentence, whoever noticed it.

Libraries tell of it in many ways. What is raised here is not a user's mistake, but a user can mend it, and the run then
continues: nobody wants a traceback.
"""

from __future__ import annotations

import errno
import mmap
import re
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from pathlib import Path

FILES = "too many files are open; allow more of them (ulimit -n)"
MEMORY = "memory ran out; use less of it (fewer workers or candidates, a smaller batch) or allow more"
SPACE = "no space is left on the device"
REASONS = {
    errno.ENOSPC: SPACE,
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than is allowed here",
    errno.EROFS: "read-only",
    errno.EACCES: "permission denied",
    errno.EMFILE: FILES,
    errno.ENFILE: FILES,
    errno.ENOMEM: MEMORY,
    errno.EAGAIN: "no further process or thread can be started; use fewer workers or allow more (ulimit -u)",
}
"""What errors of the operating system say."""
WORDS = {
    re.compile(words, re.IGNORECASE): reason
    for words, reason in {
        r"too many open files": FILES,
        r"no space left on device": SPACE,
        r"start new thread|start a new thread": REASONS[errno.EAGAIN],
        r"(allocate|map segment|mmap)|(not enough|out of) memory|bad_alloc|MemoryError": MEMORY,
    }.items()
}
"""What libraries that raise errors of their own say in them. Compiled now: later, there may be no memory for it."""
ROOM = 1.15
"""Memory that PyTorch takes, in sizes of its libraries; a thread and a few arrays are in it."""


class WorkerError(RuntimeError):
    """A process that works for this one ended, or failed: one sentence. The command line exits with code 1."""


def shortage(error: BaseException) -> str | None:
    """One sentence where an error, or what caused it, says that something ran out; else None."""
    for each in _chain(error):
        if isinstance(each, OSError) and each.errno in REASONS:
            return f"'{each.filename}': {REASONS[each.errno]}" if each.filename else REASONS[each.errno]
        if isinstance(each, MemoryError):
            return MEMORY
        if isinstance(each, OSError | RuntimeError | ImportError | SystemError):
            for words, reason in WORDS.items():
                if words.search(str(each)):
                    return reason
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it was raised from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def look_before_pytorch() -> None:
    """Where memory is limited (`ulimit -v`), importing PyTorch into too little of it raises OSError.

    Else its libraries end the process while they are loaded, or leave it without memory for a sentence.
    """
    try:
        import resource
    except ImportError:  # a system without such limits
        return
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        sys.meta_path.insert(0, _Look())


class _Look(MetaPathFinder):
    """Finds no module, but looks for memory when PyTorch is asked for."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname != "torch":
            return
        sys.meta_path.remove(self)
        found = PathFinder.find_spec("torch")
        if found is not None and found.origin is not None:
            libraries = (Path(found.origin).parent / "lib").glob("*.so*")
            needed = int(ROOM * sum(path.stat().st_size for path in libraries))
            mmap.mmap(-1, max(needed, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
