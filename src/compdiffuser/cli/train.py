"""`compdiffuser train`: from a dataset to a planner."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from compdiffuser.types import UserError


@dataclass(frozen=True)
class Train:
    """Train a planner on short trajectories.

    Killed and started again with the same --out, it continues from its last checkpoint. Several processes:
    accelerate launch --multi_gpu --num_processes 2 -m compdiffuser train DATASET …
    """

    dataset: tyro.conf.Positional[str]
    """Name of a dataset (see `compdiffuser data list`), or a file of your own."""
    method: Literal["compdiffuser", "dd"] = "compdiffuser"
    """compdiffuser: chunks to compose; dd: one monolithic model of whole plans (Decision Diffuser)."""
    preset: Literal["default", "paper"] = "default"
    """Noise formulation: ours (EDM preconditioning), or the paper's (512-step cosine DDPM predicting x₀)."""
    steps: int | None = None
    """Updates; by default 40,000, or as many as the time limit allows."""
    time_limit: float | None = None
    """Seconds of training."""
    batch: int = 1024
    """Chunks per update."""
    learning_rate: float = 5e-4
    """Peak learning rate."""
    seed: int = 0
    """Initial weights and batches depend on it alone."""
    out: Path | None = None
    """Folder of the run; by default runs/DATASET-METHOD."""
    architecture: Literal["dit1d", "unet1d"] = "dit1d"
    """Transformer, or the paper's U-Net."""
    width: int | None = None
    """Transformer width (256), or channels of the U-Net's first level (64)."""
    depth: int | None = None
    """Transformer blocks (6), or U-Net levels (4)."""
    neighbours: Literal["channels", "encoder"] = "channels"
    """Neighbouring chunks as aligned input channels, or through the paper's encoder."""
    horizon: int | None = None
    """States per chunk; by default the dataset's."""
    overlap: int | None = None
    """States shared by neighbouring chunks; by default the dataset's."""
    dims: str | None = None
    """Planned observation dimensions, as in 0,1; by default the dataset's."""
    checkpoint_every: int = 2_000
    """Updates between checkpoints."""
    log_every: int = 100
    """Updates between lines of the log."""
    device: Annotated[str, tyro.conf.arg(metavar="auto|cpu|cuda")] = "auto"
    """Where to compute."""
    compile: bool = True
    """Compile the network on a GPU (half a minute once, then faster)."""
    json: bool = False
    """Print the outcome as one JSON object."""

    def run(self) -> int:
        from compdiffuser.data import storage
        from compdiffuser.models.denoiser import DenoiserConfig
        from compdiffuser.planning.checkpoint import choose_device
        from compdiffuser.planning.training import monolithic, preset_for, train_planner
        from compdiffuser.training.config import TrainConfig

        record = preset_for(self.dataset)
        record = replace(
            record,
            horizon=self.horizon or record.horizon,
            overlap=self.overlap or record.overlap,
            plan_dims=dimensions(self.dims) if self.dims is not None else record.plan_dims,
        )
        if self.method == "dd":
            record = monolithic(record)
        unet = self.architecture == "unet1d"
        model = DenoiserConfig(
            horizon=record.horizon,
            overlap=record.overlap,
            architecture=self.architecture,
            preset=self.preset,
            neighbours=self.neighbours,
            width=self.width or (64 if unet else 256),
            depth=self.depth or (4 if unet else 6),
        )
        config = TrainConfig(
            steps=self.steps or (10_000_000 if self.time_limit else 40_000), time_limit=self.time_limit,
            batch=self.batch, learning_rate=self.learning_rate, seed=self.seed,
            checkpoint_every=self.checkpoint_every, log_every=self.log_every,
        )  # fmt: skip
        out = self.out or Path("runs") / f"{record.name}-{self.method}"
        device = choose_device(self.device)
        checkpoint = train_planner(
            storage.load(self.dataset), record, out, model=model, config=config, device=device, method=self.method,
            manifest=storage.manifest_of(storage.locate(self.dataset)), compiled=None if self.compile else False,
        )  # fmt: skip
        outcome = {"out": str(out), **checkpoint.record["outcome"]}
        if self.json:
            print(json.dumps(outcome))
        else:
            print(f"trained {outcome['steps']} updates in {outcome['seconds']:.0f} s, loss {outcome['loss']:.4f}")
            print(f"written {out}; plan with: compdiffuser plan {out} --start … --goal …")
        return 0


def dimensions(text: str) -> tuple[int, ...]:
    """The dimensions in "0,1"."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"dims are whole numbers separated by commas, not '{text}'") from None
