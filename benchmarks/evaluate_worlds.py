"""Every figure of a planner whose controller is learned: one `compdiffuser eval` per cell, several side by side.

    python benchmarks/evaluate_worlds.py [--only WORD …] [--jobs 4] [--dry]

Cells of ants, humanoids and soccer, for each shipped planner, such as those of 17 dimensions (NAME-17d): with and
without replanning; from pure noise, where planners begin elsewhere; GSC with the same network; ants that stay where
they fall; the humanoid with the simulator's heading; ants with inverse dynamics of one horizon, which
`train_antmaze.py --horizons 8 12 …` trains; whole states followed by a controller that is told all of them, which
`compdiffuser train-controller DATASET --dims 15 --frame heading --batch 4096 --learning-rate 5e-4
--out runs/DATASET-15d-told` trains. Both step limits come from the same episodes. Plans are kept in runs/plans, so that
cells that only follow them differently do not make them again. `train_worlds.py` measures the ceilings.
"""

from __future__ import annotations

import re

from evaluate_pointmaze import main

from compdiffuser.files import pretrained_folder
from compdiffuser.presets import PRESETS

HORIZONS = (8, 12, 16, 20, 24, 28)
OTHER_DIMS = re.compile(r"-\d+d$")


def cells_of(planner: str) -> dict[str, list[str]]:
    """The cells of one planner, by what their names end with."""
    dataset = PRESETS[OTHER_DIMS.sub("", planner)]
    family = dataset.domain.family
    cells = {"replan": [planner], "no-replan": [planner, "--no-replan"]}
    down = ("--no-rise",) if family == "ant" else ()  # what is compared differs in nothing else
    if family in ("ant", "soccer"):
        cells["gsc"] = [planner, "--sampler", "gsc", "--no-replan", *down]
        cells["no-rise"] = [planner, "--no-rise", "--no-replan"]
        cells["no-rise-replan"] = [planner, "--no-rise"]
    if dataset.chunks.scaffold is not None:
        cells["noise"] = [planner, "--scaffold", "none", "--no-replan", *down]
    if family == "humanoid":
        cells["true-heading"] = [planner, "--heading", "true"]
    if OTHER_DIMS.search(planner) and family == "ant":
        for way in ("progress", "phase"):
            told = ("--follow", way, "--controller", f"runs/{planner}-told")
            cells[f"told-{way}"] = [planner, "--no-replan", *told, *down]
    if planner in ("antmaze-large-stitch-v0", "antmaze-giant-stitch-v0"):
        for horizon in HORIZONS:
            cells[f"horizon-{horizon}"] = [planner, "--controller", f"runs/{planner}-controller-{horizon}", *down]
    return cells


def shipped() -> list[str]:
    """Planners of worlds without a controller of their own, those of other dimensions among them."""
    found = [folder.name for folder in sorted(pretrained_folder().iterdir())]
    known = [name for name in found if OTHER_DIMS.sub("", name) in PRESETS]
    return [name for name in known if PRESETS[OTHER_DIMS.sub("", name)].domain.controller is None]


CELLS = {
    f"{planner}-{ending}": [*evaluation, "--plans", "runs/plans"]
    for planner in shipped()
    for ending, evaluation in cells_of(planner).items()
}

if __name__ == "__main__":
    main(CELLS)
