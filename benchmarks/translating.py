"""From OGBench's names to ours: of settings, of the weights in its agents, and of what its batches hold.

Weights come as nested dicts of arrays. OGBench's layer norms have a scale and a shift, for which we have no name.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.baselines.config import AgentConfig
from compdiffuser.types import Array, UserError

NETWORKS: dict[str, dict[str, str]] = {
    "gcivl": {"values.network": "value/value_net", "targets.network": "target_value/value_net"},
    "gciql": {
        "values.network": "value/value_net", "critics.network": "critic/value_net",
        "targets.network": "target_critic/value_net",
    },
    "qrl": {
        "encoder": "value/phi", "dynamics": "dynamics", "metric.mixture": "value/alpha/value",
        "log_multiplier": "lam/log_value",
    },
    "crl": {"critics.left": "critic/phi", "critics.right": "critic/psi"},
    "gcbc": {},
    "hiql": {
        "values.network": "value/value_net", "targets.network": "target_value/value_net",
        "represent": "goal_rep/layers_0", "low_actor.network": "low_actor", "high_actor.network": "high_actor",
    },
}  # fmt: skip
"""Our networks, and where OGBench keeps their weights; beside them, an actor in all but HIQL."""
ACTOR = {"actor.network": "actor"}
SETTINGS = {
    "lr": "learning_rate", "batch_size": "batch", "actor_hidden_dims": "hidden", "value_hidden_dims": "hidden",
    "discount": "discount", "tau": "target_rate", "expectile": "expectile", "alpha": "alpha", "low_alpha": "alpha",
    "high_alpha": "alpha", "subgoal_steps": "subgoal_steps", "rep_dim": "representation", "latent_dim": "latent",
    "eps": "margin",
}  # fmt: skip
SHARES = {"p_curgoal": "current", "p_trajgoal": "trajectory", "p_randomgoal": "random"}
FIELDS = {
    "goals": "actor_goals", "subgoals": "low_actor_goals", "waypoints": "high_actor_targets",
    "waypoint_goals": "high_actor_targets",
}  # fmt: skip
"""Fields of our batches, and what OGBench calls them where it calls them otherwise."""


def settings_of(config: AgentConfig) -> dict[str, Any]:
    """Our settings by OGBench's names; those that a method does not have, or not use, are left out."""
    found = {theirs: getattr(config, ours) for theirs, ours in SETTINGS.items() if hasattr(config, ours)}
    for goals in ("value", "actor"):
        if mix := getattr(config, f"{goals}_goals", None):
            found |= {f"{goals}_{theirs}": getattr(mix, ours) for theirs, ours in SHARES.items()}
            if mix.trajectory:
                found[f"{goals}_geom_sample"] = mix.geometric
    return found


def commands(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Dataset, method and settings of each of the commands that OGBench lists for its published figures."""
    path = folder / "impls" / "hyperparameters.sh"
    if not path.is_file():
        raise UserError(f"'{folder}' is no checkout of OGBench: it has no impls/hyperparameters.sh")
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("python main.py"):
            continue
        options = dict(word.removeprefix("--").split("=", 1) for word in shlex.split(line)[2:])
        settings = {key.removeprefix("agent."): value for key, value in options.items() if key.startswith("agent.")}
        yield options["env_name"], Path(options["agent"]).stem, settings


def weights_of(params: Mapping[str, Any], method: str) -> dict[str, Tensor]:
    """Weights, or their gradients, by our names and in our shapes, with one seed."""
    found: dict[str, Tensor] = {}
    for name, place in (NETWORKS[method] | ({} if method == "hiql" else ACTOR)).items():
        node: Any = params
        for key in f"modules_{place}".split("/"):
            node = node[key]
        if isinstance(node, Mapping):
            found |= {f"{name}.layers.{key}": value for key, value in _layers(node)}
        else:
            found[name] = tensor(node)[None]
    return found


def _layers(network: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Weights [1, C, in, out] and biases [1, C, 1, out] of linear layers, in their order; an actor's last is apart."""
    inner = network.get("actor_net", network)
    linear = [inner[key] for key in sorted(inner) if key.startswith("Dense_")]
    linear += [network["mean_net"]] if "mean_net" in network else []
    for number, layer in enumerate(linear):
        weight, bias = tensor(layer["kernel"]), tensor(layer["bias"])
        yield f"{number}.weight", weight.reshape(1, -1, *weight.shape[-2:])
        yield f"{number}.bias", bias.reshape(1, -1, 1, bias.shape[-1])


def batch_of(drawn: Mapping[str, Array], kind: type[Any]) -> Any:
    """A batch of OGBench's as one of ours, of one seed."""
    drawn = {**drawn, "reached": 1 - drawn["masks"]}
    if "high_actor_goals" in drawn:
        drawn["actor_goals"] = drawn["high_actor_goals"]
    return kind(*(tensor(drawn[FIELDS.get(name, name)])[None] for name in kind._fields))


def tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.array(array, np.float64))
