"""Every HumanoidMaze figure of a planner: one `compdiffuser eval` per cell, several side by side.

    python benchmarks/evaluate_humanoidmaze.py [--only WORD …] [--jobs 4] [--dry]

Cells: with and without replanning, and from pure noise, one plan each. The heading is estimated. Both step limits come
from the same episodes. `train_humanoidmaze.py` measures the ceilings: perfect plans, and the true heading.
"""

from __future__ import annotations

from evaluate_pointmaze import main

from compdiffuser.files import pretrained_folder
from compdiffuser.presets import PRESETS

CELLS: dict[str, list[str]] = {}
SHIPPED = [name for name in PRESETS if (pretrained_folder() / name).is_dir()]
for name in (name for name in SHIPPED if PRESETS[name].domain.family == "humanoid"):
    CELLS[f"{name}-replan"] = [name]
    CELLS[f"{name}-no-replan"] = [name, "--no-replan"]
    CELLS[f"{name}-noise"] = [name, "--scaffold", "none", "--no-replan"]

CELLS = {cell: [*evaluation, "--plans", "runs/plans"] for cell, evaluation in CELLS.items()}

if __name__ == "__main__":
    main(CELLS)
