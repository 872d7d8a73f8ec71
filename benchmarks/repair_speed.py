"""How long a repair takes, and how much sooner it is there than a new plan, with nothing else on the machine.

    python benchmarks/repair_speed.py --hardware "one H200"

The problems are those of `steering.py --kinds repair`: a cell closes ahead of an agent that has gone a quarter of its
plan. Each is repaired, then planned anew from the same state, and none is driven.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import steering
import tyro
from figures import Figures

from compdiffuser import Planner


@dataclass(frozen=True)
class Benchmark:
    datasets: tuple[str, ...] = steering.Benchmark.datasets
    problems: int = 40
    candidates: int = steering.Benchmark.candidates
    seed: int = 0
    device: str = "auto"
    hardware: str = "this machine"
    out: Path = Path("results/repair_speed.json")


def main() -> None:
    options = tyro.cli(Benchmark)
    about: dict[str, object] = {"problems": {}}
    figures = Figures(options.out, "python benchmarks/repair_speed.py", options.hardware, "repair", about=about)
    asked = steering.Benchmark(candidates=options.candidates, seed=options.seed)
    for name in options.datasets:
        planner = Planner.from_pretrained(name, device=options.device)
        layout = planner.preset.maze
        assert layout is not None
        steering.warm_up(planner, layout)
        drawn = [steering.draw(layout, "repair", options.seed, number) for number in range(options.problems)]
        made = [steering.mend(planner, problem, layout, asked)[0] for problem in drawn]
        about["problems"] = {**about["problems"], name: made}  # type: ignore[dict-item]
        tried = [each for each in made if each["certified"] is not None]
        seconds, anew = (np.array([each[key] for each in tried]) for key in ("seconds", "seconds_anew"))
        sound = float(np.mean([bool(each["certified"] and each["sound"]) for each in tried]))
        figures.note(f"{name}: one repair, median", float(np.median(seconds)), "s", target=0.05)
        figures.note(f"{name}: one repair, 95th percentile", float(np.percentile(seconds, 95)), "s")
        figures.note(f"{name}: a new plan in its place, median", float(np.median(anew)), "s")
        faster = float(np.median(anew / seconds))
        figures.note(f"{name}: times faster than a new plan, median", faster, "×", target=5, bound="at least")
        figures.note(f"{name}: share of repairs that are sound", sound, "", target=0.9, bound="at least")


if __name__ == "__main__":
    main()
