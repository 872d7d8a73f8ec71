"""A plan: the merged states, the chunks they were blended from, and what the planner thinks of them.

Plans are kept as `.npz` files of plain arrays; nothing in them is executed when they are read.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from compdiffuser.checks import brief, is_finite, whole
from compdiffuser.data.claims import claimed
from compdiffuser.domains.mazes import Maze
from compdiffuser.domains.space import PLANE, Space
from compdiffuser.files import replacing
from compdiffuser.planning.judge import UNJUDGED, Verdict
from compdiffuser.planning.search import Origin
from compdiffuser.planning.steering.regions import Region, bare, region, writable
from compdiffuser.planning.steering.steering import Waypoint, waypoint
from compdiffuser.types import Array, UserError, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ARRAYS = ("states", "chunks", "start", "goal", "scores", "candidates")
_NUMBERS = {"score": float, "overlap_distance": float, "confidence": float, "seconds": float, "candidate": int}
MOST_BYTES, MOST_STRIDE = 2**28, 1_024
"""Bytes of an array in a plan's file, and environment steps between two states, that no plan here has."""
UNREADABLE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError, EOFError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@dataclass(frozen=True, repr=False)
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
    """The chosen candidate's place among `scores`."""
    scores: Array = field(default_factory=lambda: np.zeros(0))
    """[B], reconstruction error of every candidate; may be empty."""
    confidence: float = 0.0
    """Between 0 and 1: how usual this score is among chunks of the training data."""
    verdict: Verdict = UNJUDGED
    """Which tests the plan passed and failed."""
    origin: str | None = None
    """What it began from: "noise", a "scaffold" along recorded states, or another candidate that was "refined"."""
    seconds: float = 0.0
    """Planning time."""
    space: Space = PLANE
    """What its numbers mean."""
    maze: Maze | None = None
    """Layout the plan lives in, where it is known."""
    stride: int = 1
    """Environment steps between its states."""
    step_seconds: float | None = None
    """Seconds of an environment step; None where the data did not say."""
    candidates: Array | None = None
    """[B, T, D], all with as many chunks, this one too, where they were asked for."""
    avoid: tuple[Region, ...] = ()
    """Regions that it keeps out of."""
    via: tuple[Waypoint, ...] = ()
    """What it passes on the way, in order."""
    others: tuple[Plan, ...] = ()
    """Plans that take other ways, where they were asked for; not kept in files."""

    def __post_init__(self) -> None:
        if self.states.ndim != 2 or self.chunks.ndim != 3 or self.chunks.shape[2] != self.states.shape[1]:
            raise UserError(
                f"a plan needs states [T, D] and chunks [K, H, D], got {self.states.shape} and {self.chunks.shape}"
            )
        for name in _ARRAYS:
            if (array := getattr(self, name)) is not None and array.dtype.kind not in "fiu":
                raise UserError(f"the {name} of a plan are numbers, not {array.dtype}")
        if self.origin not in (None, *get_args(Origin)):
            raise UserError(f"a plan begins from {', '.join(get_args(Origin))}, not from '{brief(self.origin)}'")
        whole(self, "stride", most=MOST_STRIDE)
        if self.step_seconds is not None and not (is_finite(self.step_seconds) and self.step_seconds > 0):
            raise UserError(f"a step takes some seconds or nobody knows how many, not {brief(self.step_seconds)}")
        whole(self, "overlap", least=0, most=self.chunks.shape[1])
        if not self.start.shape == self.goal.shape == self.states.shape[1:]:
            raise UserError(f"a start and a goal are [D] as states are, not {self.start.shape} and {self.goal.shape}")
        if self.states.shape[1] != len(self.space.dims):
            given = f"states of {self.states.shape[1]} dimensions"
            raise UserError(f"{given} do not lie in a space of {len(self.space.dims)}: {', '.join(self.space.names)}")

    def __repr__(self) -> str:
        """In a line: places alone, since the arrays are long."""
        here, there = ([round(float(x), 3) for x in self.space.places(end)] for end in (self.start, self.goal))
        sizes = f"{counted(len(self.states), 'state')}, {counted(self.n_chunks, 'chunk')}"
        about = f"{sizes}, {self.length:.1f} m, {self.verdict}"
        return f"Plan({here} -> {there}: {about})"

    @property
    def ok(self) -> bool:
        """Whether the plan is certified."""
        return self.verdict.ok

    @property
    def n_chunks(self) -> int:
        """K."""
        return len(self.chunks)

    @property
    def times(self) -> Array | None:
        """[T] seconds from the start, at the rate at which the data was recorded; None where that is not known."""
        return None if self.step_seconds is None else np.arange(len(self.states)) * (self.stride * self.step_seconds)

    @property
    def length(self) -> float:
        """Metres that the agent goes."""
        return float(np.linalg.norm(np.diff(self.space.agent(self.states), axis=0), axis=1).sum())

    def fault(self) -> str | None:
        """Why no agent could follow this plan in its maze: a state in a wall, a jump; None where it could."""
        if not np.isfinite(self.states).all():
            return "has states that are not finite"
        if self.maze is None:
            return None
        whole = np.concatenate([self.start[None], self.states, self.goal[None]])
        faults = [self._fault_of(path, self.maze) for path in self.space.groups(whole).values()]
        return next((fault for fault in faults if fault), None)

    def _fault_of(self, path: Array, layout: Maze) -> str | None:
        """What is wrong with the path [T + 2, 2] of one thing that moves, start and goal included."""
        walled = np.flatnonzero(layout.walled(path, self.stride))
        if len(walled):
            return f"passes through a wall at state {max(walled[0] - 1, 0)} of {len(self.states)}"
        jumps = np.linalg.norm(np.diff(path, axis=0), axis=1)
        if layout.longest_step is not None and jumps.max() > layout.longest_step * self.stride:
            return f"jumps {jumps.max():.2f} m at state {max(int(jumps.argmax()) - 1, 0)} of {len(self.states)}"
        return None

    def plot(
        self, png: str | os.PathLike[str] | None = None, executed: Array | None = None, title: str | None = None
    ) -> Figure:
        """Walls, chunks in colours, start and goal, what steered it; the `executed` path [n, 2] where there is one.

        Its `others` are thin lines.
        Where several things move, each chunk has a panel of its own, unless a path is drawn over all of them.
        """
        # Matplotlib takes half a second to import, and most plans are never drawn.
        from compdiffuser.plotting.chunks import plot_chunks
        from compdiffuser.plotting.drawing import Marks
        from compdiffuser.plotting.plans import plot_plan

        outlines = [outline for each in self.avoid if (outline := bare(each).outline()) is not None]
        marks = Marks(outlines, [np.array(stop.place) for stop in self.via])
        if executed is None and len(self.space.positions) > 1:
            return plot_chunks(
                self.chunks, self.overlap, space=self.space, maze=self.maze, start=self.start, goal=self.goal,
                title=title, png=png, marks=marks,
            )  # fmt: skip
        return plot_plan(
            self.chunks, space=self.space, maze=self.maze, start=self.start, goal=self.goal, executed=executed,
            title=title, png=png, marks=marks, others=[other.states for other in self.others],
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Everything but the candidates, ready for JSON; numbers that are not finite become None."""
        arrays = {name: _finite_list(getattr(self, name)) for name in _ARRAYS if name != "candidates"}
        plain = {"n_chunks": self.n_chunks, "length": self.length, "ok": self.ok, **arrays, **self._rest()}
        for name in ("length", "score", "overlap_distance", "confidence"):
            plain[name] = _finite(plain[name])
        measures = {name: _finite(share) for name, share in self.verdict.measures.items()}
        plain["verdict"] = {
            "failed": list(self.verdict.failed),
            "measures": measures,
            "where": dict(self.verdict.where),
        }
        plain["maze"] = None if self.maze is None else self.maze.name
        plain["times"] = None if self.times is None else self.times.round(6).tolist()
        return plain

    def _rest(self) -> dict[str, Any]:
        """Everything but the arrays, as plain values."""
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in (*_ARRAYS, "others")}
        layout = None if self.maze is None else self.maze.to_dict()
        steered = {
            "avoid": [str(each) for each in self.avoid if writable(each)],
            "via": [str(each) for each in self.via],
        }
        plain = {"verdict": dict(self.verdict.measures), "space": self.space.to_dict(), "maze": layout}
        return {**rest, **plain, **steered}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the plan to an `.npz` file, whole or not at all. Its times, where they are known, are for others."""
        path = Path(path)
        arrays = {name: array for name in (*_ARRAYS, "times") if (array := getattr(self, name)) is not None}
        with replacing(path) as temporary, open(temporary, "wb") as file:
            meta = {**self._rest(), "where": dict(self.verdict.where)}
            np.savez_compressed(file, meta=np.array(json.dumps(meta)), **arrays)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan that `save` wrote."""
        try:
            if os.path.isfile(path) and not zipfile.is_zipfile(path):  # of which NumPy says that it may be pickled
                raise UserError("it is no .npz file")
            with np.load(path, allow_pickle=False) as file:
                _check_sizes(file.zip)
                meta = json.loads(str(file["meta"]))
                arrays = {name: file[name] for name in _ARRAYS if name in file}
            _check_values(arrays)
            meta |= {name: kind(meta[name]) for name, kind in _NUMBERS.items() if name in meta}
            measures = {str(test): float(share) for test, share in meta["verdict"].items()}
            verdict = Verdict(measures, _sentences(meta.pop("where", {})))
            meta |= {"verdict": verdict, "space": Space.from_dict(meta["space"])}
            meta["avoid"] = tuple(region(text) for text in meta.get("avoid", ()))
            meta["via"] = tuple(waypoint(text) for text in meta.get("via", ()))
            meta["maze"] = None if meta["maze"] is None else Maze.from_dict(meta["maze"])
            return cls(**arrays, **meta)
        except FileNotFoundError as error:
            raise UserError(f"there is no plan at '{path}'") from error
        except UNREADABLE as error:
            raise UserError(f"'{path}' is not a plan written by Plan.save: {brief(error)}") from error


def _check_sizes(archive: zipfile.ZipFile) -> None:
    """Raises UserError where arrays are larger than a plan's, or than what the file holds of them."""
    for name, size, held in claimed(archive):
        if not 0 <= size <= min(held, MOST_BYTES):
            raise UserError(f"'{name}' is said to have {size} bytes; a plan's has at most {MOST_BYTES}")


def _check_values(arrays: Mapping[str, Array]) -> None:
    """Raises UserError where a path is empty or not finite, or scores are no list."""
    for name in ("states", "chunks", "start", "goal"):
        with np.errstate(over="ignore"):
            if not arrays[name].size or not np.isfinite(arrays[name].astype(np.float32)).all():
                raise UserError(f"'{name}' is empty or holds numbers that are not finite")
    if arrays["scores"].ndim != 1:
        raise UserError(f"'scores' are [B], not of shape {list(arrays['scores'].shape)}")


def _sentences(found: Mapping[str, Any]) -> dict[str, str]:
    """What a verdict says of each test. Raises UserError where that is no text."""
    if wrong := [test for test, place in found.items() if not isinstance(place, str)]:
        raise UserError(f"where '{wrong[0]}' failed is told in words, not by {brief(found[wrong[0]])}")
    return dict(found)


def _finite(number: float) -> float | None:
    """As JSON has it."""
    return number if np.isfinite(number) else None


def _finite_list(array: Array) -> list[Any]:
    """The same of an array."""
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    found: list[Any] = plain.tolist()
    return found
