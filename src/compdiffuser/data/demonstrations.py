"""The recipe of a world of one's own: it demonstrates by itself, one episode at a time."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compdiffuser.data.recording import Episode, Recording, Steersman
from compdiffuser.presets import Preset
from compdiffuser.types import UserError


class Demonstrations:
    """Records what `Domain.demonstrate` does in an opened world."""

    side_by_side = 1

    def __init__(self, preset: Preset, steersmen: Sequence[Steersman] = ()) -> None:
        if preset.domain.demonstrate is None:
            raise UserError(f"'{preset.name}' cannot be recorded: the world '{preset.domain.name}' shows nothing")
        self.name, self.demonstrate = preset.name, preset.domain.demonstrate

    def parameters(self) -> dict[str, Any]:
        """What tells this recording from one by other code: the file that demonstrates, where it lies in one."""
        try:
            source = Path(inspect.getfile(inspect.unwrap(self.demonstrate))).read_bytes()
        except (TypeError, OSError):
            return {}
        return {"code": hashlib.sha256(source).hexdigest()[:12]}

    def record(self, world: Any, episode: int, rng: np.random.Generator) -> Episode:
        recording = Recording()
        for observation, action in self.demonstrate(world, rng):
            recording.add(np.array(observation), np.array(action))  # copies: the world may write into its own
        if not len(recording):
            raise UserError(f"episode {episode} of '{self.name}' has no states")
        return recording
        yield  # asks nobody
