"""How long a planner takes to be saved and loaded, beside another state of this project.

    git worktree add ../before COMMIT
    python benchmarks/artifact_speed.py --before ../before --hardware "two CPU cores"

Both states save and load their own copy of one shipped planner, in processes that take turns; the fastest of all times
counts, since whatever else a machine does only adds to it. Writes results/artifact_speed.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro
from figures import Figures

MOST = 20
"""Milliseconds that checks and hashes may take."""
CHILD = """
import json, sys, tempfile, time
from compdiffuser.planning.checkpoint import load
taken = {"save": [], "load": []}
planner = load(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    for _ in range(int(sys.argv[2])):
        begun = time.perf_counter()
        planner.save(folder)
        saved = time.perf_counter()
        load(folder)
        taken["save"].append(saved - begun)
        taken["load"].append(time.perf_counter() - saved)
print(json.dumps(taken))
"""


@dataclass(frozen=True)
class Benchmark:
    before: Path
    """Another checkout of this project."""
    model: str = "pointmaze-giant-stitch-v0"
    turns: int = 5
    """Processes of each state."""
    times: int = 5
    """Times that each of them saves and loads."""
    results: Path = Path("results")
    hardware: str = "this machine"


def milliseconds(root: Path, options: Benchmark) -> dict[str, list[float]]:
    """What saving and loading take with the code of a checkout."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, options.model, str(options.times)], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(root.resolve() / "src")},
    )  # fmt: skip
    return {name: [1000 * each for each in taken] for name, taken in json.loads(done.stdout).items()}


def main(options: Benchmark) -> None:
    commit = ["git", "-C", str(options.before), "rev-parse", "--short", "HEAD"]
    name = subprocess.run(commit, check=True, capture_output=True, text=True).stdout.strip()
    states = {f"commit {name}": options.before, "now": Path(__file__).parents[1]}
    taken: dict[str, dict[str, list[float]]] = {state: {"save": [], "load": []} for state in states}
    for _ in range(options.turns):
        for state, root in states.items():
            for what, found in milliseconds(root, options).items():
                taken[state][what] += found
    told = "python benchmarks/artifact_speed.py --before ../before"
    about = {"model": options.model, "milliseconds": taken}
    note = Figures(options.results / "artifact_speed.json", told, options.hardware, "artifacts", about=about).note
    for what, words in (("save", "saving"), ("load", "loading")):
        before, now = (min(taken[state][what]) for state in states)
        note(f"{words} a planner, commit {name}", before, "ms")
        note(f"{words} a planner, now", now, "ms", target=round(before + MOST))


if __name__ == "__main__":
    main(tyro.cli(Benchmark))
