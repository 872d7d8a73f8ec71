"""Plans of every shipped planner, stored so that a change of the code that changes a plan is seen.

Renew them, after a change that is meant to change plans, with: python tests/planning/renew_golden_plans.py
It tells which of them changed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from compdiffuser import Plan, Planner
from compdiffuser.files import pretrained_folder
from compdiffuser.presets import PRESETS

GOLDEN = Path(__file__).parent / "golden" / "plans.npz"
PROBLEM, LEAST_CELLS, CANDIDATES = 1, 4, 8
"""The problem of each maze that is planned: of those with ends so many cells apart, the second that is drawn."""


def keys() -> list[str]:
    """NAME/BEGUN of every stored plan; a planner of each family also begins from noise alone."""
    shipped = [name for name in PRESETS if (pretrained_folder() / name).is_dir()]
    families = {PRESETS[name].domain.family: name for name in reversed(shipped)}
    return [f"{name}/default" for name in shipped] + [f"{name}/noise" for name in families.values()]


def ends(planner: Planner) -> tuple[np.ndarray, np.ndarray]:
    """A start and a goal in the centres of cells that are some way apart; a ball lies in a third, and has the goal."""
    layout = planner.preset.maze
    cells, rng, found = layout.free_cells, np.random.default_rng(3), []
    while len(found) <= PROBLEM:
        start, goal = (cells[number] for number in rng.integers(len(cells), size=2))
        if layout.distances(start)[goal] >= LEAST_CELLS:
            found.append((layout.center(start), layout.center(goal)))
    start, goal = found[PROBLEM]
    balls = [layout.center(cells[rng.integers(len(cells))]) for _ in planner.space.positions[1:]]
    return np.concatenate([start, *balls]), goal


def planned(planner: Planner, how: str) -> Plan:
    """The plan of the problem on a CPU; its number is its seed."""
    if how == "noise":
        planner = planner.with_config(scaffold=None)
    return planner.plan(*ends(planner), n_candidates=CANDIDATES, seed=PROBLEM)


def numbers(plan: Plan) -> np.ndarray:
    return np.array([plan.candidate, plan.n_chunks, plan.ok, plan.score], np.float32)


def main() -> None:
    torch.set_num_threads(1)
    with np.load(GOLDEN) as file:
        before = dict(file)
    stored, name, planner = {}, None, None
    for key in keys():
        dataset, how = key.split("/")
        if dataset != name:
            name, planner = dataset, Planner.from_pretrained(dataset, device="cpu")
        plan = planned(planner, how)
        stored[key], stored[f"{key}/numbers"] = plan.states.astype(np.float32), numbers(plan)
        old = before.get(key)
        same = old is not None and old.shape == plan.states.shape and np.allclose(old, plan.states, atol=1e-4)
        print("same   " if same else "CHANGED", key, *stored[f"{key}/numbers"], flush=True)
    np.savez_compressed(GOLDEN, **stored)


if __name__ == "__main__":
    main()
