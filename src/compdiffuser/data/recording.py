"""What a recipe is: something that records one episode in an opened world, given its number and a random generator.

An episode is a generator. Where it needs a steersman it yields a `Question` and is sent the answer, so that several
episodes can be recorded side by side and a network is evaluated once for all of them: see `data.lockstep`. A point, an
ant and a humanoid share one recipe, and each has its steersmen.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, Protocol

import numpy as np

from compdiffuser.types import Array

SIDE_BY_SIDE = 16
"""Episodes whose questions to an expert are answered together."""


class Steersman(Protocol):
    """Turns commands into actions. Sent to worker processes, so it must pickle."""

    name: str
    """Goes into the manifest: another steersman makes another dataset."""
    actions: int
    """Numbers in an action."""
    noise: float
    """Standard deviation of the noise that recordings add to its actions."""
    limit: float
    """Largest value of an action; what is larger is clipped."""

    def act(self, observations: Array, commands: Array, /) -> Array:
        """Actions [..., act] for observations [..., obs] and commands [..., 2], unit vectors in which to go or targets.

        Both arrays are filled anew for every step: copy what you keep.
        """


class Question(NamedTuple):
    """What should I do?"""

    steersman: Steersman
    observation: Array
    """[obs]"""
    command: Array
    """[2]"""


class Recording:
    """One episode as it is recorded: a state and the action taken in it, step after step."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Array]] = {"observations": [], "actions": []}

    def add(self, observation: Array, action: Array, simulation: Any = None) -> None:
        """One state. The qpos and qvel of MuJoCo's `simulation` are kept too, as copies: it overwrites its own."""
        rows = self._rows
        rows["observations"].append(observation)
        rows["actions"].append(action)
        if simulation is not None:
            rows.setdefault("qpos", []).append(simulation.qpos.copy())
            rows.setdefault("qvel", []).append(simulation.qvel.copy())

    def __len__(self) -> int:
        return len(self._rows["observations"])

    def arrays(self) -> dict[str, Array]:
        """Each field as float32 [L, ·]."""
        return {name: np.array(rows, dtype=np.float32) for name, rows in self._rows.items()}


Episode = Generator[Question, Array, Recording]
"""An episode while it is recorded: asks, is sent actions [act], and returns what was recorded."""


class Recipe(Protocol):
    """Records episodes. The same episode number and generator state give the same recording, in any world."""

    side_by_side: int
    """Episodes that are recorded together in one process: more than one where a network is asked."""

    def record(self, world: Any, episode: int, rng: np.random.Generator) -> Episode: ...

    def parameters(self) -> dict[str, Any]:
        """What the manifest says of the recipe, ready for JSON."""
