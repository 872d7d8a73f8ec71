"""Opening MuJoCo's environments, and telling when a simulation blew up."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from functools import cached_property
from typing import Any

from compdiffuser.types import Array

FIRST_BAD = 4
"""MuJoCo's warning of a bad position; those of a bad velocity, acceleration and control come after it."""


def open_simulator(environment: str, **options: Any) -> Any:
    """The bare environment of an id such as `ogbench.locomaze:antmaze-giant-v0`, a module and a name it registers.

    The files and descriptors that maze environments leave behind are removed.
    """
    import gymnasium
    import mujoco

    # Warnings are read from their counters; MuJoCo would also write them to a file in the user's folder.
    mujoco.set_mju_user_warning(_ignore)
    return tidied(gymnasium.make(environment, **options).unwrapped)


def tidied(simulator: Any) -> Any:
    """A simulator that was just made, without the temporary file that it left behind."""
    leftover: str = getattr(simulator, "tmp_xml_file_path", "") or getattr(simulator, "fullpath", "")
    # The model is compiled: its temporary XML and, in OGBench, the open descriptor on it are not needed any more.
    if os.path.dirname(leftover) == tempfile.gettempdir():
        _close_descriptors(leftover)
        with contextlib.suppress(OSError):
            os.remove(leftover)
    return simulator


class MujocoWorld:
    """What worlds around one of MuJoCo's environments have in common."""

    env: Any

    @property
    def data(self) -> Any:
        """The simulator's state: qpos and qvel."""
        return self.env.data

    @cached_property
    def _warnings(self) -> Array:
        """The simulator's own counts of warnings, not a copy."""
        return self.env.data.warning.number

    def blew_up(self, observation: Array) -> bool:
        """Whether the simulation blew up before it came to an observation [obs]."""
        return is_bad(self._warnings, observation)

    def scene(self) -> tuple[Any, Array]:
        return self.env.model, self.env.data.qpos.copy()

    def close(self) -> None:
        self.env.close()


class BlewUp(Exception):
    """The simulation blew up, and the episode cannot go on."""


def blew_up(data: Any, observation: Array) -> bool:
    """Whether the state blew up; MuJoCo then resets it silently and only counts a warning."""
    return is_bad(data.warning.number, observation)


def is_bad(warnings: Array, observation: Array) -> bool:
    """The same, from MuJoCo's counts of warnings, for whoever asks at every step."""
    return not math.isfinite(sum(observation.tolist())) or any(warnings.tolist()[FIRST_BAD:])


def _ignore(message: str) -> None:
    """Say nothing."""


def _close_descriptors(path: str) -> None:
    with contextlib.suppress(OSError):  # only Linux lists them here
        for descriptor in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{descriptor}") == path:
                    os.close(int(descriptor))
