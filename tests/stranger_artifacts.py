"""Small artifacts of every kind, and ways to change what lies in their folders as a stranger might."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from compdiffuser.baselines import method
from compdiffuser.baselines.agent import Sizes
from compdiffuser.baselines.checkpoint import BaselineCheckpoint
from compdiffuser.baselines.checkpoint import load as load_baseline
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import domain
from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.policy import load_expert, save_expert
from compdiffuser.files import sha256
from compdiffuser.following.heading import HeadingConfig, HeadingEstimator, HeadingNetwork, load_heading
from compdiffuser.following.inverse_dynamics import InverseController, load_controller
from compdiffuser.following.network import InverseDynamics, InverseDynamicsConfig
from compdiffuser.models import Denoiser, DenoiserConfig, DiT1dConfig
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.checkpoint import load as load_planner
from compdiffuser.planning.recorded.calibration import calibrate
from compdiffuser.planning.recorded.support import measure_support
from compdiffuser.presets import ChunkConfig, Preset
from compdiffuser.types import Episodes

PRESET = Preset("tiny", domain("pointmaze-medium"), chunks=ChunkConfig(16, 4, most=3, scaffold=0.25))
LOADERS = {
    "planner": load_planner,
    "controller": load_controller,
    "heading": load_heading,
    "baseline": load_baseline,
    "expert": load_expert,
}


def make(root: Path) -> None:
    """One folder per kind, each as small as it can be."""
    torch.manual_seed(0)
    _planner().save(root / "planner")
    model = InverseDynamics(InverseDynamicsConfig(29, 8, "ant", hidden=(4,)))
    InverseController(model, (0.1,)).save(root / "controller")
    HeadingEstimator(HeadingNetwork(HeadingConfig(hidden=(4,)))).save(root / "heading")
    hiql, sizes = method("hiql"), Sizes(2, 2, 2)
    config = hiql.config(hidden=(4,), representation=2)
    weights = hiql.agent(config, sizes, (0, 1)).state_dict()
    BaselineCheckpoint("hiql", config, sizes, (0, 1), (0, 1), weights, PRESET).save(root / "baseline")
    actor = {"network.0.weight": (4, 29), "network.0.bias": (4,), "network.2.weight": (16, 4), "network.2.bias": (16,)}
    save_expert(
        root / "expert", {name: np.ones(shape) for name, shape in actor.items()},
        ExpertConfig("ant", actor_hidden=(4,), critic_hidden=(4,)), {},
    )  # fmt: skip


def _planner() -> Checkpoint:
    """Straight walks across the medium maze, and a network that has never seen them."""
    left, right, bottom, top = PRESET.maze.extent
    start, end = np.random.default_rng(0).uniform([left, bottom], [right, top], (2, 40, 1, 2))
    states = (start + (end - start) * np.linspace(0, 1, 50)[None, :, None]).reshape(-1, 2).astype(np.float32)
    episodes = Episodes.from_terminals(states, np.zeros_like(states), np.arange(len(states)) % 50 == 49)
    denoiser = Denoiser(DenoiserConfig(16, 4, network=DiT1dConfig(width=8, depth=1, heads=1, patch=8)))
    normalizer = Normalizer.from_data(episodes.observations)
    windows = Windows.from_episodes(episodes, PRESET.space, normalizer, 16)
    return Checkpoint(
        denoiser, normalizer, calibrate(denoiser, windows, 4), PRESET, support=measure_support(windows, count=100)
    )  # fmt: skip


def read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())


def write(folder: Path, config: Any) -> None:
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))


def changed(config: dict[str, Any], at: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy with another value somewhere."""
    config = copy.deepcopy(config)
    inner: Any = config
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return config


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand in a config, from the outside in; of lists, the first two."""
    if at:
        yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, below in inner:
        yield from places(below, (*at, key))


def change_part(folder: Path, part: str, change: Any) -> None:
    """Other arrays in a part, with a hash that is right."""
    path = folder / f"{part}.safetensors"
    save_file({name: np.ascontiguousarray(array) for name, array in change(load_file(path)).items()}, path)
    write(folder, changed(read(folder), ("parts", part, "sha256"), sha256(path)))
