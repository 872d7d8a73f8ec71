"""The training loop: any learner, on a CPU, on one GPU as one CUDA graph, or on several processes by accelerate."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from compdiffuser.runs import all_finite, diverged
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.log import TrainLog
from compdiffuser.training.resume import load_resume, save_resume
from compdiffuser.training.updater import Learner, Updater
from compdiffuser.types import UserError

__all__ = ["WARM_REPLAYS", "Learner", "Moment", "Outcome", "Stopped", "Updater", "fit"]

WARM_REPLAYS = 3  # eager ones before capture: they allocate what the graph will reuse
CHECKPOINT_SECONDS = 300.0  # a slow training that is killed loses at most this much


@dataclass(frozen=True)
class Moment:
    """Where a training run is, those that it continues included."""

    update: int
    """Updates made."""
    seconds: float
    """Seconds of training."""
    done: float
    """Share of the training, in [0, 1]: of its updates or of its time limit, whichever ends it sooner."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C ended a run after its last update was kept."""

    def __init__(self, updates: int, seconds: float) -> None:
        super().__init__(f"stopped after {updates} updates, which are kept; the same command continues")
        self.updates, self.seconds = updates, seconds


Watch = Callable[[Moment, list[Tensor]], None]
"""Sees how far the training is, and the averaged weights."""


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


def fit(
    learner: Learner, config: TrainConfig, device: torch.device, out: Path, *, progress: bool = True,
    watch: Watch | None = None, on_checkpoint: Callable[[int], None] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Outcome:  # fmt: skip
    """Train, checkpointing into `out` and continuing from a checkpoint found there; ends with averaged weights.

    `watch` is called at the beginning and whenever a line is logged, and its time is no training; `on_checkpoint` is
    given the number of updates whenever `config.checkpoint_every` more were made. `about` describes the run, such as
    its data: a folder that holds a run of something else is refused.

    Raises UserError at the first line of the log whose loss is not finite, and at the first checkpoint whose weights
    are not: the checkpoint before it stays.
    """
    run = _Run(Updater(learner, config, device), config, out, about or {})
    first = run.updater.rank == 0
    told = TrainLog(out, config, run.step, run.before, learner.parts, show=progress and first, write=first)
    run.show(watch, run.before)
    with _stoppable() as stopped, told as log:
        while True:
            preparing = run.preparing
            seconds = run.updater.agreed(run.seconds(preparing))
            done = config.progress(run.step, seconds)
            if done >= 1:
                if run.step > run.logged:
                    run.write(log, done, seconds)
                break
            if preparing and run.step == run.warm:
                run.prepare()
            run.updater.update(run.step, done)
            run.step += config.updates_per_replay
            if run.passed(config.log_every):
                run.write(log, done, seconds)
                run.show(watch, seconds)
            due = run.passed(config.checkpoint_every)
            run.keep(preparing, at_once=due or stopped(), before=on_checkpoint if due else None)
            if stopped():
                raise Stopped(run.step, run.seconds(preparing))
    return run.finish(log.last_loss)


class _Run:
    """A run under way: its step, its clock, and what is kept of it."""

    def __init__(self, updater: Updater, config: TrainConfig, out: Path, about: Mapping[str, Any]) -> None:
        self.updater, self.config, self.out, self.about = updater, config, out, about
        self.on_gpu = updater.device.type == "cuda"
        self.step, self.before = load_resume(out, updater, config, about)
        self.saved = self.step
        self.begun = self.kept = time.perf_counter()
        self.preparation = 0.0
        self.warm = self.step + WARM_REPLAYS * config.updates_per_replay
        self.logged = self.step

    @property
    def preparing(self) -> bool:
        """Whether the next update still compiles and allocates, which is no training."""
        return self.on_gpu and self.step <= self.warm

    def seconds(self, preparing: bool) -> float:
        """Seconds of training, those of the runs that this one continues included."""
        return self.before + (0.0 if preparing else time.perf_counter() - self.begun)

    def passed(self, every: int) -> bool:
        """Whether the last replay passed a multiple of `every` updates."""
        return self.step // every > (self.step - self.config.updates_per_replay) // every

    def prepare(self) -> None:
        """Capture the update where one process trains, and start the clock that ends the training."""
        if self.updater.processes == 1:
            self.updater.capture()
        self.kept = time.perf_counter()
        self.preparation = self.kept - self.begun
        self.begun = self.kept

    def write(self, log: TrainLog, done: float, seconds: float) -> None:
        """A line of the log. Reading the loss waits for the GPU, which also keeps the clock honest."""
        losses = self.updater.mean_loss(self.step - self.logged)
        if not all(map(math.isfinite, losses)):
            raise self._diverged(f"the loss is {losses[0]}")
        log.write(self.step, losses, self.config.rate(self.step, done), seconds)
        self.logged = self.step

    def show(self, watch: Watch | None, seconds: float) -> None:
        """What a watcher sees; the clock stands still meanwhile."""
        if watch is not None:
            begun = time.perf_counter()
            watch(Moment(self.step, seconds, self.config.progress(self.step, seconds)), self.updater.average)
            self.begun += time.perf_counter() - begun

    def keep(self, preparing: bool, at_once: bool, before: Callable[[int], None] | None = None) -> None:
        """Save a checkpoint at once, or where the last is too long ago; `before` is given its step."""
        now = time.perf_counter()
        if (at_once or now - self.kept > CHECKPOINT_SECONDS) and self.updater.rank == 0:
            self._save(self.before + (0.0 if preparing else now - self.begun), before)
            self.kept = now

    def finish(self, loss: float) -> Outcome:
        """Save the last checkpoint, and leave the module with the averaged weights."""
        if self.on_gpu:
            torch.cuda.synchronize()
        seconds = self.seconds(preparing=False)
        if self.updater.rank == 0:
            self._save(seconds)
        self.updater.adopt_average()
        self.updater.meet()
        peak = torch.cuda.max_memory_allocated() if self.on_gpu else 0
        return Outcome(self.step, seconds, self.preparation, loss, peak)

    def _save(self, seconds: float, before: Callable[[int], None] | None = None) -> None:
        """The checkpoint, unless a weight is not finite."""
        if not all_finite(self.updater.state()):
            raise self._diverged("weights are not finite")
        if before is not None:  # of a run that is killed meanwhile, the one that continues it comes here again
            before(self.step)
        save_resume(self.out, self.updater, self.config, self.step, seconds, self.about)
        self.saved = self.step

    def _diverged(self, what: str) -> UserError:
        return diverged(what, self.step, self.config.learning_rate, self.out, self.saved)


@contextmanager
def _stoppable() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed, so that the present update can be finished and kept; a second one stops at once."""
    before = signal.getsignal(signal.SIGINT)
    pressed = threading.Event()
    # Only the main thread can handle signals, and a process in the background ignores this one.
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
