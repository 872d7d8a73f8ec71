"""Threads wait quietly, and what a user has set stays."""

import os

import pytest

from compdiffuser import threads


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("load", "expected"), [(0.0, {"GOMP_SPINCOUNT": str(threads.SPINS)}), (1.0, {"OMP_WAIT_POLICY": "passive"})]
)
def test_threads_sleep_at_once_on_a_busy_machine_and_soon_on_any(load, expected, monkeypatch):
    monkeypatch.setattr(threads, "load_per_core", lambda: load)
    threads.wait_quietly()
    assert {name: os.environ[name] for name in expected} == expected
    assert len({"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & set(os.environ)) == 1


def test_what_is_set_stays(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.setattr(threads, "load_per_core", lambda: 9.0)
    threads.wait_quietly()
    assert (os.environ["OMP_WAIT_POLICY"], "GOMP_SPINCOUNT" in os.environ) == ("active", False)


def test_the_load_is_a_number():
    assert threads.load_per_core() >= 0
