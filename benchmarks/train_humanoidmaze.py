"""Everything that HumanoidMaze needs, on one GPU: data, planners, heading estimators, controllers and figures.

    python benchmarks/train_humanoidmaze.py                                    # all three sizes
    python benchmarks/train_humanoidmaze.py --sizes medium --stages record controller planner

The experts come first; the shipped ones will do. A stage that was finished is not done again: data is known by its
manifest, a training by its folder. Planners land in OUT/NAME, controllers in OUT/controllers/NAME with their estimator
in `heading`, figures in RESULTS/NAME-CELL.json, at the paper's step limit and within OGBench's. Cells are ceilings:
perfect plans (breadth-first search), and the simulator's heading instead of the estimate; `evaluate_humanoidmaze.py`
measures the planners.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro
from reproduce import compdiffuser, ship, training_of

from compdiffuser.data.regions import path
from compdiffuser.data.statistics import statistics
from compdiffuser.data.storage import load
from compdiffuser.domains.mazes import Maze
from compdiffuser.files import read_json, write_json
from compdiffuser.presets import Preset, preset
from compdiffuser.types import Array

if TYPE_CHECKING:
    from compdiffuser.evaluation.environments import EnvironmentPool
    from compdiffuser.planning.plan import Plan
    from compdiffuser.planning.planner import Planner

STAGES = ("record", "controller", "planner", "evaluate")
CELLS: dict[str, dict[str, bool]] = {
    "perfect": {"perfect": True},
    "perfect-true-heading": {"perfect": True, "told": True},
    "true-heading": {"told": True},
}
"""Ceilings: perfect plans, a body that is told its true heading, and both."""
ROUNDING, SPACING = 1.5, 0.1
"""Metres over which the corners of perfect plans are rounded on either side, and between their states."""


@dataclass(frozen=True)
class Benchmark:
    sizes: tuple[str, ...] = ("medium", "large", "giant")
    """Mazes."""
    stages: tuple[str, ...] = STAGES
    """What to do, of: record, controller, planner, evaluate."""
    episodes: int | None = None
    """Episodes to record; by default the dataset's."""
    planner_seconds: float = 150
    """Training time of each planner."""
    heading_seconds: float = 40
    """Training time of each heading estimator."""
    controller_seconds: float = 120
    """Training time of each controller."""
    controller_batch: int = 4096
    """Transitions per update."""
    cells: tuple[str, ...] = tuple(CELLS)
    """What to evaluate."""
    eval_episodes: int = 20
    """Episodes per task."""
    seeds: int = 1
    candidates: int = 256
    """Candidates of a plan."""
    look_ahead: float | None = None
    """Metres of the plan that the controller keeps before the body; by default the body's."""
    step_limit: int | None = None
    """Steps of an episode; by default the paper's."""
    workers: int | None = None
    """Processes that record and simulate; by default one for each core."""
    planner_options: str = ""
    """Passed on to `compdiffuser train`, such as "--width 32 --depth 2"."""
    device: str = "auto"
    runs: Path = Path("runs")
    out: Path = Path("pretrained")
    results: Path = Path("results")


def main() -> None:
    options = tyro.cli(Benchmark)
    for size in options.sizes:
        dataset = preset(f"humanoidmaze-{size}-stitch-v0")
        for stage in (stage for stage in STAGES if stage in options.stages):
            began = time.perf_counter()
            {"record": record, "controller": controller, "planner": planner, "evaluate": figures}[stage](
                options, dataset
            )
            print(f"{size} {stage}: {time.perf_counter() - began:.0f} s", flush=True)


def record(options: Benchmark, dataset: Preset) -> None:
    """The data; a file that was made the same way is left alone."""
    given = ["--episodes", str(options.episodes)] if options.episodes else []
    given += ["--workers", str(options.workers)] if options.workers else []
    compdiffuser("data", "make", dataset.name, *given)
    print(statistics(load(dataset.name), dataset), flush=True)


def controller(options: Benchmark, dataset: Preset) -> None:
    """The heading's estimator and the controller."""
    run, target = options.runs / f"{dataset.name}-controller", options.out / "controllers" / dataset.name
    if not (target / "config.json").exists():
        compdiffuser(
            "train-controller", dataset.name, "--out", str(run), "--device", options.device, "--json",
            "--steps", "1000000", "--time-limit", str(options.controller_seconds),
            "--batch", str(options.controller_batch), "--learning-rate", "5e-4",
            "--heading-steps", "1000000", "--heading-time-limit", str(options.heading_seconds),
        )  # fmt: skip
        ship(run / "heading", target / "heading")
        ship(run, target)


def planner(options: Benchmark, dataset: Preset) -> None:
    run, target = options.runs / f"{dataset.name}-compdiffuser", options.out / dataset.name
    if not (target / "config.json").exists():
        compdiffuser(
            "train", dataset.name, "--out", str(run), "--device", options.device, "--json",
            "--time-limit", str(options.planner_seconds), *options.planner_options.split(),
        )  # fmt: skip
        ship(run, target)
    path = options.results / "training_humanoidmaze.json"
    known = read_json(path)["planners"] if path.exists() else {}
    planners = known | {f"{dataset.name}/compdiffuser": training_of(target)}
    write_json(path, {"command": "python benchmarks/train_humanoidmaze.py --stages planner", "planners": planners})


