"""Counters of a running server, as Prometheus reads them: plain text, no library."""

from __future__ import annotations

import resource
import threading
from collections import Counter
from collections.abc import Callable, Iterable

BATCHES = (1, 2, 4, 8, 16, 32)
SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Histogram:
    def __init__(self, edges: Iterable[float]) -> None:
        self.edges = tuple(edges)
        self.counts = [0] * (len(self.edges) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[sum(value > edge for edge in self.edges)] += 1
        self.total += value

    def lines(self, name: str) -> Iterable[str]:
        below = 0
        for edge, count in zip((*self.edges, "+Inf"), self.counts, strict=True):
            below += count
            yield f'{name}_bucket{{le="{edge}"}} {below}'
        yield f"{name}_sum {self.total:.6f}"
        yield f"{name}_count {below}"


class Metrics:
    """Written by the planning thread and the event loop, read by `/metrics`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._plans: Counter[str] = Counter()
        self._drives: Counter[str] = Counter()
        self._batch = Histogram(BATCHES)
        self._wave = Histogram(SECONDS)
        self._answer = Histogram(SECONDS)

    def request(self, route: str, status: int) -> None:
        with self._lock:
            self._requests[route, status] += 1

    def plan(self, outcome: str, seconds: float | None = None) -> None:
        """A plan was `certified`, `uncertified`, `refused`, `failed`, `late`, `stopped` or `cancelled`."""
        with self._lock:
            self._plans[outcome] += 1
            if seconds is not None:
                self._answer.add(seconds)

    def drive(self, outcome: str) -> None:
        with self._lock:
            self._drives[outcome] += 1

    def batch(self, problems: int, seconds: float) -> None:
        with self._lock:
            self._batch.add(problems)
            self._wave.add(seconds)

    def text(self, waiting: int, running: int) -> str:
        lines: list[str] = []

        def family(name: str, kind: str, told: str, samples: Callable[[str], Iterable[str]]) -> None:
            full = f"compdiffuser_{name}"
            lines.extend([f"# HELP {full} {told}", f"# TYPE {full} {kind}", *samples(full)])

        with self._lock:
            family("requests_total", "counter", "HTTP requests.", lambda name: (
                f'{name}{{route="{route}",status="{status}"}} {n}' for (route, status), n in self._requests.items()
            ))  # fmt: skip
            for name, counts, told in (("plans_total", self._plans, "Plans asked for, by outcome."),
                                       ("drives_total", self._drives, "Drives, by outcome.")):  # fmt: skip
                family(name, "counter", told, lambda full, counts=counts: (  # type: ignore[misc]
                    f'{full}{{outcome="{outcome}"}} {n}' for outcome, n in counts.items()
                ))  # fmt: skip
            family("batch_problems", "histogram", "Problems per batch.", self._batch.lines)
            family("wave_seconds", "histogram", "Seconds per wave of candidates.", self._wave.lines)
            family("plan_seconds", "histogram", "Seconds from request to plan.", self._answer.lines)
        family("waiting", "gauge", "Requests in the queue.", lambda name: [f"{name} {waiting}"])
        family("running", "gauge", "Requests being planned.", lambda name: [f"{name} {running}"])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        family("peak_memory_bytes", "gauge", "Peak memory of the process.", lambda name: [f"{name} {peak}"])
        return "\n".join(lines) + "\n"
