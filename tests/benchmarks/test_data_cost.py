import numpy as np
import pytest

from compdiffuser.data import storage
from compdiffuser.files import read_json
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.types import Episodes


def test_parts_of_a_recording_are_measured(benchmark_script, tmp_path, monkeypatch):
    script = benchmark_script("data_cost")
    way = np.linspace(-3, 3, 201, dtype=np.float32)
    recorded = [np.stack([way, way * slope], axis=1) for slope in np.linspace(-1, 1, 8)]
    monkeypatch.setattr(storage, "load", lambda name: Episodes.from_lists(recorded))
    for name in ("calibrate", "measure_support"):  # take seconds
        monkeypatch.setattr(script, name, lambda *given: None)
    small = {"width": 16, "depth": 1, "heads": 2}
    monkeypatch.setattr(script, "recipe_for", lambda *asked: recipe_for(*asked).changed(small))
    options = script.Benchmark(shares=(0.5, 1), updates=1, batch=2, device="cpu", out=tmp_path / "cost.json")
    monkeypatch.setattr(script.tyro, "cli", lambda kind: options)
    script.main()
    rows = [entry["row"] for entry in read_json(options.out)["benchmarks"]]
    assert list(dict.fromkeys(rows)) == ["804 states", "1,608 states"]
    memory = [entry["value"] for entry in read_json(options.out)["benchmarks"] if "memory" in entry["column"]]
    assert memory[1] == pytest.approx(2 * memory[0], rel=0.01)
