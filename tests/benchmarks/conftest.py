"""Scripts of `benchmarks/` as modules."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark_script(monkeypatch):
    """A script by its name. Like a script that is run, it finds the others beside it."""

    def load(name: str):
        path = SCRIPTS / f"{name}.py"
        monkeypatch.syspath_prepend(path.parent)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load
