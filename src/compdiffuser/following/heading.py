"""Where a body faces, found from observations that do not say it: a humanoid's hold no more than its tilt.

Two things tell. The velocities of the root and of the centre of mass are given in the world's frame, and follow from
joint speeds, which are given in the body's: a network regresses (cos, sin) of the heading from them. And the angular
velocity says how the attitude turns from one step to the next, whichever way the body fell: integrated, it is right
but for one constant. The constant is the circular mean of what the network said so far, weighted by how sure it was.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from compdiffuser import artifact
from compdiffuser.artifact import Artifact
from compdiffuser.checks import whole, widths
from compdiffuser.domains.body import BODIES, Humanoid
from compdiffuser.restoring import restored
from compdiffuser.types import Array, UserError

KIND, FORMAT = "heading", 1
SURE = 0.98
"""Length of a regressed vector beyond which the network counts as no surer."""
SOFT = 0.05
"""Metres a second: slower velocities count for less."""


@dataclass(frozen=True)
class HeadingConfig:
    """Sizes of the network, and how long the estimator remembers."""

    body: str = "humanoid"
    """A key of `BODIES`, one with a tilt, an angular velocity and horizontal velocities."""
    hidden: tuple[int, ...] = (512, 512, 512)
    memory: int = 200
    """Steps after which what the network said counts for a third; until then, integration has drifted little."""

    def __post_init__(self) -> None:
        if not isinstance(BODIES.get(self.body), Humanoid):
            raise UserError(f"the heading of the body '{self.body}' needs no estimate, or cannot be estimated")
        whole(self, "memory", most=10**6)
        widths(self, "hidden")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"hidden": list(self.hidden)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> HeadingConfig:
        return cls(**values | {"hidden": tuple(values["hidden"])})


class HeadingNetwork(nn.Module):
    """Regresses (cos, sin) of the heading from single observations; the shorter the vector, the less sure it is.

    The world has no north: the vector is a sum of the observed horizontal velocities, each turned and stretched by a
    factor that the network finds from what does not depend on north. When the world turns, the vector turns with it.
    """

    center: Tensor
    """[n] mean of what does not depend on north."""
    spread: Tensor
    """[n] its standard deviation."""
    still: Tensor
    moving: Tensor
    """Columns of the observation that north does not change, and those that turn with it, x and y in turn."""

    def __init__(self, config: HeadingConfig) -> None:
        super().__init__()
        self.config = config
        body = BODIES[config.body]
        assert isinstance(body, Humanoid)
        self.body = body
        moving = [first + axis for first in body.velocities for axis in (0, 1)]
        still = [column for column in range(2, body.width) if column not in moving]
        self.register_buffer("still", torch.tensor(still), persistent=False)
        self.register_buffer("moving", torch.tensor(moving), persistent=False)
        vectors = len(body.velocities) + 1
        width = len(still) + 3 * vectors
        self.register_buffer("center", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        layers: list[nn.Module] = []
        for hidden in config.hidden:
            layers += [nn.Linear(width, hidden), nn.SiLU()]
            width = hidden
        self.network = nn.Sequential(*layers, nn.Linear(width, 2 * vectors))

    def scale_to(self, observations: Tensor) -> None:
        """Take center and spread from observations [S, obs]."""
        features = self._features(observations)[0]
        self.center.copy_(features.mean(0))
        self.spread.copy_(features.std(0).clamp(min=1e-3))

    def forward(self, observations: Tensor) -> Tensor:
        """Observations [B, obs] → vectors [B, 2] that point where bodies face, no longer than about 1."""
        features, units = self._features(observations)
        inputs = ((features - self.center) / self.spread).clamp(-10, 10)
        along, across = self.network(inputs).float().view(len(inputs), -1, 2).unbind(-1)
        x, y = units.unbind(-1)
        return torch.stack([along * x - across * y, across * x + along * y], -1).sum(1)

    def _features(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """What does not depend on north [B, n], and directions that do [B, v, 2]."""
        moving = observations.index_select(-1, self.moving).view(len(observations), -1, 2)
        vectors = torch.cat([moving, moving[:, :1] - moving[:, 1:2]], 1)
        lengths = (vectors.square().sum(-1) + 1e-12).sqrt()
        units = vectors / (lengths + SOFT)[..., None]
        after = units.roll(1, 1)
        dots = (units * after).sum(-1)
        crosses = units[..., 0] * after[..., 1] - units[..., 1] * after[..., 0]
        still = observations.index_select(-1, self.still)
        return torch.cat([still, (lengths + SOFT).log(), dots, crosses], -1), units


@dataclass(frozen=True, eq=False)
class HeadingEstimator:
    """A trained network, ready to follow bodies: `begin` for each run of episodes."""

    network: HeadingNetwork
    record: dict[str, Any] = field(default_factory=dict)
    """How it was trained, and its errors in degrees on held-out episodes."""

    def begin(self) -> HeadingTrack:
        return HeadingTrack(self.network)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write it, whole or not at all."""
        about = {"heading": self.network.config.to_dict(), "record": self.record}
        parts = {"model": artifact.arrays(self.network.state_dict(), half=True)}
        return artifact.save(folder, Artifact(KIND, FORMAT, about, parts))


