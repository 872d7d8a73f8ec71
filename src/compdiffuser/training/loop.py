"""The training loop: any learner, on a CPU, on one GPU as one CUDA graph, or on several processes through accelerate.

A learner gives a module and a loss that draws its own batch from the generator it is handed. On a GPU the whole update
(drawing, forward, backward, clipping, optimizer, averaging), or many of them, is captured once and replayed: small
networks are bound by launches, not by arithmetic.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from compdiffuser.training.config import TrainConfig
from compdiffuser.training.log import TrainLog
from compdiffuser.training.resume import load_resume, save_resume

WARM_REPLAYS = 3  # eager ones before capture: they allocate what the graph will reuse
CHECKPOINT_SECONDS = 300.0  # at most so much of a slow training is lost when it is killed


class Learner(Protocol):
    """What is trained. Two further members are used where a learner has them:

    `parts`, names of the loss's last dimension, which are logged beside the total, and `after_update()`, which is
    called after every step of the optimizer, as target networks need it.
    """

    @property
    def module(self) -> nn.Module: ...

    def loss(self, module: nn.Module, generator: torch.Generator) -> Tensor:
        """The loss of `module` (the learner's own, perhaps wrapped) on a batch drawn from `generator`.

        A scalar, or [seeds, parts] for independent networks trained side by side; the sum of it all is minimized.
        """


@dataclass(frozen=True)
class Outcome:
    """What a training run came to."""

    steps: int
    seconds: float
    preparation: float
    """Seconds of compiling and capturing before."""
    loss: float
    """Of the last line of the log; where seeds are trained side by side, their mean."""
    peak_memory: int
    """Bytes on the GPU; 0 on a CPU."""


class Updater:
    """Updates of the weights and of their average, eager or as a CUDA graph."""

    def __init__(self, learner: Learner, config: TrainConfig, device: torch.device) -> None:
        self.learner, self.config, self.device = learner, config, device
        self.after_update: Callable[[], None] | None = getattr(learner, "after_update", None)
        self.processes = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        module = learner.module
        self.parameters: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
        on_gpu = device.type == "cuda"
        if on_gpu:
            torch.set_float32_matmul_precision("highest" if config.precision == "float32" else "high")
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
        if self.after_update is not None:
            self.after_update()
        if self.config.ema is not None:
            with torch.no_grad():  # else the average would remember every update
                # average ← decay·average + (1 − decay)·weights
                torch._foreach_mul_(self.average, self.decay)
                torch._foreach_add_(self.average, torch._foreach_mul(self.parameters, 1 - self.decay))
        if self.total.shape != loss.shape:
            self.total = torch.zeros_like(loss)
        self.total += loss.detach()

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


def fit(
    learner: Learner, config: TrainConfig, device: torch.device, out: Path, *, progress: bool = True,
    watch: Callable[[float, list[Tensor]], None] | None = None,
    on_checkpoint: Callable[[int], None] | None = None, about: Mapping[str, Any] | None = None,
) -> Outcome:  # fmt: skip
    """Train, checkpointing into `out` and continuing from a checkpoint found there; ends with averaged weights.

    `watch` sees the seconds of training and the averaged weights whenever a line is logged; `on_checkpoint` is told
    the number of updates whenever `config.checkpoint_every` more were made. `about` tells what the run is of, such as
    its data: a folder that holds a run of something else is refused.
    """
    on_gpu = device.type == "cuda"
    updater = Updater(learner, config, device)
    replay = config.updates_per_replay
    about = about or {}
    step, before = load_resume(out, updater, config, about)
    begun = kept = time.perf_counter()
    preparation = 0.0
    warm = step + WARM_REPLAYS * replay
    losses = step
    show, write = progress and updater.rank == 0, updater.rank == 0
    told = TrainLog(out, config, step, before, getattr(learner, "parts", ()), show=show, write=write)
    with _stoppable() as stopped, told as log:
        while True:
            preparing = on_gpu and step <= warm
            seconds = updater.agreed(before + (0.0 if preparing else time.perf_counter() - begun))
            done = config.progress(step, seconds)
            if done >= 1:
                if step > losses:
                    log.write(step, updater.mean_loss(step - losses), config.rate(step, done), seconds)
                break
            if on_gpu and step == warm:
                if updater.processes == 1:
                    updater.capture()
                # Compiling and capturing are no training: the clock that ends it starts now.
                kept = time.perf_counter()
                preparation = kept - begun
                begun = kept
            updater.update(step, done)
            step += replay
            if _passed(config.log_every, step, replay):
                # Reading the loss waits for the GPU, which also keeps the clock honest.
                log.write(step, updater.mean_loss(step - losses), config.rate(step, done), seconds)
                losses = step
                if watch is not None:
                    watch(seconds, updater.average)
            due, now = _passed(config.checkpoint_every, step, replay), time.perf_counter()
            if (due or stopped() or now - kept > CHECKPOINT_SECONDS) and updater.rank == 0:
                save_resume(out, updater, config, step, before + (0.0 if preparing else now - begun), about)
                kept = now
            if due and updater.rank == 0 and on_checkpoint is not None:
                on_checkpoint(step)
            if stopped():
                raise KeyboardInterrupt(f"stopped after {step} updates, which are kept; the same command continues")
    if on_gpu:
        torch.cuda.synchronize()
    seconds = before + time.perf_counter() - begun
    if updater.rank == 0:
        save_resume(out, updater, config, step, seconds, about)
    updater.adopt_average()
    updater.meet()
    peak = torch.cuda.max_memory_allocated() if on_gpu else 0
    return Outcome(step, seconds, preparation, log.last_loss, peak)


@contextmanager
def _stoppable() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed: what is at hand can be finished, and kept. Pressed again, it stops at once."""
    before = signal.getsignal(signal.SIGINT)
    pressed = threading.Event()
    # Others than the main thread cannot wait for it, and a process in the background ignores it.
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield pressed.is_set
        return

    def press(number: int, frame: object) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, press)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _passed(every: int, step: int, replay: int) -> bool:
    """Whether the replay that ended at `step` passed a multiple of `every`."""
    return step // every > (step - replay) // every
