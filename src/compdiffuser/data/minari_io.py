"""Minari datasets in and out. A dataset that was exported comes back exactly, without the names of its numbers.

Minari records one action fewer than states; this library pairs the last state with an action too. Export keeps that
last action, qpos, qvel and times among Minari's step infos; import of a foreign dataset fills it with zeros.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from compdiffuser.data.fields import checked
from compdiffuser.types import EXTRA, Array, Episodes, UserError

INFOS = ("actions", *EXTRA)


def from_minari(dataset_id: str, download: bool = False) -> Episodes:
    """Episodes of a local Minari dataset; `download` fetches it first where it is missing."""
    import minari

    try:
        dataset = minari.load_dataset(dataset_id, download=download)
    except Exception as error:  # Minari raises what its storage and hub raise
        raise UserError(f"Minari dataset '{dataset_id}' cannot be loaded: {error}") from error
    columns: dict[str, list[Array]] = {name: [] for name in ("observations", *INFOS)}
    ends: list[Array] = []
    for episode in dataset.iterate_episodes():
        observations = _vector(episode.observations, dataset_id)
        infos = episode.infos or {}
        actions = np.asarray(episode.actions, np.float32)
        last = np.zeros((len(observations) - len(actions), *actions.shape[1:]), np.float32)
        columns["observations"].append(observations)
        columns["actions"].append(np.asarray(infos.get("actions", np.concatenate([actions, last])), np.float32))
        for name in EXTRA:
            if name in infos and len(infos[name]) == len(observations) and (name != "times" or _rises(infos[name])):
                columns[name].append(np.asarray(infos[name], np.float64 if name == "times" else np.float32))
        ends.append(np.arange(len(observations)) == len(observations) - 1)
    if not ends:
        raise UserError(f"Minari dataset '{dataset_id}' has zero episodes")
    whole = {name: np.concatenate(rows) for name, rows in columns.items() if len(rows) == len(ends)}
    fields = {name: checked(f"Minari dataset '{dataset_id}'", name, array) for name, array in whole.items()}
    return Episodes.from_terminals(terminals=np.concatenate(ends), **fields)


def to_minari(episodes: Episodes, dataset_id: str, environment: str | None = None) -> None:
    """Write episodes as a local Minari dataset, e.g. `maze/pointmaze-giant-v0`."""
    import minari
    from gymnasium.spaces import Box
    from minari.data_collector import EpisodeBuffer

    if dataset_id in minari.list_local_datasets():
        raise UserError(f"Minari dataset '{dataset_id}' exists already; delete it or choose another name")
    if int(episodes.lengths.min()) < 2:
        raise UserError("Minari needs episodes of at least 2 states, the shortest here has 1")
    buffers = []
    for number, episode in enumerate(episodes):
        steps = len(episode.observations) - 1
        infos = {name: value for name in INFOS if (value := getattr(episode, name)) is not None}
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations=episode.observations,
                actions=episode.actions[:-1],
                rewards=[0.0] * steps,
                terminations=[False] * steps,
                truncations=[False] * (steps - 1) + [True],
                infos=infos,
            )
        )
    with warnings.catch_warnings():  # one for every optional field that is left empty
        warnings.simplefilter("ignore", UserWarning)
        minari.create_dataset_from_buffers(
            dataset_id,
            buffers,
            env=environment,
            observation_space=Box(-np.inf, np.inf, episodes.observations.shape[1:], np.float32),
            action_space=Box(-np.inf, np.inf, episodes.actions.shape[1:], np.float32),
            description="Exported by compdiffuser.",
        )


def _rises(times: Any) -> bool:
    """Whether what others call times is a clock: a number for each state, larger than the one before."""
    return np.ndim(times) == 1 and bool((np.diff(times) > 0).all())


def _vector(observations: Any, dataset_id: str) -> Array:
    """[L, obs]; of a goal-conditioned dictionary, its observation."""
    if isinstance(observations, dict):
        if "observation" not in observations:
            raise UserError(f"Minari dataset '{dataset_id}' has observations {sorted(observations)}, not 'observation'")
        observations = observations["observation"]
    return np.asarray(observations, np.float32)
