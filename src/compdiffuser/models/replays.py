"""Computations that are asked for again and again, recorded once as CUDA graphs and replayed from then on.

A GPU takes small computations faster than Python can ask for them. Recording takes longer than computing, so it waits
until the same structure is asked for again; what is recorded is bounded, and what was not asked for lately is let go.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

AGAIN = 2
"""Times that a structure is asked for before it is recorded."""
LET_GO = -6
"""Where its count begins anew once its recording was let go: more structures are in use than there is room for."""
MOST_ROUNDS = 256
"""Of one recording; longer loops would take seconds to record."""
MOST_ROWS = 2048
"""Of its first input; with more, a GPU is busy by itself."""
ROOM = 1024
"""Rounds recorded at a time, in all."""
LEAST = 32
"""Rounds that a recording counts for, at least."""
MOST_ASKED = 1024
"""Structures that are remembered."""
LOCK = threading.RLock()
"""One GPU computes one thing at a time, in buffers of its own."""

log = logging.getLogger(__name__)

Compute = Callable[..., Tensor]
"""`compute(*inputs) -> result`, whose work depends on no value of its inputs."""
Record = Callable[[Compute, Sequence[Tensor]], Callable[[Sequence[Tensor]], Tensor]]
"""`record(compute, inputs)(inputs) -> result`, for other inputs of the same shapes too."""


class Replays:
    """Recordings by what they compute; the `Whole` of `compose.sample`."""

    def __init__(self, record: Record, again: int = AGAIN, room: int = ROOM) -> None:
        self.record, self.again, self.room = record, again, room
        self.asked: OrderedDict[Hashable, float] = OrderedDict()
        """How often each structure was asked for, the latest last."""
        self.kept: OrderedDict[Hashable, tuple[int, Callable[[Sequence[Tensor]], Tensor]]] = OrderedDict()
        """Rounds and recording of each structure, the latest last."""

    def __call__(
        self, structure: Hashable, rounds: int, prepare: Callable[[], Compute], inputs: Sequence[Tensor]
    ) -> Tensor:
        """`prepare()(*inputs)`, computed anew or replayed, with the same bits."""
        if rounds > MOST_ROUNDS or len(inputs[0]) > MOST_ROWS:
            return prepare()(*inputs)
        key = (structure, tuple((each.shape, each.dtype) for each in inputs))
        with LOCK:
            if key in self.kept or (self._due(key) and self._recorded(key, rounds, prepare(), inputs)):
                self.kept.move_to_end(key)
                return self.kept[key][1](inputs)
        result = prepare()(*inputs)
        with LOCK:  # counted once it was computed: before, another thread must not record it
            self._count(key)
        return result

    def _due(self, key: Hashable) -> bool:
        """Whether a structure has been asked for often enough, this time included."""
        return self.asked.get(key, 0) + 1 >= self.again

    def _count(self, key: Hashable) -> None:
        self.asked[key] = self.asked.get(key, 0) + 1
        self.asked.move_to_end(key)
        if len(self.asked) > MOST_ASKED:
            self.asked.popitem(last=False)

    def _recorded(self, key: Hashable, rounds: int, compute: Compute, inputs: Sequence[Tensor]) -> bool:
        """Record; false where that failed, for want of memory for example. It is not tried again then."""
        try:
            recording = self.record(compute, inputs)
        except RuntimeError as error:
            log.warning("a loop could not be recorded as a CUDA graph: %s", error)
            self.asked[key] = -float("inf")
            return False
        self.kept[key] = max(rounds, LEAST), recording
        while sum(size for size, _ in self.kept.values()) > self.room and len(self.kept) > 1:
            self.asked[self.kept.popitem(last=False)[0]] = LET_GO
        return True


class Recorded:
    """A computation as a CUDA graph over buffers of its own. Recording runs nothing."""

    def __init__(self, compute: Compute, inputs: Sequence[Tensor], pool: Any = None) -> None:
        self.compute = compute  # holds what the graph reads beside its inputs
        self.inputs = [each.clone() for each in inputs]
        with recording(pool) as self.graph:
            self.out = compute(*self.inputs)

    def __call__(self, inputs: Sequence[Tensor]) -> Tensor:
        torch._foreach_copy_(self.inputs, list(inputs))
        self.graph.replay()
        return self.out.clone()


@contextmanager
def recording(pool: Any) -> Iterator[torch.cuda.CUDAGraph]:
    """Record what is asked of the GPU meanwhile, which must have been computed before. Other threads may go on."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
    try:
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            yield graph
    finally:
        torch.cuda.set_stream(stream)  # a recording that fails leaves its own behind
