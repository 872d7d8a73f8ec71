"""Denoising as it happens: from the planning thread to one client, as server-sent events.

A client that reads slowly misses frames, never the plan: of frames not yet sent only the latest is kept.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.sample import INITIAL
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.progress import Round
from compdiffuser.planning.search import Search
from compdiffuser.types import Array
from compdiffuser.web.explaining import pieces

BETWEEN_FRAMES = 0.06  # seconds
SHOWN_STATES = 160  # of a candidate's finished path
POINTS = 20  # states shown of each chunk while it is denoised
SCALE = 100  # frames hold whole hundredths of a unit
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}  # a proxy must pass every event on at once
HEARTBEAT = 10.0  # seconds of silence after which a comment keeps the connection open


class Mailbox:
    """Events from any thread to one reader in the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: list[tuple[str, Any]] = []
        self._filled = asyncio.Event()

    def post(self, kind: str, data: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody reads any more
            self._loop.call_soon_threadsafe(self._put, kind, data)

    def _put(self, kind: str, data: Any) -> None:
        if kind == "frame" and self._events:
            before, shown = self._events[-1]
            if before == "frame" and shown["round"] > 0:  # the noise that all begins with is always sent
                self._events.pop()
        self._events.append((kind, data))
        self._filled.set()

    async def read(self) -> AsyncIterator[str]:
        """Events as text, until one of the kind `ended` comes."""
        while True:
            try:
                await asyncio.wait_for(self._filled.wait(), HEARTBEAT)
            except TimeoutError:
                yield ": waiting\n\n"
                continue
            events, self._events = self._events, []
            self._filled.clear()
            for kind, data in events:
                if kind == "ended":
                    return
                yield event(kind, data)


def event(kind: str, data: Any) -> str:
    """One server-sent event; text is taken to be JSON already."""
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"), allow_nan=False)
    return f"event: {kind}\ndata: {text}\n\n"


class Film:
    """Frames of one search, thinned in time and along each chunk."""

    def __init__(
        self, planner: Planner, search: Search, mailbox: Mailbox, columns: Sequence[int] | None = None
    ) -> None:
        self.planner = planner
        self.columns = list(columns or planner.space.columns)
        """Columns of a planned state that are shown."""
        self.search = search
        self.mailbox = mailbox
        self.wave = 1
        self._last = 0.0
        self._noise: Array = np.zeros(0)

    def on_round(self, problem: int, seen: Round) -> None:
        chains = list(seen.of(problem))
        if not chains:
            return  # this part of the batch is about others
        if seen.index == 0:
            self._begin(seen, chains)
        now = time.monotonic()
        if seen.index == 0 or seen.index == seen.count - 1 or now - self._last >= BETWEEN_FRAMES:
            self._last = now
            self.mailbox.post("frame", {"round": seen.index + 1, "rounds": seen.count, **self._shown(seen, chains)})

    def on_wave(self) -> None:
        best = self.search.best
        told = {"tried": len(self.search.candidates), "certified": best.certified, "score": finite(best.score)}
        self.mailbox.post("scored", told)
        self.wave += 1

    def _begin(self, seen: Round, chains: list[tuple[int, slice]]) -> None:
        """A new wave, or the part of it with this origin, and the noise where chunks begin with nothing else."""
        _, horizon, dim = seen.estimates.shape
        told = {
            "wave": self.wave,
            "origin": seen.origin,
            "refined": seen.origin == "refined",
            "candidates": [{"number": number, "n_chunks": own.stop - own.start} for number, own in chains],
            "points": min(POINTS, horizon),
            "columns": self.columns,
            "scale": SCALE,
        }
        self.mailbox.post("wave", told)
        if seen.origin == "noise":
            key = seen.chains.key[_rows(chains)]
            noise = gaussian(key, torch.full_like(key, INITIAL), horizon, dim)
            self._noise = _thinned(noise).cpu().numpy()
            shown = {"rows": list(range(len(self._noise))), "points": self._points(self._noise)}
            self.mailbox.post("frame", {"round": 0, "rounds": seen.count, **shown})

    def _shown(self, seen: Round, chains: list[tuple[int, slice]]) -> dict[str, list[int]]:
        """Which rows are shown, and the columns of every shown state of each, one after another.

        A chunk that began from noise and has not moved is still that noise; one that began from a scaffold or from
        another candidate is left out until it has moved, since it never was noise alone.
        """
        estimates = _thinned(seen.estimates[_rows(chains)]).cpu().numpy()
        moved = np.abs(estimates).sum(axis=(1, 2)) > 0
        if seen.origin == "noise":
            estimates = np.where(moved[:, None, None], estimates, self._noise)
            moved[:] = True
        return {"rows": np.flatnonzero(moved).tolist(), "points": self._points(estimates[moved])}

    def _points(self, chunks: Array) -> list[int]:
        states = self.planner.normalizer.denormalize(chunks)[..., self.columns]
        points: list[int] = np.rint(np.nan_to_num(states) * SCALE).astype(int).ravel().tolist()
        return points


def _thinned(chunks: torch.Tensor) -> torch.Tensor:
    index = torch.linspace(0, chunks.shape[1] - 1, min(POINTS, chunks.shape[1])).round().long()
    return chunks[:, index.to(chunks.device)]


def _rows(chains: list[tuple[int, slice]]) -> slice:
    """All rows of a problem; its chains lie one after another."""
    return slice(chains[0][1].start, chains[-1][1].stop)


def finite(number: float) -> float | None:
    """As JSON has it."""
    return round(number, 5) if math.isfinite(number) else None


def summary(planner: Planner, search: Search, columns: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """Candidates so far, best first, with their paths: places, or other `columns` of a planned state."""
    columns = list(columns or planner.space.columns)
    return [
        {
            "number": candidate.number,
            "n_chunks": len(candidate.chunks),
            "score": finite(candidate.score),
            "certified": candidate.certified,
            "origin": candidate.origin,
            "refined": candidate.refined,
            "measures": {name: finite(share) for name, share in candidate.verdict.measures.items()},
            "path": _path(planner.states(candidate)[:, columns]),
            "failed": pieces(planner, search, candidate, columns),
        }
        for candidate in search.ranked()
    ]


def _path(states: Array) -> list[list[float]]:
    """States [T, n], thinned."""
    index = np.linspace(0, len(states) - 1, min(len(states), SHOWN_STATES)).astype(int)
    path: list[list[float]] = np.nan_to_num(states[index].astype(float)).round(3).tolist()
    return path
