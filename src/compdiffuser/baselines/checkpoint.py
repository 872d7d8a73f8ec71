"""A trained baseline on disk: an artifact with the weights of all seeds, and everything else in its config."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from compdiffuser.artifact import Artifact, arrays, describing, read_config, record_of, tensors
from compdiffuser.artifact import load as load_artifact
from compdiffuser.artifact import save as save_artifact
from compdiffuser.baselines import method
from compdiffuser.baselines.agent import Agent, Sizes
from compdiffuser.baselines.policy import GoalPolicy
from compdiffuser.baselines.presets import config_from
from compdiffuser.checks import brief, whole
from compdiffuser.presets import Preset
from compdiffuser.restoring import built
from compdiffuser.types import UserError

KIND = "baseline"
FORMAT = 3
MOST_NUMBERS, MOST_SEEDS = 4_096, 1_024
"""Numbers of an observation, an action and a goal; seeds trained side by side."""


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
    found = (read_config(folder) or {}).get("method")
    return found if isinstance(found, str) else None


def load(folder: str | os.PathLike[str], expected: str | None = None) -> BaselineCheckpoint:
    """Read a baseline. Raises UserError for a folder of something else, be it another method than `expected`."""
    folder = Path(folder)
    found = _method(folder)
    if expected is not None and found not in (None, expected):
        raise UserError(f"'{folder}' holds a checkpoint of {found}, not of {expected}")
    artifact = load_artifact(folder, KIND, FORMAT)
    values = artifact.config
    with describing(folder, KIND):
        name, revision = values["method"], values["revision"]
        chosen = method(name)
    if revision != chosen.revision:
        raise UserError(f"'{folder}' was trained by another version of {name}; train it anew")
    with describing(folder, KIND):
        config = config_from(chosen.config, values["config"])
        sizes, seeds = Sizes(**values["sizes"]), tuple(values["seeds"])
        preset, dims = Preset.from_dict(values["preset"]), tuple(values["goal_dims"])
        record = record_of(values)
        _check_numbers(sizes, seeds, dims)
    built(lambda: chosen.agent(config, sizes, seeds), artifact.parts["model"], folder)
    return BaselineCheckpoint(name, config, sizes, dims, seeds, tensors(artifact.parts["model"]), preset, record)


def _check_numbers(sizes: Sizes, seeds: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """Raises UserError where sizes, seeds and dimensions of the goal cannot be, or do not agree."""
    whole(sizes, *Sizes._fields, most=MOST_NUMBERS)
    check_seeds(seeds)
    if len(dims) != sizes.goal or not all(type(dim) is int and 0 <= dim < sizes.observation for dim in dims):
        raise UserError(f"a goal is {sizes.goal} dimensions of {sizes.observation}, not {brief(list(dims))}")


def check_seeds(seeds: Sequence[int]) -> None:
    """Raises UserError where agents cannot have these seeds side by side."""
    apart = 1 <= len({*seeds}) == len(seeds) <= MOST_SEEDS
    if not apart or not all(type(seed) is int and 0 <= seed < 2**63 for seed in seeds):
        raise UserError(f"seeds are 1 to {MOST_SEEDS} different whole numbers of at least 0, not {brief(list(seeds))}")


def _method(folder: Path) -> str | None:
    """The method that a folder's config names, be it a baseline's or a planner's."""
    values = read_config(folder) or {}
    record = values.get("record")
    found = values.get("method") or (record.get("method") if isinstance(record, dict) else None)
    return brief(found) if found else None
