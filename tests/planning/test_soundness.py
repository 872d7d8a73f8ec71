"""How sound a planner is, told while it is trained: after which updates, and once for each share."""

import pytest

from compdiffuser.planning.sharing.soundness import Reports
from compdiffuser.training.loop import Moment


@pytest.fixture
def told(monkeypatch) -> list[str]:
    found = []
    monkeypatch.setattr(Reports, "_tell", lambda reports, when, checkpoint: found.append(when))
    return found


def look(reports: Reports, *moments: tuple[int, float]) -> None:
    for update, done in moments:
        reports.see(Moment(update, 0.0, done), lambda: None)


def test_shares_are_told_with_the_updates_made(told):
    look(Reports(None, "cpu"), (0, 0.0), (100, 0.2), (200, 0.4), (300, 0.6), (400, 0.8), (500, 1.0))
    assert told == ["after 200 updates", "after 300 updates", "after 400 updates"]


def test_shares_behind_a_continued_run_are_not_told_again(told):
    look(Reports(None, "cpu"), (300, 0.6), (400, 0.7), (1_500, 0.8), (2_000, 1.0))
    assert told == ["after 1,500 updates"]


def test_shares_passed_at_once_are_told_once(told):
    look(Reports(None, "cpu"), (0, 0.0), (900, 0.9))
    assert told == ["after 900 updates"]
