"""Bare MuJoCo worlds: n bodies of one kind, each on open ground of its own, stepped exactly as OGBench steps them.

Gymnasium's wrappers cost a fifth of the time, and the ant with a ball insists on a display. A world gives the
observations of the mazes, which begin with x and y.
"""

from __future__ import annotations

import math
import os
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np

from compdiffuser.domains.body import yaw
from compdiffuser.domains.simulators import blew_up
from compdiffuser.types import Array, UserError

SPEED_LIMIT = 200.0
"""Joint speeds beyond which a simulation counts as broken."""
FRAMES = 5
"""Simulator steps that make one step of an environment."""


class World:
    """n simulations of a body."""

    file: ClassVar[str]
    starts: ClassVar[tuple[str, ...]] = ("standing",)
    """The poses in which an episode may start."""

    def __init__(self, count: int) -> None:
        import mujoco
        import ogbench.online_locomotion

        mujoco.set_mju_user_warning(_ignore)  # warnings are read from their counters
        path = os.path.join(os.path.dirname(ogbench.online_locomotion.__file__), "assets", self.file)
        tree = ElementTree.parse(path)
        self.furnish(tree)
        self.model: Any = mujoco.MjModel.from_xml_string(ElementTree.tostring(tree.getroot(), encoding="unicode"))
        self.data: list[Any] = [mujoco.MjData(self.model) for _ in range(count)]

    @property
    def actions(self) -> int:
        return int(self.model.nu)

    def furnish(self, tree: ElementTree.ElementTree[Any]) -> None:
        """Add to the world what is not in OGBench's file."""

    def advance(self, actions: Array) -> None:
        """One step of every body, with actions [n, act] between −1 and 1."""
        import mujoco

        for data, action in zip(self.data, actions, strict=True):
            data.ctrl[:] = action
            mujoco.mj_step(self.model, data, FRAMES)

    def start(self, number: int, rng: np.random.Generator, pose: str) -> None:
        """Put one body at its start."""
        import mujoco

        if pose not in self.starts:
            raise UserError(f"this body starts {' or '.join(self.starts)}, not '{pose}'")
        data = self.data[number]
        mujoco.mj_resetData(self.model, data)
        self.place(data, rng, pose)
        mujoco.mj_forward(self.model, data)

    def place(self, data: Any, rng: np.random.Generator, pose: str) -> None:
        """Joints and speeds of a start, from a simulation in its default state."""
        data.qpos += rng.uniform(-0.1, 0.1, self.model.nq)
        data.qvel += 0.1 * rng.standard_normal(self.model.nv)

    def states(self) -> Array:
        """[n, ·], all that the next steps depend on."""
        import mujoco

        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        found = np.zeros((len(self.data), mujoco.mj_stateSize(self.model, kind)))
        for data, state in zip(self.data, found, strict=True):
            mujoco.mj_getState(self.model, data, state, kind)
        return found

    def restore(self, states: Array) -> None:
        """Put all bodies into states that `states` gave."""
        import mujoco

        for data, state in zip(self.data, states, strict=True):
            mujoco.mj_resetData(self.model, data)
            mujoco.mj_setState(self.model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)

    def observations(self) -> Array:
        """[n, obs]."""
        return np.concatenate([self._gather("qpos"), self._gather("qvel")], axis=1)

    def headings(self) -> Array:
        """[n] radians."""
        return yaw(self._gather("qpos")[:, 3:7])

    def broken(self, observations: Array) -> Array:
        """[n] bool: which simulations blew up."""
        fast = (np.abs(self._gather("qvel")) > SPEED_LIMIT).any(axis=1)
        bad = [blew_up(data, seen) for data, seen in zip(self.data, observations, strict=True)]
        return fast | np.array(bad)

    def _gather(self, name: str) -> Array:
        return np.stack([getattr(data, name) for data in self.data])


class Ants(World):
    """OGBench's online ant."""

    file = "ant.xml"


class AntsWithBalls(Ants):
    """OGBench's online ant with a ball, from its 3 m down to the half metre at which a ball starts in a maze."""

    def furnish(self, tree: ElementTree.ElementTree[Any]) -> None:
        ground = tree.find(".//worldbody")
        assert ground is not None
        ball = ElementTree.SubElement(ground, "body", name="ball", pos="0 0 3")
        ElementTree.SubElement(ball, "freejoint", name="ball_root")
        ElementTree.SubElement(
            ball, "geom", name="ball", size=".25", material="ball", priority="1", conaffinity="1", condim="6"
        )

    def place(self, data: Any, rng: np.random.Generator, pose: str) -> None:
        super().place(data, rng, pose)
        data.qpos[:2] = rng.uniform(-1, 1, 2)
        data.qpos[15:17] = rng.uniform(-2, 2, 2)
        data.qpos[17] = rng.uniform(0.5, 3.0)


class Humanoids(World):
    """OGBench's online humanoid. It starts standing with any heading, lying in any pose, or is dropped as in mazes."""

    file = "humanoid.xml"
    starts = ("standing", "lying", "dropped")
    limbs = (16, 10, 13, 7)
    """Left hand, left foot, right hand and right foot among the bodies of the model."""

    def advance(self, actions: Array) -> None:
        """As dm_control does: speeds first, then positions and what is seen of them."""
        import mujoco

        for data, action in zip(self.data, actions, strict=True):
            data.ctrl[:] = action
            mujoco.mj_step2(self.model, data)
            mujoco.mj_step(self.model, data, FRAMES - 1)
            mujoco.mj_step1(self.model, data)

    def start(self, number: int, rng: np.random.Generator, pose: str) -> None:
        import mujoco

        super().start(number, rng, pose)
        mujoco.mj_step1(self.model, self.data[number])

    def restore(self, states: Array) -> None:
        import mujoco

        super().restore(states)
        for data in self.data:
            mujoco.mj_step1(self.model, data)

    def place(self, data: Any, rng: np.random.Generator, pose: str) -> None:
        import mujoco

        if pose == "standing":
            angle = rng.uniform(-math.pi, math.pi)
            data.qpos[2:7] = (1.35, math.cos(angle / 2), 0, 0, math.sin(angle / 2))
            data.qpos[7:] += rng.normal(0, 0.1, self.model.nq - 7)
            data.qvel[:] = rng.normal(0, 0.2, self.model.nv)
            return
        low, high = self.model.jnt_range[1:].T
        while True:  # until it touches nothing
            turn = rng.normal(size=4) if pose == "lying" else rng.uniform(size=4)
            data.qpos[2] = rng.uniform(0.3, 1.5) if pose == "lying" else 1.5
            data.qpos[3:7] = turn / np.linalg.norm(turn)
            data.qpos[7:] = rng.uniform(low, high)
            mujoco.mj_forward(self.model, data)
            if data.ncon == 0:
                return

    def observations(self) -> Array:
        places, turns = self._gather("xpos"), self._gather("xmat")[:, 1]
        limbs = places[:, self.limbs] - places[:, 1:2]
        seen = np.einsum("nli,nij->nlj", limbs, turns.reshape(-1, 3, 3)).reshape(-1, 12)
        joints, speeds, moves = self._gather("qpos"), self._gather("qvel"), self._gather("sensordata")[:, :3]
        return np.concatenate([joints[:, :2], joints[:, 7:], places[:, 2, 2:], seen, turns[:, 6:], moves, speeds], 1)


WORLDS: dict[str, type[World]] = {"ant": Ants, "ant-ball": AntsWithBalls, "humanoid": Humanoids}
"""The world of each body."""


def _ignore(message: str) -> None:
    """Say nothing."""
