"""What every part of the library speaks of: recorded episodes, policies, and a user's mistakes.

Letters used in shapes throughout: S states in a dataset · E episodes run side by side · B candidates · K chunks per
plan · H chunk length · O overlap · D planned state dimensions · T = K·H − (K−1)·O plan length · N denoising steps ·
M rows (chunks of all candidates of all problems) · σ noise level.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EXTRA = ("qpos", "qvel", "times")
"""Fields of episodes, one row for each state, that a recording may lack."""


def counted(count: int, what: str) -> str:
    """A number and what it counts: "1 chunk", "2 chunks"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def install(extra: str) -> str:
    """How to install what an extra holds."""
    return f"in your clone: pip install -c constraints.txt -e '.[{extra}]'"


class UserError(ValueError):
    """A mistake in what the user gave: one sentence that names the value. The command line exits with code 2."""


@dataclass(frozen=True, repr=False)
class Episodes:
    """Recorded trajectories as flat read-only arrays; episode e is rows `starts[e] : starts[e] + lengths[e]`.

    observations [S, obs] · actions [S, act] · starts [E] · lengths [E] · optional qpos [S, nq], qvel [S, nv] and times
    [S], the seconds since an episode began. Recordings without actions have [S, 0].
    """

    observations: Array
    actions: Array
    starts: Array
    lengths: Array
    qpos: Array | None = None
    qvel: Array | None = None
    times: Array | None = None
    names: tuple[str, ...] = ()
    """What each number of an observation is, where the recording says."""

    def __post_init__(self) -> None:
        if len(self.starts) == 0:
            raise UserError("a dataset needs at least one episode, this one has 0")
        for name in ("observations", "actions", "starts", "lengths", *EXTRA):
            array = getattr(self, name)
            if array is not None:
                array = np.ascontiguousarray(array)
                if array.flags.writeable:
                    array = array.view()
                    array.flags.writeable = False
                object.__setattr__(self, name, array)
        states = len(self.observations)
        for name in ("actions", *EXTRA):
            array = getattr(self, name)
            if array is not None and len(array) != states:
                raise UserError(f"field '{name}' has {len(array)} rows, but 'observations' has {states}")
        if (self.lengths < 1).any() or (self.starts < 0).any() or (self.starts + self.lengths > states).any():
            raise UserError(f"episode starts and lengths do not fit the {states} recorded states")
        if self.times is not None and len(early := np.flatnonzero(~(np.diff(self.times) > 0) & self.inside)):
            at = f"state {early[0] + 1} is recorded no later than the one before it"
            raise UserError(f"times rise from state to state of an episode, but {at}")
        if self.names and len(self.names) != self.observations.shape[1]:
            raise UserError(f"{len(self.names)} names were given for {self.observations.shape[1]} observed numbers")

    def __repr__(self) -> str:
        """In a line; the arrays are long."""
        least, most = int(self.lengths.min()), int(self.lengths.max())
        each = f"{least}" if least == most else f"{least} to {most}"
        sizes = f"observations [{self.observations.shape[1]}], actions [{self.actions.shape[1]}]"
        return f"Episodes({counted(len(self), 'episode')} of {each} states, {sizes})"

    @classmethod
    def from_terminals(cls, observations: Array, actions: Array, terminals: Array, **extra: Any) -> Episodes:
        """Episodes from flat arrays in which `terminals` [S] is true on the last state of each."""
        if len(terminals) != len(observations):
            raise UserError(f"field 'terminals' has {len(terminals)} rows, but 'observations' has {len(observations)}")
        ends = np.flatnonzero(np.asarray(terminals).astype(bool)) + 1
        if len(observations) and (len(ends) == 0 or ends[-1] != len(observations)):
            ends = np.append(ends, len(observations))
        starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else np.zeros(0, np.int64)
        return cls(observations, actions, starts, (ends - starts).astype(np.int64), **extra)

    @classmethod
    def from_lists(
        cls,
        observations: Sequence[Array],
        actions: Sequence[Array] | None = None,
        times: Sequence[Array] | None = None,
        rate: float | None = None,
    ) -> Episodes:
        """Episodes from one array each: observations [L, obs] and, where there are, actions [L or L − 1, act].

        Where an episode has an action fewer than states, the last is 0. `times` [L] are seconds, or `rate` is how many
        states a second has. Raises UserError where the arrays do not fit each other.
        """
        if rate is not None and not 0 < rate < np.inf:
            raise UserError(f"the rate is a number of states a second above 0, not {rate}")
        seen = [np.asarray(each, np.float32) for each in observations]
        for number, each in enumerate(seen):
            if each.ndim != 2 or not len(each) or each.shape[1] != seen[0].shape[1]:
                expected = "[L, obs] with at least a state, obs the same for all"
                raise UserError(f"episode {number} has observations of shape {list(each.shape)}, expected {expected}")
            if not np.isfinite(each).all():
                raise UserError(f"episode {number} has observations that are not finite")
        lengths = np.array([len(each) for each in seen], np.int64)
        done = [np.zeros((len(each), 0), np.float32) for each in seen] if actions is None else _paired(actions, lengths)
        clock = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        when = None if rate is None else clock / rate
        if times is not None:
            when = np.concatenate([np.asarray(each, np.float64) - each[0] for each in times])
        rows = np.concatenate(seen) if seen else np.zeros((0, 0), np.float32)
        return cls(rows, np.concatenate(done) if done else rows, np.cumsum(lengths) - lengths, lengths, times=when)

    @property
    def step_seconds(self) -> float | None:
        """Seconds from one state to the next, the median; None where nobody knows."""
        if self.times is None or not len(steps := np.diff(self.times)[self.inside]):
            return None
        return float(np.median(steps))

    @property
    def terminals(self) -> Array:
        """[S] bool, true on the last state of each episode."""
        flags = np.zeros(len(self.observations), bool)
        flags[self.starts + self.lengths - 1] = True
        return flags

    @property
    def inside(self) -> Array:
        """[S − 1] bool, true where a state and the next one are of the same episode; some rows may be of none."""
        change = np.zeros(len(self.observations), np.int64)
        np.add.at(change, self.starts, 1)
        np.add.at(change, self.starts + self.lengths - 1, -1)
        return np.cumsum(change)[:-1] > 0

    def digest(self) -> str:
        """A few characters that differ where states, actions or episodes do."""
        arrays = (getattr(self, name) for name in ("observations", "actions", "starts", "lengths"))
        return hashlib.blake2b(b"".join(hashlib.blake2b(a.data).digest() for a in arrays), digest_size=6).hexdigest()

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int | slice) -> Episodes:
        """The chosen episodes as a dataset of their own; an int chooses one."""
        if not isinstance(index, slice):  # NumPy's whole numbers too
            index = range(len(self))[index]
            index = slice(index, index + 1)
        chosen = range(len(self))[index]
        rows = np.concatenate(
            [np.zeros(0, np.int64), *(np.arange(self.starts[e], self.starts[e] + self.lengths[e]) for e in chosen)]
        )
        lengths = self.lengths[index]
        starts = np.cumsum(lengths) - lengths
        extra = {name: array[rows] for name in EXTRA if (array := getattr(self, name)) is not None}
        return Episodes(self.observations[rows], self.actions[rows], starts, lengths, **extra, names=self.names)

    def __iter__(self) -> Iterator[Episodes]:
        return (self[e] for e in range(len(self)))

    def describe(self) -> dict[str, Any]:
        """Counts, lengths and ranges, ready for JSON."""
        return {
            "episodes": len(self),
            "states": int(self.lengths.sum()),
            "episode_length": {
                "min": int(self.lengths.min()),
                "median": float(np.median(self.lengths)),
                "max": int(self.lengths.max()),
            },
            "fields": {
                name: {
                    "shape": list(array.shape),
                    "dtype": str(array.dtype),
                    "min": [round(float(v), 4) for v in array.min(axis=0)],
                    "max": [round(float(v), 4) for v in array.max(axis=0)],
                }
                for name in ("observations", "actions", "qpos", "qvel")
                if (array := getattr(self, name)) is not None
            },
            "names": list(self.names),
            "step_seconds": self.step_seconds,
        }


