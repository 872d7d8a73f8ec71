"""What is trained, and one update of it: eager, or many captured in one CUDA graph.

A learner gives a module and a loss that draws its own batch from the generator it is handed. On a GPU the whole update
(drawing, forward, backward, clipping, optimizer, and an averaging that belongs to each) is captured once and replayed:
small networks are bound by launches, not by arithmetic.
"""

from __future__ import annotations

import atexit
from typing import Any

import torch
from torch import Tensor, nn

from compdiffuser.runs import processes, rank
from compdiffuser.training.config import TrainConfig


class Learner:
    """What is trained: a module and its loss. Inherit, give both, and override the rest where it is needed."""

    module: nn.Module
    parts: tuple[str, ...] = ()
    """Names of the loss's last dimension, which are logged beside the total."""

    def loss(self, module: nn.Module, generator: torch.Generator) -> Tensor:
        """The loss of `module` (the learner's own, perhaps wrapped) on a batch drawn from `generator`.

        A scalar, or [seeds, parts] for independent networks trained side by side; the sum of it all is minimized.
        """
        raise NotImplementedError

    def after_update(self) -> None:
        """Called after every step of the optimizer, as target networks need it."""


class Updater:
    """Updates of the weights and of their average, eager or as a CUDA graph."""

    def __init__(self, learner: Learner, config: TrainConfig, device: torch.device) -> None:
        self.learner, self.config, self.device = learner, config, device
        self.processes, self.rank = processes(), rank()
        module = learner.module
        self.parameters: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
        on_gpu = device.type == "cuda"
        if on_gpu:
            torch.set_float32_matmul_precision("highest" if config.precision == "float32" else "high")
            torch.backends.cudnn.benchmark = True  # shapes stay the same: the quickest convolution is found once
        self.rate = torch.zeros((), device=device)
        self.decay = torch.zeros((), device=device)
        self.optimizer = torch.optim.AdamW(
            _decaying(self.parameters, config.weight_decay),
            lr=self.rate, betas=(0.9, config.beta2), capturable=on_gpu, fused=True,
        )  # fmt: skip
        self.generator = torch.Generator(device)
        self.total = torch.zeros((), device=device)
        self.graph: torch.cuda.CUDAGraph | None = None
        # Eager updates and the capture share one side stream: gradients must not depend on work outside the graph.
        self.stream = torch.cuda.Stream() if on_gpu else None
        self.module = module
        if self.processes > 1:
            from accelerate import Accelerator

            # Every process takes the first one's weights, so the average starts from those.
            self.module = Accelerator(cpu=not on_gpu).prepare(self.module)
            atexit.unregister(_leave_group)
            atexit.register(_leave_group)
        averaged = config.ema is not None
        self.average = [p.detach().clone() for p in self.parameters] if averaged else self.parameters

    def update(self, step: int, progress: float) -> None:
        """Updates number `step` to `step + updates_per_replay − 1`."""
        # The batches are a function of (seed, process, step): a resumed run needs no generator state.
        self.generator.manual_seed(((self.config.seed * 1_000_003 + self.rank) * 100_000_007 + step) % 2**63)
        self.rate.fill_(self.config.rate(step, progress))
        self.decay.fill_(self.config.decay(step))
        if self.graph is not None:
            self.graph.replay()
        elif self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self._updates()
            torch.cuda.current_stream().wait_stream(self.stream)
        else:
            self._updates()
        if self.config.ema_every > 1 and step % self.config.ema_every == 0:
            self._average()

    def mean_loss(self, updates: int) -> list[float]:
        """The loss and its parts, means over the `updates` since the last call; reading them waits for the GPU."""
        means = (self.total / updates).mean(0) if self.total.ndim else self.total / updates
        self.total.zero_()
        parts = means.tolist() if means.ndim else []
        return [sum(parts), *parts] if parts else [float(means)]

    def meet(self) -> None:
        """Wait for the other processes: one that leaves early takes their connection with it."""
        if self.processes > 1:
            torch.distributed.barrier()

    def agreed(self, seconds: float) -> float:
        """The first process's clock: rates, and the moment to stop, must be the same in all of them."""
        if self.processes == 1 or self.config.time_limit is None:
            return seconds
        clock = torch.tensor([seconds], dtype=torch.float64, device=self.device)
        torch.distributed.broadcast(clock, src=0)
        return clock.item()

    def capture(self) -> None:
        """Record the update as a CUDA graph; recording runs nothing."""
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        with torch.cuda.graph(graph, stream=self.stream):
            self._updates()
        self.graph = graph

    def _updates(self) -> None:
        for _ in range(self.config.updates_per_replay):
            self._update()

    def _update(self) -> None:
        half = self.device.type == "cuda" and self.config.precision == "bf16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            loss = self.learner.loss(self.module, self.generator)
        (loss.sum() if loss.ndim else loss).backward()
        if self.config.clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.config.clip, foreach=True)
        self.optimizer.step()
        # Without gradients of the last update, the next backward pass writes them instead of adding to them.
        self.optimizer.zero_grad(set_to_none=True)
        self.learner.after_update()
        if self.config.ema_every == 1:
            self._average()
        if self.total.shape != loss.shape:
            self.total = torch.zeros_like(loss)
        self.total += loss.detach()

    @torch.no_grad()  # else the average would remember every update
    def _average(self) -> None:
        """average ← decay·average + (1 − decay)·weights"""
        if self.config.ema is not None:
            torch._foreach_mul_(self.average, self.decay)
            torch._foreach_add_(self.average, torch._foreach_mul(self.parameters, 1 - self.decay))

    def state(self) -> dict[str, Any]:
        return {
            "module": self.learner.module.state_dict(),
            "average": self.average if self.config.ema is not None else [],
            "optimizer": self.optimizer.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.learner.module.load_state_dict(state["module"])
        if self.config.ema is not None:
            for mine, saved in zip(self.average, state["average"], strict=True):
                mine.copy_(saved)
        # Before loading, which puts Adam's counts where these flags want them: a run may change from a CPU to a GPU.
        on_gpu, saved = self.device.type == "cuda", state["optimizer"]
        groups = [group | {"capturable": on_gpu, "fused": True} for group in saved["param_groups"]]
        self.optimizer.load_state_dict(saved | {"param_groups": groups})
        # Fused Adam takes its means to lie in memory as the parameters do; those of an older run may not.
        for parameter, means in self.optimizer.state.items():
            for name, mean in means.items():
                if mean.shape == parameter.shape:
                    means[name] = torch.empty_like(parameter).copy_(mean)
        # Loading replaces the rate by a copy; the loop writes to its own tensor.
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate

    def adopt_average(self) -> None:
        """Leave the module with the averaged weights, where they are averaged."""
        with torch.no_grad():
            for parameter, mean in zip(self.parameters, self.average, strict=True):
                parameter.copy_(mean)


def _decaying(parameters: list[Tensor], weight_decay: float) -> list[dict[str, Any]]:
    """Vectors do not decay, all else does: biases too, where they carry a leading dimension of seeds."""
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _leave_group() -> None:
    """Close the connection to other processes before the interpreter ends, whose end it would not survive."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
