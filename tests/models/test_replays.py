import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from tape import taped  # noqa: F401

from compdiffuser.models import replays
from compdiffuser.models.replays import Recorded, Replays

ONE = torch.arange(3.0)


class Counted:
    """A computation that knows how often Python ran it."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self):
        def compute(x):
            self.times += 1
            return 2 * x + 1

        return compute


def asked(whole: Replays, structure: str, computation: Counted, x=ONE, rounds: int = 40) -> None:
    assert torch.equal(whole(structure, rounds, computation, [x]), 2 * x + 1)


def test_a_structure_is_recorded_when_it_is_asked_for_again_and_replayed_from_then_on():
    whole, computation = Replays(Recorded), Counted()
    asked(whole, "a", computation)
    assert not whole.kept
    for number in range(4):
        asked(whole, "a", computation, ONE - number)
    assert computation.times == 2  # computed once, recorded once


def test_other_shapes_and_types_are_other_structures():
    whole, computation = Replays(Recorded), Counted()
    for x in (ONE, ONE, ONE[:2], ONE.double()):
        asked(whole, "a", computation, x)
    assert len(whole.kept) == 1
    assert len(whole.asked) == 3


def test_a_result_stays_when_the_recording_is_replayed():
    whole = Replays(Recorded, again=1)
    first = whole("a", 1, Counted(), [ONE])
    whole("a", 1, Counted(), [ONE + 5])
    assert torch.equal(first, 2 * ONE + 1)


def test_room_is_bounded_and_what_was_not_asked_for_lately_goes():
    whole = Replays(Recorded, again=1, room=100)
    for name in ("a", "b", "a", "c"):
        asked(whole, name, Counted())
    assert [key[0] for key in whole.kept] == ["a", "c"]
    asked(whole, "b", Counted())  # one too many is in use: it is not recorded again so soon
    assert [key[0] for key in whole.kept] == ["a", "c"]
    for _ in range(-replays.LET_GO):
        asked(whole, "b", Counted())
    assert [key[0] for key in whole.kept] == ["c", "b"]


def test_short_recordings_count_too():
    whole = Replays(Recorded, again=1, room=3 * replays.LEAST)
    for number in range(5):
        asked(whole, str(number), Counted(), rounds=1)
    assert len(whole.kept) == 3


def test_structures_that_are_remembered_are_bounded(monkeypatch):
    monkeypatch.setattr(replays, "MOST_ASKED", 4)
    whole = Replays(Recorded)
    for number in range(9):
        asked(whole, str(number), Counted())
    assert len(whole.asked) == 4


@pytest.mark.parametrize("size", [{"rounds": replays.MOST_ROUNDS + 1}, {"x": torch.zeros(replays.MOST_ROWS + 1)}])
def test_what_is_long_or_large_is_never_recorded(size):
    whole, computation = Replays(Recorded), Counted()
    for _ in range(3):
        asked(whole, "a", computation, **size)
    assert computation.times == 3
    assert not whole.asked


def test_what_cannot_be_recorded_is_computed(caplog):
    whole = Replays(Recorded)
    recorded = []

    def compute(x):
        recorded.append(len(recorded))
        return x[(x > 1).nonzero()[:, 0]]

    for _ in range(4):
        assert torch.equal(whole("a", 1, lambda: compute, [ONE]), ONE[2:])
    assert len(recorded) == 5  # tried once
    assert len(caplog.messages) == 1
    assert "nonzero" in caplog.text


def test_an_error_of_a_user_is_no_failure_to_record():
    def compute(x):
        raise ValueError("wrong")

    whole = Replays(Recorded, again=1)
    with pytest.raises(ValueError, match="wrong"):
        whole("a", 1, lambda: compute, [ONE])


def test_a_thread_does_not_record_what_another_one_computes_for_the_first_time():
    """What is recorded must have been computed before."""
    begun, go_on, recorded = threading.Event(), threading.Event(), []

    def slowly(x):
        begun.set()
        assert go_on.wait(20)
        return 2 * x + 1

    def record(compute, inputs):
        recorded.append(go_on.is_set())
        return Recorded(compute, inputs)

    whole = Replays(record)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(whole, "a", 1, lambda: slowly, [ONE])
        assert begun.wait(20)
        try:
            asked(whole, "a", Counted(), rounds=1)
            assert not recorded
        finally:
            go_on.set()
        first.result()
    asked(whole, "a", Counted(), rounds=1)
    assert recorded == [True]


def test_a_recording_holds_what_it_reads():
    whole, table = Replays(Recorded, again=1), torch.arange(3.0)
    whole("a", 1, lambda: partial(torch.add, table.clone()), [ONE])
    assert torch.equal(whole("a", 1, lambda: partial(torch.add, None), [ONE + 1]), table + ONE + 1)