def load_heading(folder: str | os.PathLike[str]) -> HeadingEstimator:
    """The estimator in a folder. Raises UserError where there is none, or something is wrong with it."""
    found = artifact.load(folder, KIND, FORMAT)
    with artifact.describing(folder, "estimator"):
        config, record = HeadingConfig.from_dict(found.config["heading"]), artifact.record_of(found.config)
    network = restored(lambda: HeadingNetwork(config), found.parts["model"], folder)
    return HeadingEstimator(network.eval(), record)


class HeadingTrack:
    """The headings of E bodies as their observations come in, one after the other from the first on."""

    def __init__(self, network: HeadingNetwork) -> None:
        self.network, self.body = network, network.body
        self.kept = float(np.exp(-1 / network.config.memory))
        self._attitude: Array | None = None
        """[E, 3, 3] attitudes as integration has them, right but for a turn about the vertical."""
        self._turn: Array = np.zeros(0, complex)
        """[E] that turn, as the weighted sum of what the network said."""
        self._spin: Array = np.zeros((0, 3))
        """[E, 3] the last angular velocities."""

    def __call__(self, observations: Array) -> Array:
        """Radians [E] of bodies at observations [E, obs], the next after those of the last call."""
        with torch.no_grad():
            said = self.network(torch.from_numpy(np.array(observations, np.float32))).numpy().astype(float)
        return self.follow(self.body.vertical(observations), self.body.spin(observations), said)

    def follow(self, vertical: Array, spin: Array, said: Array) -> Array:
        """The same from what it needs: the vertical [E, 3], the angular velocity [E, 3], the network's words [E, 2]."""
        vertical = np.asarray(vertical, float)
        if self._attitude is None or len(self._attitude) != len(vertical):
            self._attitude = np.tile(np.eye(3), (len(vertical), 1, 1))
            self._turn = np.zeros(len(vertical), complex)
        else:
            self._attitude = self._attitude @ rotations((self._spin + spin) / 2 * self.body.step_seconds)
        self._spin = np.array(spin, float)
        self._attitude = levelled(self._attitude, vertical)
        forward = self._attitude[:, 0, 0] + 1j * self._attitude[:, 1, 0]
        seen = said[:, 0] + 1j * said[:, 1]
        # A body that faces up or down has no heading; what is said of it then says nothing.
        words = concentration(np.abs(seen)) * np.abs(forward) ** 2
        self._turn = self.kept * self._turn + words * direction(seen) * direction(forward).conj()
        return np.angle(direction(self._turn) * forward)


def concentration(length: Array) -> Array:
    """How much a regressed mean direction of some length [...] is worth: κ of a von Mises distribution, nearly."""
    short = np.minimum(length, SURE)
    return short * (2 - short**2) / (1 - short**2)


def direction(numbers: Array) -> Array:
    """Complex numbers [...] of length 1; 1 where there is no direction."""
    length = np.abs(numbers)
    return np.where(length > 1e-9, numbers / np.maximum(length, 1e-9), 1.0)


def rotations(turns: Array) -> Array:
    """Matrices [E, 3, 3] of rotations about axes [E, 3] by their lengths in radians (Rodrigues)."""
    angles = np.linalg.norm(turns, axis=1)[:, None, None]
    x, y, z = turns.T
    none = np.zeros_like(x)
    cross = np.stack([none, -z, y, z, none, -x, -y, x, none], axis=1).reshape(-1, 3, 3)
    safe = np.maximum(angles, 1e-9)
    return np.eye(3) + np.sin(angles) / safe * cross + (1 - np.cos(angles)) / safe**2 * (cross @ cross)


def levelled(attitudes: Array, vertical: Array) -> Array:
    """Attitudes [E, 3, 3], tilted by as little as it takes for bodies to see the vertical [E, 3] where they do."""
    before = attitudes[:, 2]
    axis = np.cross(vertical, before)
    length = np.linalg.norm(axis, axis=1)
    angle = np.arctan2(length, (vertical * before).sum(1))
    return attitudes @ rotations(axis * (angle / np.maximum(length, 1e-9))[:, None])
