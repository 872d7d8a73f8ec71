"""Bodies: what an observation says of the one that moves. Everything else asks them and knows no slice of its own.

Observations begin with x and y. A body with legs may fall; one whose observation holds its orientation knows its
*heading*, the direction in which it faces. Seen from the body, all headings are one: `egocentric` turns every
horizontal vector into the heading's frame and leaves out where the body is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from compdiffuser.checks import finite, whole
from compdiffuser.domains.rising import rocking
from compdiffuser.domains.space import States
from compdiffuser.types import Array, UserError


@dataclass(frozen=True)
class Pace:
    """How a body follows a plan with a learned controller."""

    look_ahead: float = 1.2
    """Metres between the body's place on its plan and the state it is told to reach."""
    spacing: float = 0.3
    """Metres between the states that are kept of a plan."""
    stall: int = 25
    """Steps without progress after which the body is helped past a corner."""
    patience: int = 100
    """Steps without progress after which it counts as stuck."""

    def __post_init__(self) -> None:
        finite(self, "look_ahead", "spacing", least=0)
        whole(self, "stall", "patience")


class Body:
    """A point: it has no legs to fall from and faces no way."""

    name: str = "point"
    width: int | None = None
    """Numbers in an observation; None: any, from x and y on."""
    experts: tuple[str, ...] = ()
    """The experts that move it when data is recorded; none where actions move it directly."""
    has_legs: bool = False
    """Whether it may fall."""
    gets_up: bool = False
    """Whether a fallen one gets up again by itself; if not, what follows a fall is nothing to learn from."""
    pace: Pace | None = None
    """How it follows plans with a learned controller; None: as its data's speed asks for."""
    control: ClassVar[Mapping[str, Any]] = {}
    """Settings of its learned controller, where they are not the usual ones: frame, horizons, sizes."""
    vectors: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1),)
    """Where an observation holds horizontal vectors, x and y each: they turn as the body turns."""
    orientations: ClassVar[tuple[tuple[int, int, int, int], ...]] = ()
    """Where it holds orientations, as quaternions (w, x, y, z)."""
    qpos: ClassVar[Mapping[int, int]] = {0: 0, 1: 1}
    """Observation dimensions that are numbers of MuJoCo's qpos, and which: with them a planned state is a pose."""

    def check(self, observations: Array) -> None:
        """Raise UserError where observations [..., obs] are not this body's."""
        width = observations.shape[-1]
        if width < 2 or self.width not in (None, width):
            raise UserError(f"an observation of the {self.name} has {self.width or 'at least 2'} numbers, not {width}")

    def position(self, observations: States) -> States:
        """x and y [..., 2] of observations [..., obs]."""
        return observations[..., :2]

    def itself(self, observations: States) -> States:
        """Everything but where it is, [..., obs − 2]."""
        return observations[..., 2:]

    def fallen(self, observations: Array) -> Array:
        """[...] bool: which bodies lie on the ground."""
        return np.zeros(observations.shape[:-1], bool)

    def rising(self, steps: Array) -> Array | None:
        """Actions [n, act] that get fallen bodies up, at the given steps [n] of getting up; None: it knows none."""
        return None

    def risen(self, observations: Array) -> Array:
        """[...] bool: which bodies, having got up, may walk on."""
        return ~self.fallen(observations)

    def heading(self, observations: Array) -> Array | None:
        """[...] radians from the x axis; None where an observation does not say."""
        return None

    def egocentric(self, observations: Array, heading: Array | None = None) -> Array:
        """[..., n] the body's own state as it is seen from the body; `heading` [...] where observations lack it."""
        return self.itself(observations)


class Ant(Body):
    """Four legs, eight motors. Observations are qpos [15] (x, y, z, orientation, joints) and qvel [14]."""

    name = "ant"
    width: int | None = 29
    experts: tuple[str, ...] = ("ant",)
    has_legs = True
    pace = Pace()
    vectors: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (15, 16))
    orientations: ClassVar[tuple[tuple[int, int, int, int], ...]] = ((3, 4, 5, 6),)
    qpos: ClassVar[Mapping[int, int]] = {dim: dim for dim in range(15)}

    upright, steady = 0.7, 2.0
    """An ant that got up walks on once it is so upright, and tilts by so few radians a second: else it falls again."""

    def fallen(self, observations: Array) -> Array:
        return uprightness(self._orientation(observations)) <= 0

    def rising(self, steps: Array) -> Array:
        return rocking(steps)

    def risen(self, observations: Array) -> Array:
        tilting = np.linalg.norm(self._velocity(observations)[..., 3:5], axis=-1)
        return (uprightness(self._orientation(observations)) >= self.upright) & (tilting <= self.steady)

    def height(self, observations: Array) -> Array:
        """[...] metres of the torso above the ground."""
        return observations[..., 2]

    def heading(self, observations: Array) -> Array:
        return yaw(self._orientation(observations))

    def egocentric(self, observations: Array, heading: Array | None = None) -> Array:
        """z, up-vector [3] in its own frame, joints [8], velocity [3] turned, angular velocity [3], joint speeds."""
        facing = self.heading(observations) if heading is None else heading
        velocity = self._velocity(observations)
        return np.concatenate(
            [
                observations[..., 2:3],
                up_vector(self._orientation(observations)),
                observations[..., 7:15],
                turned(velocity[..., :3], -facing),
                velocity[..., 3:14],
            ],
            axis=-1,
        )

    def _orientation(self, observations: Array) -> Array:
        return observations[..., 3:7]

    def _velocity(self, observations: Array) -> Array:
        """qvel from the ant's first number on."""
        return observations[..., 15:]


