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


class Counter:
    def __init__(self):
        self.state = np.zeros(2)

    def close(self):
        pass


def counting(world, rng):
    for _ in range(3):
        yield world.state, np.zeros(1)
        world.state += 1


def test_a_demonstration_that_yields_the_world_s_own_array_is_recorded_step_by_step():
    world = Domain("counter", Counter, demonstrate=counting)
    recorded = record_shard(Shard(own_preset("counter", world), "train", 0, 1, seed=0))
    np.testing.assert_array_equal(recorded.fields["observations"][:, 0], [0, 1, 2])
