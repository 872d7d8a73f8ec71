"""Every AntMaze figure: one `compdiffuser eval` per cell, several side by side.

    python benchmarks/evaluate_antmaze.py [--only WORD …] [--jobs 4] [--dry]

Cells: with and without replanning; GSC with the same network, and the same planners from pure noise, one plan each;
inverse dynamics of one horizon, which `train_antmaze.py --horizons 8 12 …` trains. Both step limits come from the same
episodes. Plans are kept in runs/plans, so that cells that only follow them differently do not make them again.
"""

from __future__ import annotations

from evaluate_pointmaze import main

from compdiffuser.presets import PRESETS

HORIZONS = (8, 12, 16, 20, 24, 28)
CELLS: dict[str, list[str]] = {}
for name in (name for name, record in PRESETS.items() if record.domain.family == "ant"):
    CELLS[f"{name}-replan"] = [name]
    CELLS[f"{name}-no-replan"] = [name, "--no-replan"]
    CELLS[f"{name}-gsc"] = [name, "--sampler", "gsc", "--no-replan"]
    CELLS[f"{name}-noise"] = [name, "--scaffold", "none", "--no-replan"]
for name in ("antmaze-large-stitch-v0", "antmaze-giant-stitch-v0"):
    for horizon in HORIZONS:
        CELLS[f"{name}-horizon-{horizon}"] = [name, "--controller", f"runs/{name}-controller-{horizon}"]

CELLS = {cell: [*evaluation, "--plans", "runs/plans"] for cell, evaluation in CELLS.items()}

if __name__ == "__main__":
    main(CELLS)