class AntBall(Ant):
    """An ant and a ball. Observations are qpos [22] (the ant's 15, the ball's place and orientation) and qvel [20]."""

    name = "ant-ball"
    width = 42
    experts = ("ant", "ball")
    control: ClassVar[Mapping[str, Any]] = {
        "frame": "heading", "horizons": (8, 120), "hidden": (512, 1024, 1024, 512), "dropout": 0.1, "free": 0.5,
    }  # fmt: skip
    pace = Pace(look_ahead=2.0, spacing=0.3, stall=40, patience=120)
    vectors = ((0, 1), (15, 16), (22, 23), (36, 37))
    orientations = ((3, 4, 5, 6), (18, 19, 20, 21))
    qpos: ClassVar[Mapping[int, int]] = {dim: dim for dim in range(22)}

    def ant(self, observations: Array) -> Array:
        """What an ant without a ball would observe, [..., 29]."""
        return np.concatenate([observations[..., :15], self._velocity(observations)[..., :14]], axis=-1)

    def ball(self, observations: Array) -> Array:
        """x and y [..., 2] of the ball."""
        return observations[..., 15:17]

    def egocentric(self, observations: Array, heading: Array | None = None) -> Array:
        """The ant's own [26]; the ball's place from the ant [2], height, velocity [3] and spin [3], all turned."""
        facing = self.heading(observations) if heading is None else heading
        velocity = self._velocity(observations)[..., 14:20]
        spin = rotated(velocity[..., 3:], observations[..., 18:22])  # a free joint's is in its own frame
        return np.concatenate(
            [
                super().egocentric(observations, facing),
                turned(self.ball(observations) - self.position(observations), -facing),
                observations[..., 17:18],
                turned(velocity[..., :3], -facing),
                turned(spin, -facing),
            ],
            axis=-1,
        )

    def _velocity(self, observations: Array) -> Array:
        return observations[..., 22:]


class Humanoid(Body):
    """Two legs, 21 motors. Observations have no orientation but the torso's vertical, so its heading must be given.

    x, y · joints [21] · height of the head · hands and feet from the torso [12] · vertical [3] · velocity of the centre
    of mass [3] · qvel [27]
    """

    name = "humanoid"
    width = 69
    experts = ("humanoid-student",)
    has_legs = True
    gets_up = True
    control: ClassVar[Mapping[str, Any]] = {
        "frame": "heading", "horizons": (8, 80), "hidden": (512, 1024, 1024, 512), "dropout": 0.1,
    }  # fmt: skip
    pace = Pace(look_ahead=2.0, spacing=0.4, stall=60, patience=250)
    qpos: ClassVar[Mapping[int, int]] = {0: 0, 1: 1, **{2 + joint: 7 + joint for joint in range(21)}}
    down = 0.9
    """Metres: a humanoid whose head is lower lies or sits."""
    velocities = (39, 42)
    """Where horizontal velocities stand, x and then y: of the centre of mass, and of the root."""
    vectors = ((0, 1), (39, 40), (42, 43))
    step_seconds = 0.025
    """Of a step of its environment."""

    def fallen(self, observations: Array) -> Array:
        return np.asarray(self.head(observations) < self.down)

    def head(self, observations: States) -> States:
        """Height [...] of the head in metres."""
        return observations[..., 23]

    def vertical(self, observations: States) -> States:
        """The vertical as the torso sees it, [..., 3]."""
        return observations[..., 36:39]

    def spin(self, observations: States) -> States:
        """Angular velocity [..., 3] in the torso's frame, in radians a second."""
        return observations[..., 45:48]

    def egocentric(self, observations: Array, heading: Array | None = None) -> Array:
        """As OGBench's observation without x and y, with both horizontal velocities turned. [..., 67]"""
        if heading is None:
            raise UserError("a humanoid's observation does not hold its heading, so its own view needs one")
        seen = observations.copy()
        for first in self.velocities:
            seen[..., first : first + 2] = turned(seen[..., first : first + 2], -np.asarray(heading))
        return self.itself(seen)


BODIES: dict[str, Body] = {body.name: body for body in (Body(), Ant(), Humanoid(), AntBall())}


def uprightness(quaternions: Array) -> Array:
    """How upright bodies with orientations [..., 4] (w, x, y, z) are: 1 on their feet, −1 on their backs."""
    x, y = quaternions[..., 1], quaternions[..., 2]
    return np.asarray(1 - 2 * (x * x + y * y))


def yaw(quaternions: Array) -> Array:
    """[...] radians about the vertical, of orientations [..., 4]: where the body's own x axis points."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def true_heading(qpos: Array) -> Array:
    """[...] radians, of bodies that move freely at MuJoCo's qpos [..., nq]; data records it, observations may not."""
    return yaw(qpos[..., 3:7])


def up_vector(quaternions: Array) -> Array:
    """The vertical as bodies with orientations [..., 4] see it, [..., 3]: how they tilt, whichever way they face."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    return np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1)


def rotated(vectors: Array, quaternions: Array) -> Array:
    """Vectors [..., 3] of a body's frame in the world's, by its orientations [..., 4]."""
    scalar, axis = quaternions[..., :1], quaternions[..., 1:]
    across = np.cross(axis, vectors)
    return vectors + 2 * (scalar * across + np.cross(axis, across))


def turned(vectors: Array, angles: Array) -> Array:
    """Vectors [..., 2 or 3] turned about the vertical by `angles` [...]; what is vertical stays."""
    cosine, sine = np.cos(angles), np.sin(angles)
    x, y = vectors[..., 0], vectors[..., 1]
    flat = np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)
    return np.concatenate([flat, vectors[..., 2:]], axis=-1)
