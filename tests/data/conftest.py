from pathlib import Path

import numpy as np
import pytest

from compdiffuser.data.generate import make
from compdiffuser.types import Episodes


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small stitch dataset, made by one worker: four shards and one for validation."""
    return make("pointmaze-medium-stitch-v0", 120, workers=1, out=tmp_path_factory.mktemp("data") / "small.npz")


@pytest.fixture
def three() -> Episodes:
    """Three short episodes of 4, 1 and 6 states whose values say where they come from: episode, then step."""
    lengths = [4, 1, 6]
    rows = np.array([[e, t] for e, n in enumerate(lengths) for t in range(n)], np.float32)
    ends = np.cumsum(lengths)
    return Episodes(rows, rows[:, :1] * 0.1, ends - lengths, np.array(lengths), qpos=rows * 2, qvel=rows * 3)
