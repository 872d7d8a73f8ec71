"""The recipe of a world of one's own: it demonstrates by itself, one episode at a time."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from compdiffuser.data.recording import Recording
from compdiffuser.presets import Preset
from compdiffuser.types import UserError


class Demonstrations:
    """Records what `Domain.demonstrate` does in an opened world."""

    def __init__(self, preset: Preset, steersman: None = None) -> None:
        if preset.domain.demonstrate is None:
            raise UserError(f"'{preset.name}' cannot be recorded: the world '{preset.domain.name}' shows nothing")
        self.name, self.domain, self.demonstrate = preset.name, preset.domain, preset.domain.demonstrate

    @cached_property
    def world(self) -> Any:
        """Opened where it is used: in the worker process, once."""
        return self.domain.open()

    def parameters(self) -> dict[str, Any]:
        return {}

    def record(self, episode: int, rng: np.random.Generator) -> Recording:
        recording = Recording()
        for observation, action in self.demonstrate(self.world, rng):
            recording.add(np.asarray(observation), np.asarray(action))
        if not len(recording):
            raise UserError(f"episode {episode} of '{self.name}' has no states")
        return recording
