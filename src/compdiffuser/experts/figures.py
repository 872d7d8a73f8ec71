"""The lines of a training log: what the bodies did while they learned, which costs nothing to know."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compdiffuser.domains.body import BODIES
from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.simulators import Simulators
from compdiffuser.experts.tasks import length, task_of
from compdiffuser.files import replacing
from compdiffuser.types import Array

Rows = list[dict[str, float]]
WALK = 200
"""Steps for which distances are given."""
REACH = 0.5
"""Metres between a ball and its target at which it is there."""


class Figures:
    """Means over all steps since they were last taken."""

    def __init__(self, config: ExpertConfig, bodies: Simulators) -> None:
        self.bodies, self.task, self.body = bodies, task_of(config), BODIES[config.body]
        self.told = "arrived" if config.task == "ball" else "metres"
        self.running, self.done = np.zeros(bodies.count), list[float]()
        self.steps: list[tuple[float, float]] = []

    def add(self) -> None:
        """Take the step that the bodies just took."""
        parts = self.bodies.transitions.split(self.bodies.rows)
        command, moved = parts["command"], parts["displacement"]
        self.running += self.task.reward(command, moved, parts["ingredients"], parts["action"])
        ended = self.bodies.part("ended")[:, 0] > 0
        self.done += self.running[ended].tolist()
        self.running[ended] = 0.0
        down = self.body.fallen(self.bodies.part("observation"))
        self.steps.append((self._success(command, moved), float(down.mean())))

    def _success(self, command: Array, moved: Array) -> float:
        if self.told == "arrived":
            return float((length(command - moved) < REACH).mean())
        return WALK * float((command * moved).sum(-1).mean())

    def take(self) -> dict[str, float]:
        """`metres` per 200 steps in the commanded direction, or the share of steps with the ball `arrived`.

        `down` is the share of steps on the ground, `return` the mean of the episodes that ended.
        """
        success, down = np.mean(self.steps, axis=0)
        figures = {self.told: float(success), "down": float(down)}
        if self.done:
            figures["return"] = float(np.mean(self.done))
        self.steps, self.done = [], []
        return figures

    def state(self) -> dict[str, Any]:
        """What was gathered since figures were taken."""
        return {"running": self.running.tolist(), "done": list(self.done), "steps": list(self.steps)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.running[:], self.done = state["running"], list(state["done"])
        self.steps = [(success, down) for success, down in state["steps"]]

    def in_short(self, row: dict[str, float]) -> str:
        """What a line says of the bodies."""
        return ", ".join(f"{name} {row[name]:.3g}" for name in (self.told, "down", "return") if name in row)


def write_log(path: Path, rows: Rows) -> None:
    """Lines as a table; a line without a measurement leaves its cells empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _digits(value) for name, value in row.items()} for row in rows)
    with replacing(path) as temporary:
        temporary.write_text(text.getvalue())


def _digits(value: float) -> str:
    """Whole numbers in full, others to six digits."""
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"
