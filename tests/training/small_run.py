"""A training run small enough for tests, and a program that does one: `python small_run.py OUT [--steps N] …`"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from compdiffuser.diffusion.objective import ObjectiveConfig, draw, loss
from compdiffuser.models import Denoiser, DenoiserConfig
from compdiffuser.models.dit1d import DiT1dConfig
from compdiffuser.runs import rank
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.loop import Outcome, fit
from compdiffuser.training.updater import Learner

CPU = torch.device("cpu")
MODEL = DenoiserConfig(horizon=8, overlap=2, dim=2, network=DiT1dConfig(width=32, depth=1, heads=2, patch=4))


def lines(count: int, generator: torch.Generator) -> Tensor:
    """Chunks [count, H, D] that run straight between two random states."""
    ends = 0.5 * torch.randn(2, count, 1, MODEL.dim, generator=generator)
    return torch.lerp(ends[0], ends[1], torch.linspace(0, 1, MODEL.horizon)[:, None])


@dataclass(frozen=True)
class LineLearner(Learner):
    """Learns straight lines; `pause` seconds per update leave time to be killed."""

    module: Denoiser
    batch: int = 16
    pause: float = 0.0

    def loss(self, module: nn.Module, generator: torch.Generator) -> Tensor:
        time.sleep(self.pause)
        formulation = self.module.formulation
        batch = draw(lines(self.batch, generator), formulation, ObjectiveConfig(overlap=MODEL.overlap), generator)
        return loss(module, batch, formulation)


def learner(model: DenoiserConfig = MODEL, weights: int = 0, pause: float = 0.0) -> LineLearner:
    torch.manual_seed(weights)
    return LineLearner(Denoiser(model), pause=pause)


def settings(**changes: object) -> TrainConfig:
    small = {"steps": 60, "batch": 16, "learning_rate": 3e-3, "warmup": 10, "checkpoint_every": 10, "log_every": 5}
    return TrainConfig(**{**small, **changes})


def train(
    out: Path, trained: LineLearner | None = None, about: dict[str, object] | None = None, **changes: object
) -> tuple[Outcome, dict[str, Tensor]]:
    """The outcome and the averaged weights."""
    trained = trained or learner()
    outcome = fit(trained, settings(**changes), CPU, out, progress=False, about=about)
    return outcome, trained.module.state_dict()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--pause", type=float, default=0.0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    number = rank()
    runs = {"steps": {"steps": arguments.steps}}
    if arguments.time_limit:
        runs["time"] = {"steps": 10**6, "time_limit": arguments.time_limit}
    for name, changes in runs.items():
        out = arguments.out / name
        # Every process begins with weights of its own.
        _, weights = train(out, learner(weights=number, pause=arguments.pause), **changes)
        save_file(weights, out / f"weights-{number}.safetensors")
