"""Robomimic's HDF5 files: a group `data` with a group for each demonstration, observations by name in its group `obs`.

Observed numbers of all names stand side by side, in the order of the names; pictures are left out. A file without
observations has MuJoCo's states. `mask/train` and `mask/valid` list demonstrations, where there are such lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from compdiffuser.data.claims import check_groups, check_hdf5
from compdiffuser.types import Array, UserError

MASKS = {"train": "train", "val": "valid"}


def demonstrations(file: Any, split: str) -> tuple[dict[str, Array], list[str]]:
    """Flat arrays of the demonstrations of an open file, and the names of observed numbers. Raises UserError."""
    check_groups(file, ["data", "mask"])
    data = file["data"]
    chosen = _chosen(file, split)
    check_groups(data, chosen)
    for name in chosen:
        check_groups(data[name], ["obs"])
        check_hdf5(data[name], ["actions", "states"])
        if isinstance(data[name].get("obs"), Mapping):
            check_hdf5(data[name]["obs"], data[name]["obs"])
    parts = [_states(data[name], name) for name in chosen]
    names = parts[0][1]
    if strange := next((name for name, part in zip(chosen, parts, strict=True) if part[1] != names), None):
        raise UserError(f"demonstration '{strange}' observes other numbers than '{chosen[0]}'")
    lengths = [len(states) for states, _ in parts]
    fields = {
        "observations": np.concatenate([states for states, _ in parts]),
        "episode_index": np.repeat(np.arange(len(chosen)), lengths),
    }
    if all("actions" in data[name] for name in chosen):
        fields["actions"] = np.concatenate([np.asarray(data[name]["actions"]) for name in chosen])
    if (rate := _rate(data.attrs.get("env_args"))) is not None:
        fields["control_freq"] = np.array(rate)
    return fields, names


def _chosen(file: Any, split: str) -> list[str]:
    """Names of the demonstrations of a split, by their numbers."""
    everyone = sorted(file["data"], key=_number)
    if not everyone:
        raise UserError("its group 'data' holds no demonstrations")
    if isinstance(file.get("mask"), Mapping):
        check_hdf5(file["mask"], [MASKS[split]])
    mask = file.get(f"mask/{MASKS[split]}")
    if mask is None:
        if split != "train":
            raise UserError("it has no validation split, which would be the list 'mask/valid'")
        return everyone
    listed = {each.decode() if isinstance(each, bytes) else str(each) for each in np.asarray(mask)}
    if missing := sorted(listed - set(everyone)):
        raise UserError(f"'mask/{MASKS[split]}' lists '{missing[0]}', and there is no such demonstration")
    return [name for name in everyone if name in listed]


def _number(name: str) -> tuple[int, str]:
    found = re.search(r"\d+$", name)
    return (int(found[0]) if found else 0, name)


def _states(demo: Any, name: str) -> tuple[Array, list[str]]:
    """Observed numbers [L, obs] of a demonstration, and their names."""
    if "obs" not in demo and "states" not in demo:
        raise UserError(f"demonstration '{name}' has neither 'obs' nor 'states'")
    sources = {key: demo["obs"][key] for key in sorted(demo["obs"])} if "obs" in demo else {"states": demo["states"]}
    flat = {key: array for key, array in sources.items() if array.ndim in (1, 2) and array.dtype.kind in "biuf"}
    if not flat:
        raise UserError(f"demonstration '{name}' observes pictures alone: {', '.join(sources)}")
    columns = {key: np.asarray(array).reshape(len(array), *array.shape[1:] or (1,)) for key, array in flat.items()}
    if len({len(array) for array in columns.values()}) > 1:
        raise UserError(f"observations of demonstration '{name}' have different lengths")
    sizes = {key: array.shape[1] for key, array in columns.items()}
    names = [key if size == 1 else f"{key} {number}" for key, size in sizes.items() for number in range(size)]
    return np.concatenate(list(columns.values()), axis=1), names


def _rate(arguments: Any) -> float | None:
    """Steps a second, as the environment's arguments say, where they do."""
    try:
        rate = json.loads(arguments)["env_kwargs"]["control_freq"]
        return float(rate)
    except (TypeError, ValueError, LookupError):
        return None
