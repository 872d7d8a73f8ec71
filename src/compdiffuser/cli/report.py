"""`compdiffuser report`: the tables of README and docs, made from the files under `results/`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Report:
    """Write the tables of README and docs from the files under results/."""

    check: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Change nothing; exit with 1 when a table differs from the results."""
    root: Path = Path()
    """The project's folder, with README.md, docs/ and results/."""

    def run(self) -> int:
        from compdiffuser.reporting.report import outdated

        pages = outdated(self.root, write=not self.check)
        for page in pages:
            print(f"{page}: {'differs from results/' if self.check else 'rewritten'}", file=sys.stderr)
        if not pages:
            print("all tables agree with results/", file=sys.stderr)
        return int(self.check and bool(pages))
