"""`compdiffuser train-controller`: learn to follow plans from the actions that a dataset recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from compdiffuser.cli.parsing import dimensions
from compdiffuser.cli.telling import tell
from compdiffuser.types import UserError

if TYPE_CHECKING:
    from compdiffuser.following.network import InverseDynamicsConfig
    from compdiffuser.presets import Preset
    from compdiffuser.types import Episodes


@dataclass(frozen=True)
class TrainController:
    """Train an inverse-dynamics controller: the action that leads to a planned state some steps ahead.

    Killed and started again with the same --out, it continues from its last checkpoint. A body whose observations do
    not hold its heading first gets an estimator of it, in the folder's own folder `heading`.
    """

    dataset: tyro.conf.Positional[str]
    """Name of a dataset (see `compdiffuser data list`), a file or folder of your own, or minari:ID."""
    dims: str | None = None
    """Planned observation dimensions, as in 0,1, or how many first ones, as in 15: those of the plans that it follows.
    By default the dataset's."""
    horizon: int | None = None
    """Steps ahead, as in the paper (12 for ants); by default several at once, chosen by distance when it drives."""
    horizons: tuple[int, int] | None = None
    """Least and most steps ahead; by default 4 to 28, 8 to 80 for a humanoid, and 8 to 120 for an ant with a ball."""
    frame: Literal["auto", "world", "heading"] = "auto"
    """What the controller sees: the world as it is, or as it is seen from the body's heading. The latter is the default
    of a humanoid and of an ant with a ball."""
    steps: int = 50_000
    """Updates."""
    time_limit: float | None = None
    """Seconds of training."""
    batch: int = 1024
    """Transitions per update."""
    learning_rate: float = 3e-4
    """Peak learning rate."""
    dropout: float | None = None
    """Share of hidden units left out in training; by default 0, and 0.1 for a humanoid and an ant with a ball."""
    heading_steps: int = 30_000
    """Updates of the heading's estimator, where there is one."""
    heading_time_limit: float | None = None
    """Seconds of its training."""
    checkpoint_every: int = 5_000
    """Updates between checkpoints."""
    log_every: int = 500
    """Updates between lines of the log."""
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
        from compdiffuser.files import check_writable
        from compdiffuser.following.heading_training import train_heading
        from compdiffuser.following.inverse_dynamics import needs_estimate, train_controller
        from compdiffuser.runs import choose_device, run_folder
        from compdiffuser.training.config import TrainConfig

        preset = storage.preset_for(self.dataset)
        if self.dims is not None:
            preset = preset.planning(dimensions(self.dims))
        episodes = storage.load(self.dataset)
        model = self._model(preset, episodes)
        common: dict[str, Any] = {
            "seed": self.seed, "precision": "tf32", "log_every": self.log_every,
            "checkpoint_every": self.checkpoint_every,
        }  # fmt: skip
        given: dict[str, Any] = {
            "device": choose_device(self.device), "manifest": storage.origin_of(self.dataset)[1],
        }  # fmt: skip
        config = TrainConfig(
            steps=self.steps, time_limit=self.time_limit, batch=self.batch, learning_rate=self.learning_rate, **common
        )  # fmt: skip
        out = self.out or run_folder(preset.label, "controller")
        check_writable(out / "config.json")
        estimator = None
        if needs_estimate(model):
            quick = TrainConfig(
                steps=self.heading_steps, time_limit=self.heading_time_limit, batch=4096, learning_rate=1e-3, **common
            )  # fmt: skip
            estimator = train_heading(episodes, preset, out / "heading", config=quick, **given)
        controller = train_controller(
            episodes, preset, out, model=model, config=config, estimator=estimator, **given
        )  # fmt: skip
        results = {"speed": controller.speed, **controller.record["outcome"]}
        if estimator is not None:
            results["heading_errors"] = estimator.record["errors"]
        groups = [name for name, _ in controller.space.positions]
        speeds = [f"{speed:.3f} m a step" for speed in controller.speeds]
        told = speeds if len(speeds) == 1 else [f"{speed} ({name})" for name, speed in zip(groups, speeds, strict=True)]
        return tell(results, out, f"its speed is {', '.join(told)}", self.json)

    def _model(self, preset: Preset, episodes: Episodes) -> InverseDynamicsConfig:
        """The network asked for, and else what the body usually gets."""
        from compdiffuser.following.inverse_dynamics import action_scale
        from compdiffuser.following.network import InverseDynamicsConfig

        if self.horizon is not None and self.horizons is not None:
            raise UserError("--horizon asks for one horizon and --horizons for several; give one of them")
        body = preset.domain.body
        horizons = self.horizons if self.horizon is None else (self.horizon, self.horizon)
        asked = {"horizons": horizons, "dropout": self.dropout, "frame": None if self.frame == "auto" else self.frame}
        settings = dict(body.control) | {name: value for name, value in asked.items() if value is not None}
        sizes = episodes.observations.shape[1], episodes.actions.shape[1]
        return InverseDynamicsConfig(
            *sizes, body=body.name, space=preset.space, scale=action_scale(episodes), **settings
        )
