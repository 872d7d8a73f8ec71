"""A plan: the merged states, the chunks they were blended from, and what the planner thinks of them.

Plans are kept as `.npz` files of plain arrays; nothing in them is executed when they are read.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compdiffuser.data.mazes import maze as maze_named
from compdiffuser.files import replacing
from compdiffuser.types import Array, UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ARRAYS = ("states", "chunks", "start", "goal", "scores", "candidates")
_LONGEST_JUMP = 0.25
"""A step longer than this many maze units is a jump that no agent can follow."""


@dataclass(frozen=True)
class Plan:
    """A trajectory from `start` to `goal`, composed of K chunks of H states that overlap by O."""

    states: Array
    """[T, D], the chunks merged."""
    chunks: Array
    """[K, H, D], as they were denoised."""
    start: Array
    """[D]"""
    goal: Array
    """[D]"""
    overlap: int
    """O, states shared by neighbouring chunks."""
    score: float = float("nan")
    """Reconstruction error of the chosen candidate; lower is better."""
    overlap_distance: float = float("nan")
    """How far neighbouring chunks disagree where they overlap."""
    candidate: int = 0
    """Number of the chosen candidate: its place among `scores`."""
    scores: Array = field(default_factory=lambda: np.zeros(0))
    """[B], reconstruction error of every candidate; may be empty."""
    confidence: float = 0.0
    """Between 0 and 1: how usual this score is among chunks of the training data."""
    ok: bool = False
    """Whether the plan is certified."""
    seconds: float = 0.0
    """Planning time."""
    maze: str | None = None
    """Layout the plan lives in, a key of `data.mazes`."""
    stride: int = 1
    """Environment steps between its states."""
    candidates: Array | None = None
    """[B, T, D], the other candidates, where they were asked for."""

    def __post_init__(self) -> None:
        if self.states.ndim != 2 or self.chunks.ndim != 3 or self.chunks.shape[2] != self.states.shape[1]:
            raise UserError(
                f"a plan needs states [T, D] and chunks [K, H, D], got {self.states.shape} and {self.chunks.shape}"
            )

    @property
    def n_chunks(self) -> int:
        """K."""
        return len(self.chunks)

    @property
    def length(self) -> float:
        """Path length over the first two planned dimensions."""
        return float(np.linalg.norm(np.diff(self.states[:, :2], axis=0), axis=1).sum())

    def fault(self) -> str | None:
        """Why no agent could follow this plan in its maze: a state in a wall, a jump; None where it could."""
        if not np.isfinite(self.states).all():
            return "has states that are not finite"
        if self.maze is None:
            return None
        layout = maze_named(self.maze)
        path = np.concatenate([self.start[None, :2], self.states[:, :2], self.goal[None, :2]])
        parts = np.linspace(0, 1, self.stride, endpoint=False)[:, None]
        passed = path[:-1, None] + parts * np.diff(path, axis=0)[:, None]  # [T + 1, stride, 2], step by step
        walled = np.flatnonzero(np.append(layout.in_wall(passed.reshape(-1, 2)), layout.in_wall(path[-1:])))
        if len(walled):
            return f"passes through a wall at state {max(walled[0] // self.stride - 1, 0)} of {len(self.states)}"
        jumps = np.linalg.norm(np.diff(path, axis=0), axis=1)
        if jumps.max() > _LONGEST_JUMP * layout.unit * self.stride:
            return f"jumps {jumps.max():.2f} m at state {max(int(jumps.argmax()) - 1, 0)} of {len(self.states)}"
        return None

    def plot(
        self, png: str | os.PathLike[str] | None = None, executed: Array | None = None, title: str | None = None
    ) -> Figure:
        """Walls, chunks in colours, start and goal; the `executed` path [n, 2] where there is one."""
        # Matplotlib takes half a second to import, and most plans are never drawn.
        from compdiffuser.plotting.plans import plot_plan

        layout = None if self.maze is None else maze_named(self.maze)
        return plot_plan(
            self.chunks, maze=layout, start=self.start, goal=self.goal, executed=executed, title=title, png=png
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the candidates, ready for JSON; numbers that are not finite become None."""
        plain: dict[str, Any] = {"n_chunks": self.n_chunks, "length": self.length}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "candidates":
                continue
            plain[item.name] = value.tolist() if isinstance(value, np.ndarray) else value
        for name in ("score", "overlap_distance"):
            plain[name] = plain[name] if np.isfinite(plain[name]) else None
        return plain

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the plan to an `.npz` file, whole or not at all."""
        path = Path(path)
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _ARRAYS}
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, meta=np.array(json.dumps(rest)), **arrays)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan that `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                meta = json.loads(str(file["meta"]))
                arrays = {name: file[name] for name in _ARRAYS if name in file}
            return cls(**arrays, **meta)
        except FileNotFoundError as error:
            raise UserError(f"there is no plan at '{path}'") from error
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise UserError(f"'{path}' is not a plan written by Plan.save: {error}") from error
