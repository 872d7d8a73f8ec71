"""What a CUDA graph does, on a CPU: operations are recorded once, and made again on the same memory.

A tape refuses what a GPU cannot record: reading a value, finding rows by their values, and tensors made of numbers of
Python. It runs nothing of Python when it is replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils._pytree import tree_leaves

from compdiffuser.models import replays, runner

REFUSED = ("_local_scalar_dense", "nonzero", "lift_fresh", "equal", "_unique2", "unique_dim")


class Tape(TorchDispatchMode):
    """Stands for `torch.cuda.CUDAGraph`."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if (name := function.overloadpacket.__name__) in REFUSED:
            raise RuntimeError(f"a CUDA graph cannot record {name}")
        result = function(*args, **(kwargs or {}))
        self.lines.append((function, args, kwargs or {}, result))
        return result

    def replay(self) -> None:
        assert not writing(), "a CUDA graph cannot be replayed into another"
        for function, args, kwargs, result in self.lines:
            again = function(*args, **kwargs)
            for before, after in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if isinstance(before, Tensor) and before.data_ptr() != after.data_ptr():
                    before.copy_(after)


def writing() -> bool:
    return isinstance(_get_current_dispatch_mode(), Tape)


@contextmanager
def recording(pool: object) -> Iterator[Tape]:
    assert not writing(), "a CUDA graph cannot be recorded into another"
    with Tape() as tape:
        yield tape


@pytest.fixture(autouse=True)
def taped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings are tapes."""
    for module in (replays, runner):
        monkeypatch.setattr(module, "recording", recording)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", writing)
