"""LeRobot's datasets, versions 2 and 3: `meta/info.json` and frames in Parquet files under `data/`.

Version 2 has a file for each episode, version 3 puts many episodes into one; both name each frame's episode. The state
comes first, then other observed numbers; pictures and videos are left out. pyarrow is all that is needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from compdiffuser.files import read_json
from compdiffuser.types import Array, UserError

STATE, ACTION = "observation.state", "action"
VERSIONS = ("v2", "v3")
SPLITS = {"train": ("train",), "val": ("val", "valid", "validation", "test")}
NUMBERS = ("float32", "float64", "int64", "int32", "bool")


def frames(folder: Path, split: str) -> tuple[dict[str, Array], list[str]]:
    """Flat arrays of all frames of a split, in order, and the names of observed numbers. Raises UserError."""
    import pyarrow.parquet as parquet

    info = read_json(folder / "meta" / "info.json")
    version = str(info.get("codebase_version", "v2.0"))
    if not version.startswith(VERSIONS):
        raise UserError(f"it is in LeRobot's format {version}; {' and '.join(VERSIONS)} can be read")
    features = info.get("features")
    observed = _observed(features if isinstance(features, dict) else {})
    files = sorted((folder / "data").rglob("*.parquet"))
    if not files:
        raise UserError("there is no Parquet file in its folder 'data'")
    acts = isinstance(features, dict) and ACTION in features
    wanted = [*observed, *([ACTION] if acts else []), "episode_index", "frame_index", "timestamp"]
    tables = [table for file in files if (table := parquet.read_table(file, columns=wanted)).num_rows]
    if not tables:
        raise UserError("the Parquet files in its folder 'data' have no rows")
    columns = {name: np.concatenate([_column(table, name) for table in tables]) for name in wanted}
    order = np.lexsort((columns["frame_index"][:, 0], columns["episode_index"][:, 0]))
    order = order[_of_split(columns["episode_index"][order, 0], info.get("splits"), split)]
    fields = {
        "observations": np.concatenate([columns[name][order] for name in observed], axis=1),
        "episode_index": columns["episode_index"][order, 0],
    }
    if acts:
        fields["actions"] = columns[ACTION][order]
    stamps = columns["timestamp"][order, 0]
    if np.isfinite(stamps).all() and (np.diff(stamps)[np.diff(fields["episode_index"]) == 0] > 0).all():
        fields["timestamp"] = stamps
    elif info.get("fps"):
        fields["fps"] = np.array(float(info["fps"]))
    names = [name for feature in observed for name in _names(features[feature], feature, columns[feature].shape[1])]
    return fields, names


def _observed(features: dict[str, Any]) -> list[str]:
    """Features that are observed numbers, the state first."""
    flat = [
        name
        for name, feature in features.items()
        if name.startswith("observation.") and feature.get("dtype") in NUMBERS and len(feature.get("shape", ())) <= 1
    ]
    if not flat:
        raise UserError("its features have no observed numbers, such as 'observation.state'")
    return sorted(flat, key=lambda name: (name != STATE, name))


def _column(table: Any, name: str) -> Array:
    """A column [n, numbers] of a table, whose cells are numbers or lists of them."""
    import pyarrow.compute as compute

    column = table[name].combine_chunks()
    rows = len(column)
    if column.null_count:
        raise UserError(f"column '{name}' has {column.null_count} empty cells")
    if "list" not in str(column.type):
        return column.to_numpy(zero_copy_only=False).reshape(rows, 1)
    if len(np.unique(compute.list_value_length(column).to_numpy(zero_copy_only=False))) > 1:
        raise UserError(f"cells of column '{name}' have different lengths")
    return column.flatten().to_numpy(zero_copy_only=False).reshape(rows, -1)


def _of_split(episodes: Array, splits: Any, split: str) -> Array:
    """[n] bool: which frames belong to a split, which names a range of episodes, such as "0:45"."""
    ranges = splits if isinstance(splits, dict) else {}
    told = next((ranges[name] for name in SPLITS[split] if name in ranges), None)
    if told is None:
        if split != "train":
            raise UserError(f"it has no validation split; its splits are {', '.join(ranges) or 'none'}")
        return np.ones(len(episodes), bool)
    first, _, end = str(told).partition(":")
    if not (first.isdigit() and end.isdigit()):
        raise UserError(f"a split is a range of episodes such as 0:45, not '{told}'")
    return (episodes >= int(first)) & (episodes < int(end))


def _names(feature: dict[str, Any], called: str, count: int) -> list[str]:
    """What each number of a feature is called: a list of names, or lists by kind."""
    names = feature.get("names")
    if isinstance(names, dict):
        names = [each for part in names.values() for each in (part if isinstance(part, list) else [part])]
    if isinstance(names, list) and len(names) == count:
        return [str(name) for name in names]
    return [called] if count == 1 else [f"{called} {number}" for number in range(count)]
