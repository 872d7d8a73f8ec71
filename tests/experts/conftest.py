import numpy as np
import pytest
from small_experts import tiny


@pytest.fixture
def small():
    return tiny("ant")


@pytest.fixture
def short_walks(monkeypatch):
    """Measurements that take no time."""
    monkeypatch.setattr("compdiffuser.experts.evaluation.WALK", 10)
    monkeypatch.setattr("compdiffuser.experts.evaluation.LONG_WALK", 10)


@pytest.fixture(autouse=True)
def _global_randomness():
    before = np.random.get_state()  # noqa: NPY002
    yield
    np.random.set_state(before)  # noqa: NPY002
