"""A denoiser ready to sample: evaluation mode, batches cut to size, and on a GPU one CUDA graph per batch size.

A sampling call asks for the same few batch sizes again and again. Sizes are rounded up to one of four per power of two,
so that a handful of graphs serves every chain length and number of candidates. Loops that come again are recorded as a
whole (`Runner.whole`).
"""

from __future__ import annotations

import copy
import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.models.denoiser import Denoiser
from compdiffuser.models.encoder import fewest
from compdiffuser.models.network import LEAST_ROWS
from compdiffuser.models.onnx import OnnxDenoiser
from compdiffuser.models.replays import LOCK, Recorded, Replays, recording
from compdiffuser.types import UserError

CPU_ROWS = 256
GPU_ROWS = 16_384
"""Of networks with up to `USUAL` parameters; a larger one takes fewer, since each of its rows needs more memory."""
USUAL = 6_000_000


class Runner:
    """Same contract as the denoiser it runs; keeps a copy of its own, so training can go on with the original."""

    def __init__(self, denoiser: Denoiser | OnnxDenoiser, device: torch.device, *, compiled: bool = False) -> None:
        on_gpu = device.type == "cuda"
        if isinstance(denoiser, OnnxDenoiser) and (on_gpu or compiled):
            raise UserError("an ONNX network runs on the CPU, and is not compiled")
        self.denoiser = copy.deepcopy(denoiser).to(device).eval().requires_grad_(False)
        if on_gpu and isinstance(self.denoiser, Denoiser):
            self.denoiser.compute_in(torch.float16)
        self.one_size = False
        """Whether every batch is filled up to `most_rows`."""
        if compiled and isinstance(self.denoiser, Denoiser):
            # Worth some seconds where tens of thousands of chunks follow.
            self.one_size = on_gpu and not self.denoiser.network.any_rows
            self.denoiser.compile_network(dynamic=not self.one_size)
        self.device = device
        self.most_rows = rows_at_once(sum(p.numel() for p in self.denoiser.parameters())) if on_gpu else CPU_ROWS
        config = denoiser.config
        states = [config.horizon // config.network.grain]
        states += [fewest(config.overlap)] if config.neighbours == "encoder" else []
        self.least_rows = math.ceil(LEAST_ROWS / min(states))
        self.graphs: dict[int, Captured] = {}
        # Graphs run one after another, so their intermediate results can share memory.
        self.pool = torch.cuda.graph_pool_handle() if on_gpu else None
        self.whole = Replays(partial(Recorded, pool=self.pool)) if on_gpu else None
        """Runs whole loops around this denoiser for `compose.sample`; None where nothing is gained by that."""

    @torch.no_grad()
    def __call__(self, x: Tensor, sigma: Tensor, conditions: Conditions) -> Tensor:
        """x [M, H, D], sigma [M] -> x₀ [M, H, D]"""
        if len(x) <= self.most_rows:
            return self._run(x, sigma, conditions)
        pieces = []
        for begin in range(0, len(x), self.most_rows):
            rows = slice(begin, begin + self.most_rows)
            pieces.append(self._run(x[rows], sigma[rows], conditions[rows]))
        return torch.cat(pieces)

    def _run(self, x: Tensor, sigma: Tensor, conditions: Conditions) -> Tensor:
        if self.device.type != "cuda":
            return self._at_least(x, sigma, conditions)
        size = self.most_rows if self.one_size else rounded(len(x))
        with LOCK:
            if size not in self.graphs:
                self.graphs[size] = Captured(self.denoiser, size, x, sigma, conditions, self.pool)
            return self.graphs[size](x, sigma, conditions)

    def _at_least(self, x: Tensor, sigma: Tensor, conditions: Conditions) -> Tensor:
        """On a CPU, few rows are repeated: each then has the same bits alone and among others."""
        rows = len(x)
        if 0 < rows < self.least_rows:
            again = torch.arange(self.least_rows) % rows
            x, sigma, conditions = x[again], sigma[again], conditions.map(lambda each: each[again])
        return self.denoiser(x, sigma, conditions)[:rows]


class Captured:
    """The denoiser at one batch size, as a CUDA graph over buffers of its own."""

    def __init__(
        self, denoiser: Denoiser | OnnxDenoiser, size: int, x: Tensor, sigma: Tensor, conditions: Conditions, pool: Any
    ) -> None:
        def buffer(tensor: Tensor) -> Tensor:
            return tensor.new_zeros(size, *tensor.shape[1:])

        self.denoiser = denoiser
        self.x, self.sigma, self.conditions = buffer(x), buffer(sigma), conditions.map(buffer)
        self.inputs = (self.x, self.sigma, *self.conditions.tensors())
        self._forward()  # loads its kernels
        with recording(pool) as self.graph:
            self.out = self._forward()

    def _forward(self) -> Tensor:
        return self.denoiser(self.x, self.sigma, self.conditions)

    def __call__(self, x: Tensor, sigma: Tensor, conditions: Conditions) -> Tensor:
        rows = len(x)
        torch._foreach_copy_([own[:rows] for own in self.inputs], [x, sigma, *conditions.tensors()])
        if torch.cuda.is_current_stream_capturing():  # one graph cannot replay another, but do the same work
            return self._forward()[:rows]
        self.graph.replay()
        return self.out[:rows].clone()


def rows_at_once(parameters: int) -> int:
    """How many rows a GPU runs at a time: 16,384 of our usual network, 1,024 of the paper's U-Net."""
    rows = GPU_ROWS
    while rows > CPU_ROWS and rows * parameters > GPU_ROWS * USUAL:
        rows //= 2
    return rows


def rounded(rows: int) -> int:
    """The next of four sizes per power of two, at least 16."""
    step = max(2 ** (math.ceil(math.log2(max(rows, 16))) - 3), 4)
    return math.ceil(max(rows, 16) / step) * step
