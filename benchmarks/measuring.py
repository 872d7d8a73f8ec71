"""The ceilings of a world as cells: what acts, in which world, for how long, and what its figure was made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from ceilings import Perfect, Recorded, SoccerExperts, WalkingExpert, held_out, walked
from reproduce import Clock

from compdiffuser.artifact import CONFIG
from compdiffuser.data import storage
from compdiffuser.evaluation.causes import causes_in
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.results import provenance, summarize
from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
from compdiffuser.files import read_json, sha256, write_json
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.inverse_dynamics import InverseController, load_controller
from compdiffuser.following.settings import Following
from compdiffuser.following.true_heading import heading_of, telling, told
from compdiffuser.presets import Preset
from compdiffuser.types import Array, Policy

if TYPE_CHECKING:
    from train_worlds import Benchmark

TASKS = 5
"""As many recorded episodes are followed as a benchmark with so many tasks has."""


@dataclass(frozen=True)
class Try:
    """What one seed evaluates: a policy on the world's own tasks, or on placements, each once."""

    policy: Policy
    placements: Sequence[tuple[Array, Array]] | None = None


@dataclass(frozen=True)
class Cell:
    """One figure."""

    name: str
    dataset: Preset
    limit: int
    begin: Callable[[int], Try]
    """What a seed evaluates."""
    about: dict[str, Any] = field(default_factory=dict)
    """What its result says of it."""


def cells_of(options: Benchmark, dataset: Preset) -> list[Cell]:
    """The cells that were asked for and that this world has."""
    with_ball = len(dataset.space.positions) > 1
    body = dataset.domain.body
    faces = body.heading(np.zeros((1, body.width or 2))) is not None
    makers: dict[str, Callable[[], Iterator[Cell]]] = {}
    if with_ball or (faces and body.experts):
        makers["experts"] = lambda: experts(options, dataset, SoccerExperts if with_ball else WalkingExpert)
    if with_ball:
        makers["recorded"] = lambda: recorded(options, dataset)
    else:
        makers["perfect"] = lambda: perfect(options, dataset)
    if not with_ball and not faces:
        makers["perfect-true-heading"] = lambda: perfect(options, dataset, truly=True)
    return [cell for name, make in makers.items() if name in options.cells for cell in make()]


def perfect(options: Benchmark, dataset: Preset, truly: bool = False) -> Iterator[Cell]:
    """The controller on perfect plans, with its own heading or the simulator's."""
    controller, about = learned(options, dataset)
    if truly:
        dataset, controller = telling(dataset), told(controller)

    def begin(seed: int) -> Try:
        following = Following(look_ahead=options.look_ahead, seed=1000 * seed)
        return Try(PlanFollower(Perfect(dataset), dataset, following, controller))

    about |= {
        "heading": heading_of(controller),
        "heading_errors": controller.estimator and controller.estimator.record["errors"],
    }
    name = "perfect-true-heading" if truly else "perfect"
    yield Cell(name, dataset, options.step_limit or dataset.evaluation.step_limit, begin, about)


def recorded(options: Benchmark, dataset: Preset) -> Iterator[Cell]:
    """The controller on plans that are held-out episodes: dribbled ones, then walked ones."""
    controller, about = learned(options, dataset)
    episodes = storage.load(dataset.name, "val")
    limit = options.step_limit or 2 * int(episodes.lengths.max())
    for kind, task in (("dribble", dataset), ("navigate", walked(dataset))):

        def begin(seed: int, kind: str = kind, task: Preset = task) -> Try:
            chosen = held_out(episodes, dataset, kind == "dribble", TASKS * options.eval_episodes, seed)
            planner = Recorded(task, chosen)
            following = Following(replan=False, look_ahead=options.look_ahead)
            return Try(PlanFollower(planner, task, following, controller), planner.placements)

        yield Cell(f"recorded-{kind}", task, limit, begin, about)


def experts(options: Benchmark, dataset: Preset, kind: Callable[[Preset], Policy]) -> Iterator[Cell]:
    """The experts themselves."""
    about = {"method": "experts", "data": "regenerated", "made_of": {}}
    limit = options.step_limit or dataset.evaluation.step_limit
    yield Cell("experts", dataset, limit, lambda seed: Try(kind(dataset)), about)


def learned(options: Benchmark, dataset: Preset) -> tuple[InverseController, dict[str, Any]]:
    """The dataset's controller, and what a result says of it."""
    folder = options.out / "controllers" / dataset.name
    controller = load_controller(folder)
    official = controller.record["data"].get("source") == "official"
    about = {
        "method": "compdiffuser",
        "look_ahead": options.look_ahead or controller.look_ahead,
        "data": "official" if official else "regenerated",
        "made_of": {"controller": fingerprint(folder)},
    }
    return controller, about


def fingerprint(folder: Path) -> str:
    """Differs where an artifact does: its config names the hashes of all its parts."""
    return sha256(folder / CONFIG)[:12]


def measure(cell: Cell, options: Benchmark) -> None:
    """Run a cell's seeds and write its result; one that was made of the same is left as it is."""
    path = options.results / f"{cell.dataset.name}-{cell.name}.json"
    asked = {
        "seeds": options.seeds, "episodes": options.eval_episodes, "limit": cell.limit,
        "look_ahead": options.look_ahead,
    }  # fmt: skip
    about = {"dataset": cell.dataset.name, "cell": cell.name, **cell.about, "asked": asked}
    if path.exists():
        before = read_json(path)
        if all(before.get(name) == about[name] for name in ("asked", "made_of")):
            print(f"{cell.dataset.name} {cell.name}: measured before, {before['success']}%", flush=True)
            return
    clock = Clock()
    with EnvironmentPool(cell.dataset.domain, options.workers) as pool:
        runs = [run(cell, options, seed, pool) for seed in range(options.seeds)]
    about |= {"evaluation": {"seconds": round(clock.seconds, 1), "side_by_side": 1}}
    about |= provenance("python benchmarks/train_worlds.py")
    shorter = cell.dataset.evaluation.benchmark_step_limit
    causes = causes_in(cell.dataset.space)
    summary = summarize(runs, cell.limit, shorter if shorter < cell.limit else None, causes=causes, **about)
    write_json(path, summary)
    within = {steps: part["success"] for steps, part in summary.get("within", {}).items()}
    print(
        f"{cell.dataset.name} {cell.name}: {summary['success']}% within {cell.limit}, {within}, "
        f"steps {summary['steps_mean']}, by task {list(summary['per_task'].values())}, "
        f"failures {summary['failures']}, replans {summary['replans_per_episode']}, {clock.seconds:.0f} s",
        flush=True,
    )


def run(cell: Cell, options: Benchmark, seed: int, pool: EnvironmentPool) -> list[EpisodeResult]:
    """A seed's episodes; placements count as the episodes of one task."""
    tried = cell.begin(seed)
    if tried.placements is None:
        return evaluate(tried.policy, cell.dataset, None, options.eval_episodes, seed, cell.limit, pool=pool)
    ended = evaluate(tried.policy, cell.dataset, None, 1, seed, cell.limit, pool=pool, placements=tried.placements)
    return [replace(episode, task=1, episode=number) for number, episode in enumerate(ended)]
