"""A few hundred requests that nobody should send; `benchmarks/fuzz_http.py` sends as many as one likes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_nothing_that_is_sent_makes_the_server_fail(tmp_path):
    script = Path(__file__).parents[2] / "benchmarks" / "fuzz_http.py"
    out = tmp_path / "fuzz.json"
    done = subprocess.run(
        [sys.executable, str(script), "--requests", "200", "--seed", "1", "--out", str(out)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = {entry["name"]: entry["value"] for entry in json.loads(out.read_text())["benchmarks"]}
    for name in ("answers of 500 and more", "tracebacks in the log", "failures of any kind"):
        assert found[name] == 0, done.stdout
    assert found["server is well afterwards"] == 1