def _paired(actions: Sequence[Array], lengths: Array) -> list[Array]:
    """An action for every state, of lists of actions [L or L − 1, act]. Raises UserError where they do not fit."""
    if len(actions) != len(lengths):
        raise UserError(f"actions of {counted(len(actions), 'episode')} were given with states of {len(lengths)}")
    paired = []
    for number, (each, length) in enumerate(zip(actions, lengths, strict=True)):
        array = np.asarray(each, np.float32)
        if array.ndim != 2 or len(array) not in (length, length - 1) or array.shape[1] != np.shape(actions[0])[1]:
            expected = f"[{length} or {length - 1}, act], act the same for all"
            raise UserError(f"episode {number} has actions of shape {list(array.shape)}, expected {expected}")
        if not np.isfinite(array).all():
            raise UserError(f"episode {number} has actions that are not finite")
        paired.append(np.concatenate([array, np.zeros((length - len(array), array.shape[1]), np.float32)]))
    return paired


class Policy(Protocol):
    """Acts in E environments side by side, so that a whole evaluation is planned and inferred in one batch."""

    def reset(self, observations: Array, goals: Array) -> None:
        """Start E episodes: observations [E, obs], goals [E, goal]."""

    def act(self, observations: Array, active: Array) -> Array:
        """Actions [E, act] for observations [E, obs]; rows where `active` [E] is false are finished and ignored."""
