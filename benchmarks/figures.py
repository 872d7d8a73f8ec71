"""Measured figures as `compdiffuser report` reads them: a file's `benchmarks`, each with a name, a value and a unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compdiffuser import Plan
from compdiffuser.files import read_json, write_json


@dataclass
class Figures:
    """A machine's figures; each is written when it is noted, in the place of an earlier one of its name."""

    out: Path
    command: str
    hardware: str
    group: str | None = None
    """The table that lists them; without one, the planner's own."""
    add: bool = False
    """Whether what an earlier call measured stays in the file."""
    about: dict[str, Any] = field(default_factory=dict)
    """What else the file tells."""
    entries: dict[str, dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        before = read_json(self.out)["benchmarks"] if self.add and self.out.exists() else []
        self.entries = {entry["name"]: entry for entry in before}

    def note(self, name: str, value: float, unit: str, **more: Any) -> None:
        """`more` may hold a `target`, and a `bound` ("at least") where more is better."""
        rounded = round(value, 4) if abs(value) >= 0.001 else float(f"{value:.3g}")
        told = {"name": name, "value": rounded, "unit": unit, "hardware": self.hardware}
        grouped = {"group": self.group} if self.group else {}
        self.entries[name] = {**told, **grouped, **more}
        print(self.entries[name], flush=True)
        write_json(self.out, {"command": self.command, **self.about, "benchmarks": list(self.entries.values())})


def certificates(plans: Sequence[Plan]) -> tuple[int, int]:
    """How many plans are certified, and how many of these pass through a wall or leave the map."""
    certified = [plan for plan in plans if plan.ok]
    return len(certified), sum(plan.fault() is not None for plan in certified)
