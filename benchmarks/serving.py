"""A real server, as a user starts it."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from reproduce import compdiffuser_command


@contextmanager
def served(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str], Callable[[], str]]]:
    """`compdiffuser serve …` on a free port: its address, its process, and what it has logged so far."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        serve = compdiffuser_command("serve", "--port", "0", *arguments)
        with open(path, "w") as file, subprocess.Popen(serve, stderr=file, text=True) as server:
            while not (found := re.search(r"http://\S+", path.read_text())):
                assert server.poll() is None, path.read_text()
                time.sleep(0.05)
            kept: list[str] = []
            try:
                yield found[0], server, lambda: kept[0] if kept else path.read_text(errors="replace")
            finally:
                server.terminate()
                server.wait(timeout=60)
                kept.append(path.read_text(errors="replace"))
