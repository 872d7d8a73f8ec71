"""A few episodes of a dataset, recorded in one process: the unit of work, and of resuming.

Lanes record side by side, each in a world of its own. An episode belongs to the same lane whatever its shard, and has a
random generator of its own: it depends on its number and on the seed, and on nothing beside it.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np

from compdiffuser.data.fields import checked
from compdiffuser.data.lockstep import lockstep
from compdiffuser.data.recipes import MakeRecipe, recipe_of
from compdiffuser.data.recording import Question, Recipe, Recording, Steersman
from compdiffuser.domains import Domain, World
from compdiffuser.domains.simulators import BlewUp
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError

SPLITS = ("train", "val")
ATTEMPTS = 10
"""Simulations of one episode that may blow up."""

Arrays = dict[str, Array]


@dataclass(frozen=True)
class Shard:
    """Episodes `first` to `first + count − 1` of one split."""

    dataset: Preset
    split: str
    first: int
    count: int
    seed: int
    steersmen: tuple[Steersman, ...] = ()
    make: MakeRecipe | None = None
    """Makes its recipe, also in a process that knows ours alone; by default the one of its dataset's name."""

    @property
    def episodes(self) -> range:
        return range(self.first, self.first + self.count)

    @property
    def file(self) -> str:
        return f"{self.split}-{self.first:06d}-{self.count}.npz"

    def generator(self, episode: int) -> np.random.Generator:
        """The random numbers of an episode."""
        key = (SPLITS.index(self.split), episode)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))


@dataclass(frozen=True)
class Recorded:
    """What a shard came to."""

    fields: Arrays
    """Of its episodes, one after the other: observations, actions, terminals and so on."""
    blown_up: int
    """Simulations that blew up; their episodes were recorded again."""


@dataclass
class Recorder:
    """A recipe at work in opened worlds, one for each lane."""

    dataset: Preset
    recipe: Recipe
    worlds: dict[int, World] = field(default_factory=dict)
    blown_up: int = 0

    def lane(self, shard: Shard, number: int) -> Generator[Question, Array, dict[int, Recording]]:
        """Records those of a shard's episodes that belong to a lane, one after the other."""
        recorded: dict[int, Recording] = {}
        for episode in shard.episodes:
            if episode % self.recipe.side_by_side == number:
                recorded[episode] = yield from self._record(number, episode, shard.generator(episode))
        return recorded

    def _record(self, lane: int, episode: int, rng: np.random.Generator) -> Generator[Question, Array, Recording]:
        """One episode. Where the simulation blows up it starts again, with what its generator draws next."""
        if lane not in self.worlds:
            self.worlds[lane] = self.dataset.domain.open()
        for _ in range(ATTEMPTS):
            try:
                return (yield from self.recipe.record(self.worlds[lane], episode, rng))
            except BlewUp:
                self.blown_up += 1
        raise UserError(f"episode {episode} of '{self.dataset.name}' blew up in each of {ATTEMPTS} simulations")


def record_shard(shard: Shard) -> Recorded:
    """Record the episodes of a shard."""
    # Simulators draw from NumPy's global generator; the caller's own use of it is left as it was.
    before = np.random.get_state()  # noqa: NPY002
    recorder = _recorder(shard)
    recorder.blown_up = 0
    try:
        lanes = [recorder.lane(shard, number) for number in range(recorder.recipe.side_by_side)]
        recordings = {episode: each for lane in lockstep(lanes) for episode, each in lane.items()}
    finally:
        np.random.set_state(before)  # noqa: NPY002
    arrays = [recordings[episode].arrays() for episode in shard.episodes]
    fields = {name: np.concatenate([each[name] for each in arrays]) for name in arrays[0]}
    for name, array in fields.items():
        checked(f"what '{shard.dataset.name}' records", name, array)
    lengths = [len(each["observations"]) for each in arrays]
    fields["terminals"] = np.zeros(sum(lengths), bool)
    fields["terminals"][np.cumsum(lengths) - 1] = True
    return Recorded(fields, recorder.blown_up)


_recorders: dict[tuple[str, ...], Recorder] = {}


def _recorder(shard: Shard) -> Recorder:
    """This process's own for the dataset at hand: maze environments are slow to open, and leak."""
    key = (json.dumps(shard.dataset.to_dict()), *(steersman.name for steersman in shard.steersmen))
    if key not in _recorders or not _as_before(_recorders[key].dataset.domain, shard.dataset.domain):
        for world in (world for recorder in _recorders.values() for world in recorder.worlds.values()):
            world.close()
        _recorders.clear()
        make = shard.make or recipe_of(shard.dataset)
        _recorders[key] = Recorder(shard.dataset, make(shard.dataset, shard.steersmen))
    return _recorders[key]


def _as_before(known: Domain, given: Domain) -> bool:
    """Whether a world of one's own still is what it was: another one may have been registered under its name."""
    if known.demonstrate is None and given.demonstrate is None:
        return True
    return known.demonstrate is given.demonstrate and known.make is given.make
