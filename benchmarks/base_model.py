"""How good is the model itself? The share of sound candidates of planners that were trained in different ways.

    python benchmarks/base_model.py                               # every variant, pointmaze-giant: about 20 minutes
    python benchmarks/base_model.py --only base log-ratios --dataset antmaze-large-explore-v0
    python benchmarks/base_model.py --only shipped second-order --device cpu

Each variant gets as many updates, or is the shipped planner, and makes candidates for random pairs of places that no
other script plans for: from pure noise, without refinement and without scaffolds. A candidate is sound where it passes
through no wall and does not jump. Counted with our sampler over the automatic choice of K, and with the paper's at its
K. Each variant writes results/ablations/default-DATASET-base-VARIANT.json; one that lies there already is passed over.
Meant for one GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from reproduce import Clock, compdiffuser, training_of

from compdiffuser import Planner
from compdiffuser.artifact import CONFIG
from compdiffuser.data import storage
from compdiffuser.evaluation.results import provenance
from compdiffuser.files import pretrained_folder, write_json
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.planning.training import train_planner
from compdiffuser.presets import Preset, preset
from compdiffuser.reporting.ablations import GIANT
from compdiffuser.runs import choose_device
from compdiffuser.types import Array

PAIRS = 20_261_118
"""Seed of the random pairs."""
APART = 10
"""Cells between a start and its goal, at least."""


@dataclass(frozen=True)
class Variant:
    """What differs from the default."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    """Of the recipe."""
    longer: float = 1.0
    """Times the updates of training."""
    sampler: Mapping[str, Any] = field(default_factory=dict)
    """Of both samplers."""
    shipped: bool = False
    """Nothing is trained: the weights are those that ship."""


VARIANTS: dict[str, Variant] = {
    "base": Variant(),
    "log-ratios": Variant({"ahead_by": "log-uniform", "ahead_ratio": 0.1}),
    "more-nothing": Variant({"nothing": 0.1}),
    "log-ratios-more-nothing": Variant({"ahead_by": "log-uniform", "ahead_ratio": 0.1, "nothing": 0.1}),
    "longer": Variant(longer=3.0),
    "10m": Variant({"width": 320, "depth": 8}),
    "20m": Variant({"width": 448, "depth": 9}),
    "shipped": Variant(shipped=True),
    "second-order": Variant(sampler={"rule": "heun"}, shipped=True),
}


@dataclass(frozen=True)
class Benchmark:
    dataset: str = GIANT
    only: tuple[str, ...] = tuple(VARIANTS)
    """Variants to train and to count."""
    updates: int = 10_000
    """Training of each: about 65 seconds on one H200."""
    batch: int | None = None
    """Chunks per update, where they should differ from the recipe's."""
    seed: int = 0
    """Of the training; another than 0 is told in the file's name."""
    problems: int = 40
    candidates: int = 48
    """Of each problem."""
    compile: bool = True
    device: str = "auto"
    runs: Path = Path("runs")
    results: Path = Path("results/ablations")


def main() -> None:
    options = tyro.cli(Benchmark)
    if not storage.file_of(options.dataset).exists():
        compdiffuser("data", "make", options.dataset)
    for name in options.only:
        measure(name, options)


def measure(name: str, options: Benchmark) -> None:
    """Train a variant and count its sound candidates, unless its file lies there."""
    cell = f"{options.dataset}-base-{name}" + (f"-seed-{options.seed}" if options.seed else "")
    path = options.results / f"default-{cell}.json"
    if path.exists():
        print(f"{cell}: measured before", flush=True)
        return
    variant = VARIANTS[name]
    run = pretrained_folder() / options.dataset if variant.shipped else trained(name, options)
    planner = Planner.from_pretrained(run, options.device)
    starts, goals = pairs(planner.preset, options.problems)
    counted = {
        "ours": sound(planner, PlanConfig(), variant, starts, goals, options.candidates, None),
        "paper": sound(
            planner, PlanConfig.paper(), variant, starts, goals, options.candidates, planner.preset.chunks.count
        ),
    }  # fmt: skip
    about = {"weights": "default", "cell": cell, "dataset": options.dataset, "variant": name, "seed": options.seed}
    asked = {"problems": options.problems, "candidates": options.candidates, **asdict(variant)}
    training = training_of(run)
    write_json(path, {**about, **asked, "sound": counted, "training": training, **provenance(_COMMAND)})
    told = ", ".join(
        f"{way} {found['sound']:.1%} sound, {found['solved']:.0%} solved" for way, found in counted.items()
    )
    print(f"{cell}: {told}; {training['steps']:,} updates", flush=True)


_COMMAND = "python benchmarks/base_model.py"


def trained(name: str, options: Benchmark) -> Path:
    """The run of a variant, trained where it is not there yet."""
    variant, dataset = VARIANTS[name], preset(options.dataset)
    run = options.runs / f"base-{options.dataset}-{name}-{options.seed}"
    if (run / CONFIG).exists():
        return run
    limits = {"steps": round(options.updates * variant.longer), "seed": options.seed}
    batch = {} if options.batch is None else {"batch": options.batch}
    recipe = recipe_for("default", dataset).changed({**variant.changes, **limits, **batch})
    train_planner(
        storage.load(options.dataset), dataset, run, model=recipe.model, config=recipe.training,
        objective=recipe.objective, device=choose_device(options.device), progress=False,
        manifest=storage.origin_of(options.dataset)[1], compiled=None if options.compile else False,
    )  # fmt: skip
    return run


def sound(
    planner: Planner, config: PlanConfig, variant: Variant, starts: Array, goals: Array, candidates: int,
    chunks: int | None,
) -> dict[str, float]:  # fmt: skip
    """Shares of candidates that are sound and that are certified, of problems with a sound one, and seconds."""
    config = replace(
        config, sampler=replace(config.sampler, **variant.sampler), score="overlap", refine=None, scaffold=None,
        wave=candidates,
    )  # fmt: skip
    ready = planner.configured(config)
    clock = Clock(planner.device)
    searches = ready.searches(starts, goals, "auto" if chunks is None else chunks, candidates, 0)
    while not all(search.done for search in searches):
        ready.advance(searches)
    seconds = clock.seconds
    good = [
        [replace(ready.result(search), states=ready.states(made)).fault() is None for made in search.candidates]
        for search in searches
    ]
    certified = [made.certified for search in searches for made in search.candidates]
    return {
        "sound": float(np.mean([share for row in good for share in row])),
        "certified": float(np.mean(certified)),
        "solved": float(np.mean([any(row) for row in good])),
        "seconds": round(seconds, 2),
    }


def pairs(dataset: Preset, count: int) -> tuple[Array, Array]:
    """Random starts and goals [P, 2] in free cells, at least ten steps apart or as far as the maze allows."""
    layout = dataset.maze
    assert layout is not None
    rng = np.random.default_rng(PAIRS)
    cells = layout.free_cells
    farthest = max(int(layout.distances(goal).max()) for goal in cells)
    found: list[tuple[Array, Array]] = []
    while len(found) < count:
        start, goal = (cells[rng.integers(len(cells))] for _ in range(2))
        if layout.distances(goal)[start] >= min(APART, farthest // 2):
            noise = rng.uniform(-0.25, 0.25, (2, 2)) * layout.unit
            found.append((layout.center(start) + noise[0], layout.center(goal) + noise[1]))
    return np.array([a for a, _ in found], np.float32), np.array([b for _, b in found], np.float32)


if __name__ == "__main__":
    main()
