"""A folder and a cache of its own for every command, and the oracle planner of the planning tests."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "planning"))
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_folder(tmp_path) -> Path:
    """A path below a file, where nothing can be written."""
    (tmp_path / "file").write_text("not a folder")
    return tmp_path / "file"
