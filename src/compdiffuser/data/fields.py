"""The fields of files, by all the names that people give them, as episodes. `docs/data.md` has the same table.

Whoever reads a file hands its flat arrays to `episodes_from`: what ends an episode, what is finite and what the clock
says is decided here, once for all formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compdiffuser.types import Array, Episodes, UserError

NAMES: dict[str, tuple[str, ...]] = {
    "observations": ("observations", "obs", "states", "state", "observation.state"),
    "actions": ("actions", "action"),
    "ends": ("terminals", "terminations", "truncations", "timeouts", "dones"),
    "episode_ends": ("episode_ends",),
    "episode": ("episode", "episode_index", "episode_id"),
    "times": ("times", "timestamps", "timestamp"),
    "rate": ("rate", "fps", "control_freq"),
    "step": ("dt",),
    "qpos": ("qpos",),
    "qvel": ("qvel",),
}
"""What each field may be called; the first name counts where several are there."""
WANTED = tuple(name for names in NAMES.values() for name in names)
FLAGS = ("terminals", "terminations", "truncations", "timeouts", "dones")
"""[S], true on the last state of an episode; several are joined."""
TABLES = ("observations", "actions", "qpos", "qvel")
"""Fields [S, n]."""


def episodes_from(where: str, found: Mapping[str, Array], names: Sequence[str] = ()) -> Episodes:
    """Episodes of the flat arrays of a file; `names` are those of observed numbers.

    Raises UserError, which begins with `where`, for a field that is missing or cannot be.
    """
    fields = {name: checked(where, name, array) for name, array in found.items()}
    observations = _first(fields, "observations")
    if observations is None:
        there = ", ".join(fields) or "none of the fields"
        raise UserError(f"{where}: field 'observations' is missing; it has: {there}")
    actions = _first(fields, "actions")
    if actions is None:
        actions = np.zeros((len(observations), 0), np.float32)
    ends = _ends(where, fields, len(observations))
    extra = {name: fields[name] for name in ("qpos", "qvel") if name in fields}
    try:
        recorded = Episodes.from_terminals(observations, actions, ends, **extra, names=tuple(names))
        times = _times(fields, recorded)
        return recorded if times is None else Episodes.from_terminals(
            observations, actions, ends, **extra, names=tuple(names), times=times
        )  # fmt: skip
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def checked(where: str, name: str, array: Array) -> Array:
    """A field as numbers of its shape; tables as float32. Raises UserError with the first row that cannot be."""
    if array.dtype.kind not in "biuf":
        raise UserError(f"{where}: field '{name}' holds {array.dtype} values, expected numbers")
    table = any(name in NAMES[field] for field in TABLES)
    single = name in NAMES["rate"] + NAMES["step"]
    if not single and array.ndim == 2 and not table and array.shape[1] == 1:
        array = array[:, 0]
    if (array.size != 1) if single else (array.ndim != (2 if table else 1)):
        expected = "a number" if single else "[S, dimensions]" if table else "[S]"
        raise UserError(f"{where}: field '{name}' has shape {list(array.shape)}, expected {expected}")
    if table:
        return finite(where, name, array)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        at = int(np.argwhere(~np.isfinite(array.reshape(-1)))[0, 0])
        raise UserError(f"{where}: field '{name}' holds {array.reshape(-1)[at]} in row {at}")
    return array


def finite(where: str, name: str, array: Array) -> Array:
    """A field as float32. Raises UserError with the first row that holds what float32 cannot."""
    with np.errstate(over="ignore"):
        values = array.astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        at = np.argwhere(~np.isfinite(values))[0]
        large = ", too large for float32" if np.isfinite(array[tuple(at)]) else ""
        raise UserError(f"{where}: field '{name}' holds {array[tuple(at)]} in row {at[0]}{large}")
    return values


def _first(fields: Mapping[str, Array], what: str) -> Array | None:
    return next((fields[name] for name in NAMES[what] if name in fields), None)


def _ends(where: str, fields: Mapping[str, Array], states: int) -> Array:
    """[S] bool, true on the last state of each episode, by whatever says so."""
    ends = np.zeros(states, bool)
    told = [name for name in (*FLAGS, "episode_ends", *NAMES["episode"]) if name in fields]
    if not told:
        accepted = ", ".join((*FLAGS, "episode_ends", *NAMES["episode"]))
        raise UserError(f"{where}: no field says where episodes end; accepted are {accepted}")
    for name in told:
        array = fields[name]
        if name == "episode_ends":
            whole = array.astype(np.int64)
            if (np.diff(whole) <= 0).any() or not len(whole) or whole[0] < 1 or whole[-1] != states:
                raise UserError(f"{where}: 'episode_ends' rises from 1 or more to the number of states, {states}")
            ends[whole - 1] = True
        elif len(array) != states:
            raise UserError(f"{where}: field '{name}' has {len(array)} rows, but 'observations' has {states}")
        else:
            ends |= np.append(np.diff(array) != 0, True) if name in NAMES["episode"] else array.astype(bool)
    return ends


def _times(fields: Mapping[str, Any], recorded: Episodes) -> Array | None:
    """[S] seconds since each episode began, by time stamps, or by how long a step is; None where neither is told."""
    first = np.repeat(recorded.starts, recorded.lengths)
    stamps = _first(fields, "times")
    if stamps is not None:
        if len(stamps) != len(first):
            raise UserError(f"times have {len(stamps)} rows, but 'observations' has {len(first)}")
        return np.asarray(stamps, np.float64) - stamps[first]
    rate, step = _first(fields, "rate"), _first(fields, "step")
    if rate is None and step is None:
        return None
    seconds = float(step.reshape(-1)[0]) if step is not None else 1 / max(float(rate.reshape(-1)[0]), 1e-12)  # type: ignore[union-attr]
    if not 0 < seconds < 1e6:
        raise UserError(f"a step takes some seconds, not {seconds:g}")
    return (np.arange(len(first)) - first) * seconds
