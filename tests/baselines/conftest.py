"""A small dataset from the real simulator, made once: agents that learn from it must find their way around."""

from pathlib import Path

import pytest
import torch
from short_ways import MEDIUM

from compdiffuser.data import storage
from compdiffuser.data.generate import make
from compdiffuser.types import Episodes

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def medium_file(tmp_path_factory) -> Path:
    return make(MEDIUM, episodes=150, workers=1, out=tmp_path_factory.mktemp("data") / "medium.npz")


@pytest.fixture(scope="session")
def medium(medium_file) -> Episodes:
    return storage.load(medium_file)
