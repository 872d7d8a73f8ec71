"""A body that follows its plan by learned inverse dynamics: the controller, its training, and its files."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as serialize

from compdiffuser.data.walking import ORIENTATION, standing, uprightness
from compdiffuser.files import pretrained_folder, read_json, replacing, write_json
from compdiffuser.models.inverse_dynamics import InverseDynamics, InverseDynamicsConfig
from compdiffuser.planning.checkpoint import CONFIG, WEIGHTS, tensors
from compdiffuser.presets import Preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.control import ControlLearner, Steps
from compdiffuser.training.loop import fit
from compdiffuser.types import Array, Episodes, UserError

FORMAT = 1
SAMPLES = 65_536
"""States from which scales and pace are measured."""


@dataclass(frozen=True)
class InverseController:
    """Heads for a planned state at the pace of the data: asked to hurry, an ant overturns, and gains no time.

    It keeps `look_ahead` metres of the plan before the body. With several horizons, h is the number of steps that the
    distance takes at that pace; with one, the paper's h is asked for whatever the distance.
    """

    network: InverseDynamics
    pace: float
    """Metres per step, the median speed of the data."""
    record: dict[str, Any] = field(default_factory=dict)
    look_ahead: float = 1.2
    spacing: float = 0.3
    stall: int = 25
    patience: int = 100

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
    def horizon(self) -> int | None:
        """The only h it was trained for; None where there are several."""
        least, most = self.network.config.horizons
        return least if least == most else None

    def horizons(self, observations: Array, targets: Array) -> Array:
        """[E] the steps that targets [E, D] are ahead of bodies [E, obs], as the network is told."""
        least, most = self.network.config.horizons
        away = np.linalg.norm(targets[:, :2] - observations[:, :2], axis=1)
        return np.clip(np.rint(away / self.pace), least, most).astype(np.int64)

    def fallen(self, observations: Array) -> Array:
        """[E] bool: on its back, by the orientation that follows x, y and z in an observation."""
        return uprightness(observations[:, ORIENTATION]) < 0

    def save(self, folder: Path) -> Path:
        weights = {name: tensor.half().contiguous().cpu() for name, tensor in self.network.state_dict().items()}
        with replacing(folder / WEIGHTS) as temporary:
            temporary.write_bytes(serialize(weights))
        described = {"inverse_dynamics": self.network.config.to_dict(), "pace": self.pace, "record": self.record}
        write_json(folder / CONFIG, {"format": FORMAT, **described})
        return folder


def load_controller(folder: str | os.PathLike[str]) -> InverseController:
    """The controller in a folder, or a sentence about what is wrong with it."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"there is no controller at '{folder}'")
    values = read_json(folder / CONFIG)
    try:
        if values["format"] != FORMAT:
            raise UserError(f"'{folder}' has controller format {values['format']}, this version reads {FORMAT}")
        network = InverseDynamics(InverseDynamicsConfig.from_dict(values["inverse_dynamics"]))
        pace = float(values["pace"])
    except (KeyError, TypeError) as error:
        raise UserError(f"'{folder / CONFIG}' does not describe a controller: {error}") from None
    try:
        network.load_state_dict(tensors(folder / WEIGHTS))
    except RuntimeError:
        raise UserError(f"'{folder / WEIGHTS}' holds weights of another network than its config says") from None
    return InverseController(network.eval(), pace, values.get("record", {}))


def controller_of(preset: Preset) -> InverseController:
    """The controller of a dataset: the one trained here, else the shipped one."""
    places = (Path("runs") / f"{preset.name}-controller", pretrained_folder() / "controllers" / preset.name)
    for folder in places:
        if (folder / CONFIG).exists():
            return load_controller(folder)
    raise UserError(
        f"no controller is shipped for '{preset.name}'; train one with: compdiffuser train-controller {preset.name}"
    )


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
    episodes = standing(episodes) if preset.expert else episodes
    sizes = {"observation": episodes.observations.shape[1], "action": episodes.actions.shape[1]}
    dims = preset.plan_dims
    model = InverseDynamicsConfig(**sizes, plan_dims=dims) if model is None else replace(model, **sizes, plan_dims=dims)
    steps = Steps.from_episodes(episodes, model.horizons, device)
    torch.manual_seed(config.seed)
    network = InverseDynamics(model).to(device)
    generator = torch.Generator(device).manual_seed(config.seed)
    now, later, _, _ = steps.sample(SAMPLES, model.horizons[0], generator)
    network.scale_to(now, network.planned(later - now))
    pace = steps.speed(SAMPLES, generator)
    about = {"dataset": preset.name, "data": episodes.digest(), **model.to_dict()}
    outcome = fit(ControlLearner(network, steps, config.batch), config, device, out, progress=progress, about=about)
    record = {
        "dataset": preset.name,
        "training": config.to_dict(),
        "outcome": asdict(outcome),
        "data": manifest or {},
    }
    controller = InverseController(network.cpu().eval(), max(pace, 1e-3), record)
    controller.save(out)
    return controller
