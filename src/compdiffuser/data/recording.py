"""What a recipe is: something that records one episode in a simulator, given its number and a random generator.

A recipe that walks a body through a maze takes the body's low-level policy as an argument, so that a point, an ant and
a humanoid share one recipe and one generator.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from typing import Any, Protocol

import numpy as np

from compdiffuser.types import Array

FIELDS = ("observations", "actions", "qpos", "qvel")


class LowLevelPolicy(Protocol):
    """Turns a direction into an action. Sent to worker processes, so it must pickle."""

    name: str
    """Goes into the manifest: another policy makes another dataset."""

    def __call__(self, observation: Array, direction: Array, rng: np.random.Generator) -> Array:
        """An action [act] for observation [obs] and the unit vector direction [2] in which to go."""


class Recipe(Protocol):
    """Records episodes. The same episode number and generator state give the same recording."""

    def record(self, episode: int, rng: np.random.Generator) -> Recording: ...

    def parameters(self) -> dict[str, Any]:
        """What the manifest says of the recipe, ready for JSON."""


class Recording:
    """One episode as it is recorded: a state and the action taken in it, step after step."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Array]] = {name: [] for name in FIELDS}

    def add(self, observation: Array, action: Array, qpos: Array, qvel: Array) -> None:
        """One state; qpos and qvel are copied, because a simulator overwrites its own."""
        for name, value in zip(FIELDS, (observation, action, qpos.copy(), qvel.copy()), strict=True):
            self._rows[name].append(value)

    def __len__(self) -> int:
        return len(self._rows["observations"])

    def arrays(self) -> dict[str, Array]:
        """Each field as float32 [L, ·]."""
        return {name: np.array(rows, dtype=np.float32) for name, rows in self._rows.items()}


def open_simulator(environment: str, **options: Any) -> Any:
    """The bare gymnasium environment, without the files and descriptors that maze environments leave behind."""
    import gymnasium

    if environment.startswith("PointMaze_"):
        with contextlib.redirect_stderr(io.StringIO()):  # it greets with news about other environments
            import gymnasium_robotics  # noqa: F401 (registers its environments)
    else:
        import ogbench.locomaze
        import ogbench.online_locomotion  # noqa: F401 (both register their environments)
    simulator = gymnasium.make(environment, **options).unwrapped
    leftover: str = getattr(simulator, "tmp_xml_file_path", "") or getattr(simulator, "fullpath", "")
    # The model is compiled: its temporary XML and, in OGBench, the open descriptor on it are not needed any more.
    if os.path.dirname(leftover) == tempfile.gettempdir():
        _close_descriptors(leftover)
        with contextlib.suppress(OSError):
            os.remove(leftover)
    return simulator


def blew_up(data: Any, observation: Array) -> bool:
    """Whether the state blew up; MuJoCo then resets it silently and only counts a warning."""
    import mujoco

    kinds = mujoco.mjtWarning
    bad = (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC, kinds.mjWARN_BADCTRL)
    return not np.isfinite(observation).all() or any(data.warning[kind].number > 0 for kind in bad)


def _close_descriptors(path: str) -> None:
    with contextlib.suppress(OSError):  # only Linux lists them here
        for descriptor in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{descriptor}") == path:
                    os.close(int(descriptor))
