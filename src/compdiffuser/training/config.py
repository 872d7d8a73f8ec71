"""Settings of a training run: how long, how fast, and how a network is averaged and kept."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from compdiffuser.checks import brief, typed, whole
from compdiffuser.types import UserError

Schedule = Literal["cosine", "constant"]
Precision = Literal["bf16", "tf32", "float32"]

LIMITS = (("weight_decay", 0, math.inf), ("beta2", 0, 1), ("ema", 0, 1))
"""Settings, and the range that each lies in."""
POSITIVE = ("learning_rate", "clip", "time_limit")


@dataclass(frozen=True)
class TrainConfig:
    """Settings of the training loop, the same for every learner."""

    steps: int = 40_000
    """Updates; with a time limit, an upper bound."""
    time_limit: float | None = None
    """Seconds of training; the learning rate falls to zero as the sooner of both ends."""
    batch: int = 1024
    """Rows per update (per process)."""
    learning_rate: float = 5e-4
    """Peak rate, reached after the warm-up."""
    schedule: Schedule = "cosine"
    """After the warm-up: a cosine down to zero, or the peak rate to the end."""
    warmup: int = 500
    """Updates of linear warm-up."""
    weight_decay: float = 0.01
    """AdamW's, on all parameters but vectors (biases of seeds side by side are none); 0 makes it Adam."""
    beta2: float = 0.99
    """AdamW's decay of squared gradients."""
    clip: float | None = 1.0
    """Largest norm of a gradient; None leaves gradients as they are."""
    ema: float | None = 0.999
    """Decay of the averaged weights, which are the ones kept; None keeps the weights themselves."""
    ema_every: int = 1
    """Updates between averagings; a replay makes no more than one of them."""
    precision: Precision = "bf16"
    """On a GPU: autocast to bfloat16 (TF32 where a layer asks to be left out), TF32 matrix products, or plain float32.

    A CPU always uses float32."""
    updates_per_replay: int = 1
    """Updates drawn from one seeding of the generator, and captured in one CUDA graph."""
    checkpoint_every: int = 2_000
    """Updates between checkpoints."""
    log_every: int = 100
    """Updates between lines of the log."""
    seed: int = 0
    """The batches of a replay depend on the seed, the process and the replay's first update alone."""

    def __post_init__(self) -> None:
        whole(self, "steps", "batch", "checkpoint_every", "log_every", "updates_per_replay", "ema_every")
        if self.ema_every > 1 and self.updates_per_replay > 1:
            raise UserError(f"ema_every {self.ema_every} needs updates_per_replay 1, not {self.updates_per_replay}")
        whole(self, "warmup", least=0)
        whole(self, "seed", least=-(2**63), most=2**63 - 1)
        check_schedule(self.schedule)
        if self.precision not in get_args(Precision):
            raise UserError(f"unknown precision '{brief(self.precision)}'; choose {', '.join(get_args(Precision))}")
        typed(self)
        for name, low, high in LIMITS:
            value = getattr(self, name)
            if value is not None and not low <= value < high:
                raise UserError(f"{name} must be at least {low:g} and less than {high:g}, not {value}")
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UserError(f"{name} must be positive, not {value}")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def progress(self, step: int, seconds: float) -> float:
        """Share of the training done, in [0, 1]."""
        by_time = seconds / self.time_limit if self.time_limit else 0.0
        return min(max(step / self.steps, by_time), 1.0)

    def rate(self, step: int, progress: float) -> float:
        """Learning rate of update `step`."""
        peak = self.learning_rate * min((step + 1) / max(self.warmup, 1), 1.0)
        return peak if self.schedule == "constant" else peak * 0.5 * (1 + math.cos(math.pi * progress))

    def decay(self, step: int) -> float:
        """Decay of the averaged weights, smaller at first so that they leave the initial ones behind.

        1 in updates that are not averaged.
        """
        if step % self.ema_every:
            return 1.0
        return min(self.ema, (1 + step) / (10 + step)) if self.ema is not None else 0.0


def check_schedule(name: str) -> None:
    """Raises UserError for an unknown schedule."""
    if name not in get_args(Schedule):
        raise UserError(f"unknown schedule '{brief(name)}'; choose {' or '.join(get_args(Schedule))}")
