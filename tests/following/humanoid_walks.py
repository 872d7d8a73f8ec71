"""A few short walks of a humanoid, recorded by the shipped student as its datasets are."""

from dataclasses import replace
from functools import cache

import numpy as np

from compdiffuser.data.shards import Shard, record_shard
from compdiffuser.experts.policy import experts_for
from compdiffuser.presets import preset
from compdiffuser.types import Episodes

MEDIUM = preset("humanoidmaze-medium-stitch-v0")


@cache
def recorded(episodes: int = 10, steps: int = 160) -> Episodes:
    short = replace(MEDIUM, name="short", recording=replace(MEDIUM.recording, steps=steps))
    fields = record_shard(Shard(short, "train", 0, episodes, 0, experts_for(MEDIUM))).fields
    return Episodes.from_terminals(**{name: np.asarray(field) for name, field in fields.items()})