def figures(options: Benchmark, dataset: Preset) -> None:
    """One file for each cell; all episodes of a seed side by side, in simulators that serve all cells alike."""
    import torch

    from compdiffuser.evaluation.environments import EnvironmentPool
    from compdiffuser.following.true_heading import telling

    torch.set_num_threads(os.cpu_count() or 1)  # simulators rest while the controller thinks
    wanted = {cell: asked for cell, asked in CELLS.items() if cell in options.cells}
    for told in (False, True):
        task = telling(dataset) if told else dataset
        cells = [cell for cell, asked in wanted.items() if asked.get("told", False) == told]
        if cells:
            with EnvironmentPool(task.domain, options.workers) as pool:
                for cell in cells:
                    figure(options, task, cell, pool)


def figure(options: Benchmark, task: Preset, cell: str, pool: EnvironmentPool) -> None:
    from compdiffuser.evaluation.results import provenance, summarize
    from compdiffuser.evaluation.rollout import evaluate
    from compdiffuser.following.follower import Following, PlanFollower
    from compdiffuser.following.inverse_dynamics import load_controller
    from compdiffuser.following.true_heading import told

    asked, began, runs = CELLS[cell], time.perf_counter(), []
    controller = load_controller(options.out / "controllers" / task.name)
    controller = told(controller) if "told" in asked else controller
    planner = Perfect(task.maze) if "perfect" in asked else trained(options, task)
    limits = task.evaluation
    limit, benchmark = options.step_limit or limits.step_limit, limits.benchmark_step_limit
    for seed in range(options.seeds):
        wave = {} if "perfect" in asked else {"n_candidates": options.candidates}
        following = Following(look_ahead=options.look_ahead, seed=1000 * seed, options=wave)
        policy = PlanFollower(planner, task, following, controller)
        runs.append(evaluate(policy, task, None, options.eval_episodes, seed, limit, pool=pool))
    about = {
        "dataset": task.name, "method": "compdiffuser", "cell": cell, "look_ahead": policy.look_ahead,
        "heading": "true" if controller.told else "estimated",
        "heading_errors": controller.estimator and controller.estimator.record["errors"],
        "planning_seconds": round(policy.planning_seconds, 2),
        "data": "official" if controller.record["data"].get("source") == "official" else "regenerated",
    }  # fmt: skip
    about |= provenance("python benchmarks/train_humanoidmaze.py")
    summary = summarize(runs, limit, benchmark if benchmark < limit else None, **about)
    write_json(options.results / f"{task.name}-{cell}.json", summary)
    within = {steps: part["success"] for steps, part in summary.get("within", {}).items()}
    print(
        f"{task.name} {cell}: {summary['success']}% within {limit}, {within}, steps {summary['steps_mean']}, "
        f"by task {list(summary['per_task'].values())}, failures {summary['failures']}, "
        f"replans {summary['replans_per_episode']}, {time.perf_counter() - began:.0f} s",
        flush=True,
    )


def trained(options: Benchmark, task: Preset) -> Planner:
    """The planner of a dataset."""
    from compdiffuser.planning.planner import Planner
    from compdiffuser.runs import choose_device

    return Planner.from_pretrained(str(options.out / task.name), device=str(choose_device(options.device)))


class Perfect:
    """Plans by breadth-first search through cell centres, with rounded corners."""

    def __init__(self, maze: Maze | None) -> None:
        assert maze is not None
        self.maze = maze

    def plan_batch(self, starts: Array, goals: Array, n_chunks: Any = "auto", **options: Any) -> list[Plan]:
        return [self.plan(start, goal) for start, goal in zip(starts, goals, strict=True)]

    def plan(self, start: Array, goal: Array) -> Plan:
        from compdiffuser.planning.judge import Verdict
        from compdiffuser.planning.plan import Plan

        maze = self.maze
        cells = path(maze, maze.cell(start), maze.cell(goal), frozenset(maze.free_cells))
        corners = [np.asarray(start, float), *(maze.center(cell) for cell in cells[1:]), np.asarray(goal, float)]
        lengths = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
        along = np.arange(0, lengths[-1], SPACING)
        line = np.stack([np.interp(along, lengths, axis) for axis in np.transpose(corners)], axis=1)
        reach = round(ROUNDING / SPACING)
        padded = np.pad(line, ((reach, reach), (0, 0)), "edge")
        kernel = np.ones(2 * reach + 1) / (2 * reach + 1)
        states = np.stack([np.convolve(axis, kernel, "valid") for axis in padded.T], axis=1)
        return Plan(states, states[None], states[0], states[-1], 1, verdict=Verdict({"steps": 0.5}), maze=maze)


if __name__ == "__main__":
    main()
