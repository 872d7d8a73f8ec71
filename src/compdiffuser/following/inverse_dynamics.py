"""A body that follows its plan by learned inverse dynamics: the controller, its files, and its training."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compdiffuser import artifact
from compdiffuser.artifact import Artifact
from compdiffuser.data.walking import standing
from compdiffuser.domains import Body, Controller, Space
from compdiffuser.following.learner import ControlLearner, Steps
from compdiffuser.following.network import InverseDynamics, InverseDynamicsConfig
from compdiffuser.presets import Preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.run import run_training
from compdiffuser.types import Array, Episodes, UserError

KIND, FORMAT = "controller", 2
SAMPLES = 65_536
"""States from which scales and pace are measured."""


@dataclass(frozen=True)
class InverseController(Controller):
    """Heads for a planned state at the pace of the data: asked to hurry, an ant overturns, and gains no time.

    It keeps `look_ahead` metres of the plan before the body. With several horizons, h is the number of steps that the
    distance takes at that pace; with one, the paper's h is asked for whatever the distance.
    """

    network: InverseDynamics
    speed: float
    """Metres per step, the median of the data."""
    record: dict[str, Any] = field(default_factory=dict)
    source: str | None = None

    def __call__(self, observations: Array, targets: Array) -> Array:
        config = self.network.config
        if observations.shape[1] != config.observation:
            raise UserError(f"the controller takes observations of {config.observation}, not {observations.shape[1]}")
        states = torch.from_numpy(np.asarray(observations, np.float32))
        planned = torch.from_numpy(np.asarray(targets, np.float32))
        with torch.no_grad():
            actions = self.network(states, planned, torch.from_numpy(self.horizons(observations, targets)))
        return np.clip(actions.numpy(), -1.0, 1.0)

    @property
    def body(self) -> Body:
        return self.network.body

    @property
    def space(self) -> Space:  # type: ignore[override]
        return self.network.config.space

    @property
    def look_ahead(self) -> float:  # type: ignore[override]
        return self.body.pace.look_ahead

    @property
    def spacing(self) -> float:  # type: ignore[override]
        return self.body.pace.spacing

    @property
    def stall(self) -> int:  # type: ignore[override]
        return self.body.pace.stall

    @property
    def patience(self) -> int:  # type: ignore[override]
        return self.body.pace.patience

    @property
    def horizon(self) -> int | None:
        """The only h it was trained for; None where there are several."""
        least, most = self.network.config.horizons
        return least if least == most else None

    @property
    def steps_ahead(self) -> int:  # type: ignore[override]
        """h: its only one, or what the look-ahead takes at the data's pace."""
        least, most = self.network.config.horizons
        return int(np.clip(round(self.look_ahead / self.speed), least, most))

    def horizons(self, observations: Array, targets: Array) -> Array:
        """[E] the steps that targets [E, D] are ahead of bodies [E, obs], as the network is told."""
        least, most = self.network.config.horizons
        away = np.linalg.norm(self.space.agent(targets) - self.body.position(observations), axis=1)
        return np.clip(np.rint(away / self.speed), least, most).astype(np.int64)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write it, whole or not at all."""
        config = {"inverse_dynamics": self.network.config.to_dict(), "speed": self.speed, "record": self.record}
        parts = {"model": artifact.arrays(self.network.state_dict(), half=True)}
        return artifact.save(folder, Artifact(KIND, FORMAT, config, parts))


def load_controller(folder: str | os.PathLike[str]) -> InverseController:
    """The controller in a folder. Raises UserError where there is none, or something is wrong with it."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"there is no controller at '{folder}'")
    found = artifact.load(folder, KIND, FORMAT)
    try:
        network = InverseDynamics(InverseDynamicsConfig.from_dict(found.config["inverse_dynamics"]))
        speed = float(found.config["speed"])
    except (KeyError, TypeError) as error:
        raise UserError(f"'{folder / artifact.CONFIG}' does not describe a controller: {error}") from None
    try:
        network.load_state_dict(artifact.tensors(found.parts["model"]))
    except RuntimeError:
        raise UserError(f"'{folder}' holds weights of another network than its config says") from None
    return InverseController(network.eval(), speed, found.config.get("record", {}), str(folder))


def train_controller(
    episodes: Episodes,
    preset: Preset,
    out: Path,
    *,
    model: InverseDynamicsConfig | None = None,
    config: TrainConfig | None = None,
    device: torch.device | str = "cpu",
    manifest: dict[str, Any] | None = None,
    progress: bool = True,
) -> InverseController:
    """Learn inverse dynamics from recorded actions, and leave the controller in `out`."""
    device = torch.device(device)
    config = config or TrainConfig()
    body = preset.domain.body
    body.check(episodes.observations)
    episodes = standing(episodes, body)
    sizes = {"observation": episodes.observations.shape[1], "action": episodes.actions.shape[1]}
    given = {**sizes, "body": body.name, "space": preset.space}
    model = InverseDynamicsConfig(**given) if model is None else replace(model, **given)
    steps = Steps.from_episodes(episodes, model.horizons, device)
    torch.manual_seed(config.seed)
    network = InverseDynamics(model).to(device)
    generator = torch.Generator(device).manual_seed(config.seed)
    now, later, _, _ = steps.sample(SAMPLES, model.horizons[0], generator)
    network.scale_to(now, network.planned(later - now))
    speed = steps.speed(SAMPLES, generator, body)
    about = {"dataset": preset.name, "data": episodes.digest(), **model.to_dict()}
    record = run_training(
        ControlLearner(network, steps, config.batch), config, device, out, about=about, own={"dataset": preset.name},
        manifest=manifest, progress=progress,
    )  # fmt: skip
    controller = InverseController(network.cpu().eval(), max(speed, 1e-3), record, str(out))
    controller.save(out)
    return controller
