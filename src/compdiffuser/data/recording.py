"""What a recipe is: something that records one episode in a simulator, given its number and a random generator.

A recipe that walks a body through a maze takes the body's steersman as an argument, so that a point, an ant and a
humanoid share one recipe and one generator.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from compdiffuser.types import Array


class Steersman(Protocol):
    """Turns a direction into an action. Sent to worker processes, so it must pickle."""

    name: str
    """Goes into the manifest: another steersman makes another dataset."""

    def __call__(self, observation: Array, command: Array, rng: np.random.Generator, /) -> Array:
        """An action [act] for observation [obs] and a command [2]: the unit vector in which to go, or a target."""


class Recipe(Protocol):
    """Records episodes. The same episode number and generator state give the same recording."""

    def record(self, episode: int, rng: np.random.Generator) -> Recording: ...

    def parameters(self) -> dict[str, Any]:
        """What the manifest says of the recipe, ready for JSON."""


class Recording:
    """One episode as it is recorded: a state and the action taken in it, step after step."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Array]] = {"observations": [], "actions": []}

    def add(self, observation: Array, action: Array, simulation: Any = None) -> None:
        """One state. The qpos and qvel of MuJoCo's `simulation` are kept too, as copies: it overwrites its own."""
        state = {"observations": observation, "actions": action}
        if simulation is not None:
            state |= {"qpos": simulation.qpos.copy(), "qvel": simulation.qvel.copy()}
        for name, value in state.items():
            self._rows.setdefault(name, []).append(value)

    def __len__(self) -> int:
        return len(self._rows["observations"])

    def arrays(self) -> dict[str, Array]:
        """Each field as float32 [L, ·]."""
        return {name: np.array(rows, dtype=np.float32) for name, rows in self._rows.items()}
