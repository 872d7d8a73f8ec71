"""A trained baseline on disk: `model.safetensors` with the weights of all seeds, `config.json` with everything else.

Nothing in a checkpoint is unpickled, so one from a stranger is safe to open.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialize
from torch import Tensor

from compdiffuser.baselines import method
from compdiffuser.baselines.agent import Sizes
from compdiffuser.baselines.policy import GoalPolicy
from compdiffuser.baselines.presets import config_from
from compdiffuser.files import read_json, replacing, write_json
from compdiffuser.presets import Preset
from compdiffuser.types import UserError

WEIGHTS, CONFIG = "model.safetensors", "config.json"
FORMAT = 2  # since 2, RvS has ReLU; what a 1 holds would load, and act as another network


@dataclass(frozen=True, eq=False)
class BaselineCheckpoint:
    """Everything that acting and evaluating need."""

    method: str
    config: Any
    sizes: Sizes
    goal_dims: tuple[int, ...]
    """Observation dimensions that make a goal."""
    seeds: tuple[int, ...]
    """Training seeds; every weight has them as its first dimension."""
    weights: dict[str, Tensor]
    preset: Preset
    """The dataset it was trained on."""
    record: dict[str, Any] = field(default_factory=dict)
    """How it was trained: settings, time, memory, data manifest."""

    def policy(self, seed: int = 0, device: torch.device | str = "cpu") -> GoalPolicy:
        """The policy of training seed number `seed`, counted from 0 and around."""
        number = seed % len(self.seeds)
        agent: Any = method(self.method).agent(self.config, self.sizes, self.seeds[number : number + 1])
        agent.load_state_dict({name: weight[number : number + 1] for name, weight in self.weights.items()})
        agent.to(device).eval()
        return GoalPolicy(agent, self.sizes.observation, self.goal_dims, device)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        folder = Path(folder)
        with replacing(folder / WEIGHTS) as temporary:
            temporary.write_bytes(serialize({name: w.contiguous().cpu() for name, w in self.weights.items()}))
        write_json(
            folder / CONFIG,
            {
                "format": FORMAT,
                "method": self.method,
                "revision": method(self.method).revision,
                "config": asdict(self.config),
                "sizes": self.sizes._asdict(),
                "goal_dims": list(self.goal_dims),
                "seeds": list(self.seeds),
                "preset": asdict(self.preset),
                "record": self.record,
            },
        )
        return folder


def method_in(folder: str | os.PathLike[str]) -> str | None:
    """The baseline whose checkpoint a folder holds; None where it holds none."""
    path = Path(folder) / CONFIG
    values = read_json(path) if path.exists() else {}
    return values.get("method") if isinstance(values, dict) else None


def load(folder: str | os.PathLike[str], expected: str | None = None) -> BaselineCheckpoint:
    """Read a baseline; where `expected` names a method, a checkpoint of another is refused."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"there is no checkpoint at '{folder}'")
    values = read_json(folder / CONFIG)
    found = values.get("method") or values.get("record", {}).get("method") or "an unknown method"
    if expected is not None and found != expected:
        raise UserError(f"'{folder}' holds a checkpoint of {found}, not of {expected}")
    if "sizes" not in values:
        raise UserError(f"'{folder}' holds a checkpoint of {found}, which is no baseline")
    if values.get("format") != FORMAT:
        raise UserError(f"'{folder}' has checkpoint format {values.get('format')}, this version reads {FORMAT}")
    try:
        chosen = method(found)
        if values.get("revision", 1) != chosen.revision:
            raise UserError(f"'{folder}' was trained by another version of {found}; train it anew")
        config = config_from(chosen.config, values["config"])
        sizes, seeds = Sizes(**values["sizes"]), tuple(values["seeds"])
        preset = Preset(**{**values["preset"], "plan_dims": tuple(values["preset"]["plan_dims"])})
        dims = tuple(values["goal_dims"])
    except (KeyError, TypeError) as error:
        raise UserError(f"'{folder / CONFIG}' does not describe a baseline: {error}") from None
    path = folder / WEIGHTS
    if not path.exists():
        raise UserError(f"the checkpoint '{folder}' has no {WEIGHTS}")
    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"'{path}' is corrupt: {error}") from None
    agent: Any = chosen.agent(config, sizes, seeds)
    shapes = {name: weight.shape for name, weight in agent.state_dict().items()}
    if shapes != {name: weight.shape for name, weight in weights.items()}:
        raise UserError(f"'{path}' holds weights of another architecture than its config says")
    return BaselineCheckpoint(found, config, sizes, dims, seeds, weights, preset, values.get("record", {}))
