import pytest

from compdiffuser.files import read_json


@pytest.mark.parametrize("name", ["default", "paper"])
def test_a_presets_updates_are_timed(benchmark_script, tmp_path, monkeypatch, name):
    script, out = benchmark_script("training_speed"), tmp_path / "speed.json"
    small = ["--batch", "4", "--width", "16", "--seconds", "0.01", "--device", "cpu"]
    monkeypatch.setattr("sys.argv", ["training_speed.py", "--presets", name, "--out", str(out), *small])
    script.main()
    speed, *memory = read_json(out)["benchmarks"]
    assert (speed["name"], speed["batch"]) == (f"{name}: updates", 4)
    assert speed["value"] > 0
    assert speed["parameters"] > 1000
    assert all(entry["unit"] == "GiB" for entry in memory)
