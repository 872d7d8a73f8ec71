"""A small dataset from the real simulator, made once: agents that learn from it must find their way around."""

import importlib.util
import sys
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


@pytest.fixture
def benchmark_script(monkeypatch):
    """A script of `benchmarks/` as a module, by its name."""

    def load(name: str):
        path = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
        monkeypatch.syspath_prepend(path.parent)  # as for a script that is run
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load
