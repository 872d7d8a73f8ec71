import numpy as np

from compdiffuser.data.shards import Shard, record_shard
from compdiffuser.domains import Domain
from compdiffuser.presets import own_preset


class Nowhere:
    opened = closed = 0

    def __init__(self):
        Nowhere.opened += 1

    def close(self):
        Nowhere.closed += 1


def showing(number: float):
    def demonstrate(world, rng):
        return [(np.full(2, number), np.zeros(1))] * 3

    return Domain("nowhere", Nowhere, demonstrate=demonstrate)


def test_a_world_that_was_changed_is_recorded_as_it_is_now():
    for number, world in enumerate((showing(1.0), showing(2.0)), 1):
        for first in (0, 1):
            shard = Shard(own_preset("nowhere", world), "train", first, 1, seed=0)
            np.testing.assert_array_equal(record_shard(shard).fields["observations"], np.full((3, 2), number))
    assert (Nowhere.opened, Nowhere.closed) == (2, 1)
