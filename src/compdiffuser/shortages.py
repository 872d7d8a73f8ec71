"""What a computer runs out of: space on a disk, memory, open files, processes. One sentence, whoever noticed it.

Libraries tell of it in many ways. What is raised here is not a user's mistake, but a user can mend it, and the run then
continues: nobody wants a traceback.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

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
    r"too many open files": FILES,
    r"no space left on device": SPACE,
    r"start new thread|start a new thread": REASONS[errno.EAGAIN],
    r"(allocate|map segment|mmap)|(not enough|out of) memory|bad_alloc|MemoryError": MEMORY,
}
"""What libraries that raise errors of their own say in them."""


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
                if re.search(words, str(each), re.IGNORECASE):
                    return reason
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it was raised from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
