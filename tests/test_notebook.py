"""The notebook in `examples/`, its cells run in order as Jupyter would."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "own_data.ipynb"


@pytest.mark.long
@pytest.mark.slow
def test_own_data_becomes_a_driven_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells)
    names: dict = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    plt.close("all")
    assert names["arrived"]
    assert names["plan"].ok
