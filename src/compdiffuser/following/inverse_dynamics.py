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
from compdiffuser.checks import is_finite
from compdiffuser.data.walking import standing
from compdiffuser.domains import BODIES, Body, Controller, Space
from compdiffuser.domains.body import Pace
from compdiffuser.domains.space import apart
from compdiffuser.following.heading import HeadingEstimator, HeadingTrack, load_heading
from compdiffuser.following.heading_training import recorded_headings
from compdiffuser.following.learner import ControlLearner, Steps
from compdiffuser.following.network import InverseDynamics, InverseDynamicsConfig
from compdiffuser.presets import Preset
from compdiffuser.restoring import restored
from compdiffuser.runs import only_writer
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.run import run_training
from compdiffuser.types import Array, Episodes, UserError

KIND, FORMAT = "controller", 2
SAMPLES = 65_536
"""States from which scales and pace are measured."""
LOOK_AHEAD = 10
"""Steps at the data's speed between a body and its target, where its pace is not known."""
BESIDE = 3.0
"""Metres between an agent and what it moves, at most."""
HEADING = "heading"
"""Folder, within the controller's, of the estimator for bodies whose observations do not hold their heading."""


@dataclass(eq=False)
class InverseController(Controller):
    """Heads for a planned state at the pace of the data: asked to hurry, an ant overturns, and gains no time.

    It keeps `look_ahead` metres of the plan before the body. With several horizons, h is the number of steps that the
    distance takes at that pace; with one, the paper's h is asked for whatever the distance. Where several things move,
    h is what the slowest takes: an ant paces its walk to a ball, and then the ball does.
    """

    network: InverseDynamics
    speeds: tuple[float, ...]
    """Metres per step of each position group while it moves, the median of the data."""
    record: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    estimator: HeadingEstimator | None = None
    """Finds the heading where the controller needs one and observations do not hold it."""
    frees: bool = True
    """Whether an agent's own target does not count beside what it is to move; only where the network learned both."""
    told: bool = False
    """Whether observations end with the true heading, as those of `true_heading.telling` do."""
    _track: HeadingTrack | None = field(default=None, init=False, repr=False)

    def reset(self, observations: Array) -> None:
        self._track = None if self.estimator is None else self.estimator.begin()

    def __call__(self, observations: Array, targets: Array) -> Array:
        heading = None
        if self.told:
            observations, heading = observations[:, :-1], observations[:, -1]
        config = self.network.config
        if observations.shape[1] != config.observation:
            raise UserError(f"the controller takes observations of {config.observation}, not {observations.shape[1]}")
        if np.shape(targets)[1] != len(self.space.dims):
            wanted = f"{len(self.space.dims)} numbers ({', '.join(self.space.names)})"
            raise UserError(f"the controller follows planned states of {wanted}, not of {np.shape(targets)[1]}")
        if self.estimator is not None and not self.told:
            self._track = self._track or self.estimator.begin()
            heading = self._track(observations)
        seen = torch.from_numpy(self.network.see(observations, heading))
        planned = torch.from_numpy(np.asarray(targets, np.float32))
        with torch.no_grad():
            horizons = torch.from_numpy(self.horizons(observations, targets))
            free = self._free(observations, seen, planned) if config.frees else None
            actions = self.network(seen, planned, horizons, free)
        largest = self.network.scale.numpy()
        return np.clip(actions.numpy(), -largest, largest)

    def _free(self, observations: Array, seen: torch.Tensor, planned: torch.Tensor) -> torch.Tensor:
        """[E] bool: whose own target does not count, since something beside it is to move."""
        agent, *others = self.space.groups(self.space.planned(observations)).values()
        away = np.min([apart(agent, other) for other in others], axis=0)
        beside = torch.from_numpy(away <= BESIDE)
        return beside & self.network.moves(seen, planned) & self.frees

    @property
    def body(self) -> Body:  # type: ignore[override]
        return self.network.body

    @property
    def space(self) -> Space:  # type: ignore[override]
        return self.network.config.space

    @property
    def pace(self) -> Pace:
        """The body's own, or one that fits the data's speed."""
        fitting = Pace(look_ahead=LOOK_AHEAD * self.speeds[0], spacing=LOOK_AHEAD / 4 * self.speeds[0])
        return self.body.pace or fitting

    @property
    def look_ahead(self) -> float:  # type: ignore[override]
        return self.pace.look_ahead

    @property
    def spacing(self) -> float:  # type: ignore[override]
        return self.pace.spacing

    @property
    def stall(self) -> int:  # type: ignore[override]
        return self.pace.stall

    @property
    def patience(self) -> int:  # type: ignore[override]
        return self.pace.patience

    @property
    def horizon(self) -> int | None:  # type: ignore[override]
        """The only h it was trained for; None where there are several."""
        least, most = self.network.config.horizons
        return least if least == most else None

    @property
    def steps_ahead(self) -> int:  # type: ignore[override]
        """h: its only one, or what the look-ahead takes at the data's pace."""
        least, most = self.network.config.horizons
        return int(np.clip(round(self.look_ahead / min(self.speeds)), least, most))

    @property
    def speed(self) -> float | dict[str, float]:
        """Metres per step as files and people are told: one number, or one for each position group by its name."""
        names = [name for name, _ in self.space.positions]
        return self.speeds[0] if len(names) == 1 else dict(zip(names, self.speeds, strict=True))

    def horizons(self, observations: Array, targets: Array) -> Array:
        """[E] the steps that targets [E, D] are ahead of bodies [E, obs], as the network is told."""
        least, most = self.network.config.horizons
        away = self.space.distances(self.space.places(targets) - self.space.places(self.space.planned(observations)))
        return np.clip(np.rint((away / self.speeds).max(axis=1)), least, most).astype(np.int64)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write it, whole or not at all; its estimator first."""
        if self.estimator is not None:
            self.estimator.save(Path(folder) / HEADING)
        config = {"inverse_dynamics": self.network.config.to_dict(), "speed": self.speed, "record": self.record}
        parts = {"model": artifact.arrays(self.network.state_dict(), half=True)}
        return artifact.save(folder, Artifact(KIND, FORMAT, config, parts))


def load_controller(folder: str | os.PathLike[str]) -> InverseController:
    """The controller in a folder. Raises UserError where there is none, or something is wrong with it."""
    folder = Path(folder)
    found = artifact.load(folder, KIND, FORMAT)
    with artifact.describing(folder, KIND):
        config = InverseDynamicsConfig.from_dict(found.config["inverse_dynamics"])
        speeds, record = _speeds(found.config["speed"], config.space), artifact.record_of(found.config)
    network = restored(lambda: InverseDynamics(config), found.parts["model"], folder)
    estimator = load_heading(folder / HEADING) if needs_estimate(network.config) else None
    return InverseController(network.eval(), speeds, record, str(folder), estimator)


def _speeds(written: Any, space: Space) -> tuple[float, ...]:
    """Speeds of all position groups, from one number where there is one group, or from numbers by their names."""
    if not isinstance(written, dict):
        written = {space.positions[0].name: written}
    speeds = tuple(float(written[name]) for name, _ in space.positions)
    if not all(is_finite(speed) and speed > 0 for speed in speeds):
        raise UserError(f"speeds are above 0 and finite, not {speeds}")
    return speeds


def needs_estimate(config: InverseDynamicsConfig) -> bool:
    """Whether a network wants a heading that observations do not hold."""
    return config.frame == "heading" and BODIES[config.body].heading(np.zeros((1, config.observation))) is None


@only_writer
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
    estimator: HeadingEstimator | None = None,
) -> InverseController:
    """Learn inverse dynamics from recorded actions, and leave the controller in `out`.

    One that sees in the heading's frame learns from true headings; `estimator` finds them when it drives.
    """
    device = torch.device(device)
    config = config or TrainConfig()
    body = preset.domain.body
    body.check(episodes.observations)
    episodes = standing(episodes, body)
    sizes = {"observation": episodes.observations.shape[1], "action": episodes.actions.shape[1]}
    given: dict[str, Any] = {**sizes, "body": body.name, "space": preset.space, "scale": action_scale(episodes)}
    model = InverseDynamicsConfig(**given | dict(body.control)) if model is None else replace(model, **given)
    walked = Steps.from_episodes(episodes, model.horizons, device).with_moving(model.space)
    torch.manual_seed(config.seed)
    network = InverseDynamics(model).to(device)
    if needs_estimate(model) and estimator is None:
        raise UserError(f"observations of the {body.name} do not hold its heading: train an estimator of it first")
    steps = walked if model.frame == "world" else replace(walked, observations=_seen(network, episodes).to(device))
    generator = torch.Generator(device).manual_seed(config.seed)
    now, later, _, _ = steps.sample(SAMPLES, model.horizons[0], generator)
    network.scale_to(now, network.relative(now, network.planned(later)))
    speeds = walked.speeds(SAMPLES, generator, model.space)
    about = {"dataset": preset.name, "data": episodes.digest(), **model.to_dict()}
    record = run_training(
        ControlLearner(network, steps, config.batch), config, device, out, about=about, own={"dataset": preset.name},
        manifest=manifest, progress=progress,
    )  # fmt: skip
    speeds = tuple(max(speed, 1e-3) for speed in speeds)
    controller = InverseController(network.cpu().eval(), speeds, record, str(out), estimator)
    controller.save(out)
    return controller


def action_scale(episodes: Episodes) -> tuple[float, ...]:
    """The largest action of each motor; empty where all use the range of [−1, 1] or more than half of it.

    Raises UserError where there is nothing to learn: no actions, or none but zeros.
    """
    largest = np.abs(episodes.actions).max(axis=0) if episodes.actions.size else np.zeros(0)
    if not largest.any():
        raise UserError("a controller learns from recorded actions, and this data has none")
    if ((largest > 0.5) & (largest <= 1)).all():
        return ()
    return tuple(float(each) for each in np.where(largest > 0, largest, 1.0))


def _seen(network: InverseDynamics, episodes: Episodes) -> torch.Tensor:
    """What the network sees of all recorded states [S, w], by their true headings."""
    observations = episodes.observations
    held = network.body.heading(observations)
    return torch.from_numpy(network.see(observations, recorded_headings(episodes) if held is None else held))
