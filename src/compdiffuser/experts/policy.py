"""A trained expert on disk and at work: `actor.safetensors` and `config.json`, evaluated in NumPy.

A single observation at a time is what a simulator asks for: three small products in NumPy take a tenth of the time of
a call into torch, and worker processes need not import it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as serialize

from compdiffuser.experts.config import ExpertConfig, expert_config
from compdiffuser.files import pretrained_folder, read_json, replacing, sha256, write_json
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError

WEIGHTS, CONFIG = "actor.safetensors", "config.json"
FORMAT = 1
ENDS = 1.0 - 1e-6


class Expert:
    """Walks where it is told. As a low-level policy, it adds Gaussian noise and clips; it pickles."""

    def __init__(self, weights: Mapping[str, Array], name: str = "expert", noise: float = 0.0) -> None:
        self.name, self.noise = name, noise
        numbers = sorted({int(key.split(".")[1]) for key in weights})
        layers = [(weights[f"network.{n}.weight"], weights[f"network.{n}.bias"]) for n in numbers]
        last, bias = layers[-1]
        self.actions = len(last) // 2  # the other half is the spread
        layers[-1] = (last[: self.actions], bias[: self.actions])
        self.layers = [(np.ascontiguousarray(w.T, np.float32), b.astype(np.float32)) for w, b in layers]
        self.inputs = len(self.layers[0][0])

    def act(self, states: Array) -> Array:
        """Actions [..., act] for states [..., inputs]: a body's observation, then the direction."""
        x = states.astype(np.float32)
        for weight, bias in self.layers[:-1]:
            x = np.maximum(x @ weight + bias, 0.0)
        weight, bias = self.layers[-1]
        return np.tanh(x @ weight + bias)

    def __call__(self, observation: Array, direction: Array, rng: np.random.Generator) -> Array:
        """An action [act] for a maze's observation [obs], which begins with x and y, and a direction [2]."""
        state = np.concatenate([observation[2:], direction])
        if len(state) != self.inputs:
            raise UserError(f"{self.name} takes {self.inputs} numbers, a body and a direction, not {len(state)}")
        action = self.act(state) + rng.normal(0.0, self.noise, self.actions)
        return np.minimum(np.maximum(action, -ENDS), ENDS)


def save_expert(folder: Path, weights: Mapping[str, Array], config: ExpertConfig, record: dict[str, Any]) -> None:
    """Leave an actor's weights and what made them in `folder`."""
    with replacing(folder / WEIGHTS) as temporary:
        temporary.write_bytes(serialize({name: np.ascontiguousarray(w, np.float32) for name, w in weights.items()}))
    write_json(folder / CONFIG, {"format": FORMAT, "expert": config.to_dict(), "record": record})


def load_expert(name_or_path: str | os.PathLike[str], noise: float = 0.0) -> tuple[Expert, ExpertConfig]:
    """A shipped expert by name, or one from a folder, with noise on the actions it takes as a low-level policy."""
    folder = Path(name_or_path)
    if not folder.is_dir():
        folder = pretrained_folder() / "experts" / expert_config(os.fspath(name_or_path)).name
    if not folder.is_dir():
        raise UserError(f"no {folder.name} expert is shipped; train one with: compdiffuser data expert {folder.name}")
    values = read_json(folder / CONFIG)
    try:
        if values["format"] != FORMAT:
            raise UserError(f"'{folder}' has expert format {values['format']}, this version reads {FORMAT}")
        config = ExpertConfig.from_dict(values["expert"])
    except (KeyError, TypeError) as error:
        raise UserError(f"'{folder / CONFIG}' does not describe an expert: {error}") from None
    path = folder / WEIGHTS
    if not path.exists():
        raise UserError(f"the expert '{folder}' has no {WEIGHTS}")
    try:
        # Other weights or another noise make another dataset, so both are in the name.
        name = f"{config.name}-expert-{sha256(path)[:12]}-noise-{noise:g}"
        return Expert(load_file(path), name, noise), config
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise UserError(f"'{path}' is corrupt: {error}") from None


def expert_for(preset: Preset, folder: Path | None = None) -> Expert | None:
    """The expert that walks a dataset's body, from `folder` or as shipped; None where the body needs none."""
    if not preset.expert:
        return None
    return load_expert(folder or preset.expert, preset.expert_noise)[0]
