"""`compdiffuser train-controller`: learn to follow plans from the actions that a dataset recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from compdiffuser.cli.train import tell


@dataclass(frozen=True)
class TrainController:
    """Train an inverse-dynamics controller: the action that leads to a planned state some steps ahead.

    Killed and started again with the same --out, it continues from its last checkpoint.
    """

    dataset: tyro.conf.Positional[str]
    """Name of a dataset (see `compdiffuser data list`), a file of your own, or minari:ID."""
    horizon: int | None = None
    """Steps ahead, as in the paper (12 for ants); by default 4 to 28 at once, chosen by distance when it drives."""
    steps: int = 50_000
    """Updates."""
    time_limit: float | None = None
    """Seconds of training."""
    batch: int = 1024
    """Transitions per update."""
    learning_rate: float = 3e-4
    """Peak learning rate."""
    dropout: float = 0.0
    """Share of hidden units left out in training."""
    seed: int = 0
    """Initial weights and batches depend on it alone."""
    out: Path | None = None
    """Folder of the run; by default runs/DATASET-controller, where `eval` finds it."""
    device: Annotated[str, tyro.conf.arg(metavar="auto|cpu|cuda")] = "auto"
    """Where to compute."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the outcome as one JSON object."""

    def run(self) -> int:
        from compdiffuser.data import storage
        from compdiffuser.following.inverse_dynamics import train_controller
        from compdiffuser.following.network import InverseDynamicsConfig
        from compdiffuser.runs import choose_device, run_folder
        from compdiffuser.training.config import TrainConfig

        preset = storage.preset_for(self.dataset)
        episodes = storage.load(self.dataset)
        sizes = episodes.observations.shape[1], episodes.actions.shape[1]
        horizons = (4, 28) if self.horizon is None else (self.horizon, self.horizon)
        model = InverseDynamicsConfig(*sizes, space=preset.space, horizons=horizons, dropout=self.dropout)
        config = TrainConfig(
            steps=self.steps, time_limit=self.time_limit, batch=self.batch, learning_rate=self.learning_rate,
            seed=self.seed, precision="tf32", log_every=500, checkpoint_every=5_000,
        )  # fmt: skip
        out = self.out or run_folder(preset.name, "controller")
        controller = train_controller(
            episodes, preset, out, model=model, config=config, device=choose_device(self.device),
            manifest=storage.origin_of(self.dataset)[1],
        )  # fmt: skip
        results = {"speed": controller.speed, **controller.record["outcome"]}
        return tell(results, out, f"its speed is {controller.speed:.3f} m a step", self.json)
