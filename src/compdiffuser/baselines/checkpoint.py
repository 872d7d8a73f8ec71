"""A trained baseline on disk: an artifact with the weights of all seeds, and everything else in its config."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from compdiffuser.artifact import CONFIG, Artifact, arrays, read_config, tensors
from compdiffuser.artifact import load as load_artifact
from compdiffuser.artifact import save as save_artifact
from compdiffuser.baselines import method
from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.policy import GoalPolicy
from compdiffuser.baselines.presets import config_from
from compdiffuser.presets import Preset
from compdiffuser.types import UserError

KIND = "baseline"
FORMAT = 3


@dataclass(frozen=True, eq=False)
class BaselineCheckpoint:
    """Everything that acting and evaluating need."""

    method: str
    config: Any
    """The method's own `AgentConfig`."""
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
        agent: Agent = method(self.method).agent(self.config, self.sizes, self.seeds[number : number + 1])
        agent.load_state_dict({name: weight[number : number + 1] for name, weight in self.weights.items()})
        agent.to(device).eval()
        return GoalPolicy(agent, self.sizes.observation, self.goal_dims, device)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        config = {
            "method": self.method,
            "revision": method(self.method).revision,
            "config": asdict(self.config),
            "sizes": self.sizes._asdict(),
            "goal_dims": list(self.goal_dims),
            "seeds": list(self.seeds),
            "preset": self.preset.to_dict(),
            "record": self.record,
        }
        return save_artifact(folder, Artifact(KIND, FORMAT, config, {"model": arrays(self.weights)}))


def method_in(folder: str | os.PathLike[str]) -> str | None:
    """The baseline whose checkpoint a folder holds; None where it holds none."""
    return (read_config(folder) or {}).get("method")


def load(folder: str | os.PathLike[str], expected: str | None = None) -> BaselineCheckpoint:
    """Read a baseline. Raises UserError for a folder of something else, be it another method than `expected`."""
    folder = Path(folder)
    found = _method(folder)
    if expected is not None and found not in (None, expected):
        raise UserError(f"'{folder}' holds a checkpoint of {found}, not of {expected}")
    artifact = load_artifact(folder, KIND, FORMAT)
    values, path = artifact.config, folder / CONFIG
    try:
        name = values["method"]
        chosen = method(name)
        if values["revision"] != chosen.revision:
            raise UserError(f"'{folder}' was trained by another version of {name}; train it anew")
        config = config_from(chosen.config, values["config"])
        sizes, seeds = Sizes(**values["sizes"]), tuple(values["seeds"])
        preset, dims = Preset.from_dict(values["preset"]), tuple(values["goal_dims"])
        agent: Agent = chosen.agent(config, sizes, seeds)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"'{path}' does not describe a baseline: {error}") from None
    weights = tensors(artifact.parts["model"])
    shapes = {name: weight.shape for name, weight in agent.state_dict().items()}
    if shapes != {name: weight.shape for name, weight in weights.items()}:
        raise UserError(f"'{folder}' holds weights of another architecture than its config says")
    return BaselineCheckpoint(name, config, sizes, dims, seeds, weights, preset, values.get("record", {}))


def _method(folder: Path) -> str | None:
    """The method that a folder's config names, be it a baseline's or a planner's."""
    values = read_config(folder) or {}
    record = values.get("record")
    return values.get("method") or (record.get("method") if isinstance(record, dict) else None)
