"""Worlds that are not ours, as a new user has them: recorded, trained for two minutes, planned and driven in.

    python benchmarks/own_worlds.py --train-seconds 120 --device cuda --hardware "one H200"
    python benchmarks/own_worlds.py --worlds warehouse --train-seconds 600 --device cpu --hardware "two CPU cores"

Each world of `examples/` is recorded (500 episodes) and trained with `compdiffuser --domain FILE`. Problems are random
pairs of recorded places, further apart than nine in ten episodes get; none is a task of the world. Each is planned once
with the map given to the planner and once without. Shares are in percent of all problems, those that touch a wall in
percent of the certified plans:

- `certified` by the planner.
- `touching a wall`: certified, although the plan touches a wall of the world's own map, start and goal included. That
  map is exact, and is asked whether or not the planner knew it.
- `driven`: certified, sound, and followed to the goal in the world's simulator.

The drone has 20 more problems, each from one floor to the other. What is recorded or trained already is not done again,
and rows are written as they are measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from figures import Figures
from reproduce import Clock, compdiffuser, options_of, training_of

from compdiffuser import Box, Outside, Plan, Planner, Polygon
from compdiffuser.cli.worlds import load_worlds
from compdiffuser.data import storage
from compdiffuser.data.proposal import ON_CPU
from compdiffuser.evaluation.rollout import evaluate
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.settings import Following
from compdiffuser.planning.steering.regions import Region
from compdiffuser.presets import Preset, preset
from compdiffuser.runs import choose_device
from compdiffuser.types import Array, Episodes

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FAR = 0.9
"""Share of the episodes that get less far than what is asked for."""

Pair = tuple[Array, Array]


@dataclass(frozen=True)
class Benchmark:
    worlds: tuple[Literal["warehouse", "drone", "arm"], ...] = ("warehouse", "drone", "arm")
    episodes: int = 500
    """Recorded of each world."""
    train_seconds: float = 120
    problems: int = 50
    flights: int = 20
    """Problems of the drone from one floor to the other."""
    candidates: int = 64
    seed: int = 0
    device: str = "auto"
    hardware: str = "this machine"
    workers: int = 0
    """Processes that simulate; with 0, this one does."""
    out: Path = Path("results/own_worlds.json")
    runs: Path = Path("runs/own-worlds")
    """Folder of recorded data and trained planners."""


@dataclass(frozen=True)
class Known:
    """What the file of a world knows of its walls."""

    touched: Callable[[Array], bool]
    """Whether a path [n, D] touches one; exactly, however thin it is."""
    regions: tuple[Region, ...]
    """The same walls as a planner is given them."""
    margin: float
    """Metres that plans keep from them."""


def main() -> None:
    options = tyro.cli(Benchmark)
    figures = Figures(options.out, "python benchmarks/own_worlds.py", options.hardware, "own-worlds", add=True)
    # A folder for each number of episodes: a trial does not take the place of the whole data.
    os.environ["COMPDIFFUSER_HOME"] = str((options.runs / f"{options.episodes}-episodes").resolve())
    for name in options.worlds:
        measure(name, options, figures)


def measure(name: str, options: Benchmark, figures: Figures) -> None:
    """All rows of a world."""
    load_worlds(EXAMPLES / f"{name}.py")
    world, known = preset(name), KNOWN[name](import_module(name)) if name in KNOWN else None
    run = prepared(name, options)
    planner = Planner.from_pretrained(run, device=options.device)
    episodes = storage.load(name)
    far = drawn(episodes, world, options.problems, options.seed)
    for told, mapped in with_and_without(planner, known):
        note(figures, f"{name}{told}", options, training_of(run), driven(mapped, world, known, far, options))
    if name == "drone":
        flights = drawn(episodes, world, options.flights, options.seed + 1, over_two_floors(import_module(name)))
        for told, mapped in with_and_without(planner, known):
            outcome = driven(mapped, world, known, flights, options)
            note(figures, f"{name} over two floors{told}", options, training_of(run), outcome)


def prepared(name: str, options: Benchmark) -> Path:
    """The folder of the world's planner, made as a user makes it."""
    world = ("--domain", str(EXAMPLES / f"{name}.py"))
    compdiffuser("data", "make", name, *options_of(episodes=options.episodes, workers=options.workers or 1), *world)
    device = choose_device(options.device).type
    # Few updates of a large network, or many of a small one: without a GPU, what `train FILE` proposes there.
    sizes = {} if device == "cuda" else {key: ON_CPU[key] for key in ("width", "depth", "batch")}
    run = options.runs / f"{name}-{options.episodes}-episodes-{options.train_seconds:g}-seconds-{device}"
    asked = options_of(time_limit=options.train_seconds, device=options.device, out=run, **sizes)
    clock = Clock()
    compdiffuser("train", name, *asked, *world)
    print(f"{run}: {clock.seconds:.0f} s", flush=True)
    return run


def drawn(
    episodes: Episodes, world: Preset, count: int, seed: int, wanted: Callable[[Array, Array], bool] | None = None
) -> list[Pair]:
    """Random pairs of recorded places [P], further apart than nine in ten episodes get, or as is `wanted`."""
    places = world.space.places(world.space.planned(episodes.observations))
    ends = episodes.starts + episodes.lengths - 1
    far = float(np.quantile(np.linalg.norm(places[ends] - places[episodes.starts], axis=1), FAR))
    rng = np.random.default_rng(seed)
    pairs: list[Pair] = []
    while len(pairs) < count:
        start, goal = places[rng.integers(len(places), size=2)].astype(float)
        if wanted(start, goal) if wanted else np.linalg.norm(goal - start) > far:
            pairs.append((start, goal))
    return pairs


def with_and_without(planner: Planner, known: Known | None) -> Iterator[tuple[str, Planner]]:
    if known is None:
        yield ", no walls", planner
        return
    yield ", map given", planner.with_map(*known.regions, margin=known.margin)
    yield ", no map", planner


@dataclass
class First:
    """A `BatchPlanner` that keeps the plans of its first call, with which all episodes set out."""

    planner: Planner
    plans: list[Plan] = field(default_factory=list)

    def plan_batch(self, starts: Any, goals: Any, n_chunks: Any = "auto", *, seed: Any = 0, **more: Any) -> list[Plan]:
        plans = self.planner.plan_batch(starts, goals, n_chunks, seed=seed, **more)
        self.plans = self.plans or plans
        return plans


def driven(
    planner: Planner, world: Preset, known: Known | None, pairs: Sequence[Pair], options: Benchmark
) -> list[dict[str, Any]]:
    """What became of each problem: whether its plan is certified and touches a wall, and whether it was driven."""
    first = First(planner)
    following = Following(options={"n_candidates": options.candidates}, seed=options.seed)
    policy = PlanFollower(first, world, following)
    episodes = evaluate(policy, world, None, 1, options.seed, workers=options.workers, placements=pairs)
    return [
        {
            "start": start.tolist(),
            "goal": goal.tolist(),
            "certified": plan.ok,
            "touching": None if known is None else known.touched(np.stack([start, *plan.states, goal])),
            "arrived": episode.success,
            "steps": episode.steps,
            "replans": sum(decision.planned for decision in episode.decisions) - 1,
            "cause": episode.cause,
            "verdict": str(plan.verdict),
            "metres": round(plan.length, 2),
        }
        for (start, goal), plan, episode in zip(pairs, first.plans, episodes, strict=True)
    ]


def note(
    figures: Figures, what: str, options: Benchmark, training: dict[str, Any], outcome: Sequence[dict[str, Any]]
) -> None:
    row = f"{what}, {options.train_seconds / 60:.3g} minutes"
    certified = [each for each in outcome if each["certified"]]
    touching = [each for each in certified if each["touching"]]
    arrived = [each for each in certified if each["arrived"] and not each["touching"]]
    shares = {
        "certified, %": (100 * len(certified) / len(outcome), {}),
        "touching a wall, %": (100 * len(touching) / max(len(certified), 1), wall_target(what)),
        "driven, %": (100 * len(arrived) / len(outcome), driven_target(what, options)),
    }
    figures.note(f"{row}: problems", len(outcome), "", row=row, column="problems", training=training, outcome=outcome)
    for column, (share, aim) in shares.items():
        if not (column.startswith("touching") and outcome[0]["touching"] is None):
            figures.note(f"{row}: {column}", share, "%", row=row, column=column, **aim)


def wall_target(what: str) -> dict[str, Any]:
    return {"target": 0 if "map given" in what else 2}


def driven_target(what: str, options: Benchmark) -> dict[str, Any]:
    """Of two minutes on a GPU, and of ten on a CPU; the flights over two floors all arrive."""
    on_gpu = choose_device(options.device).type == "cuda"
    if options.train_seconds != (120 if on_gpu else 600):
        return {}
    aim = 100 if "two floors" in what else 95 if on_gpu else 80
    return {"target": aim, "bound": "at least"}


def warehouse_walls(world: Any) -> Known:
    plan = world.MAP
    left, right, bottom, top = plan.bounds
    room = Outside(Box((left, bottom), (right, top)))
    regions = (room, *(Polygon(tuple(map(tuple, each.tolist()))) for each in plan.obstacles))
    return Known(lambda path: bool(plan.walled(path).any()), regions, plan.room)


def drone_walls(world: Any) -> Known:
    """Outside of the building, and the ceiling on both sides of its shaft, which lies in a corner."""
    (x, y, _), (bottom, top) = world.SIZE.tolist(), world.CEILING
    (left, front), _ = world.SHAFT.tolist()
    ceiling = (Box((0, 0, bottom), (left, y, top)), Box((left, 0, bottom), (x, front, top)))
    regions = (Outside(Box((0, 0, 0), tuple(world.SIZE.tolist()))), *ceiling)
    return Known(lambda path: not all(map(world.clear, path[:-1], path[1:])), regions, world.ROOM / 2)


KNOWN: dict[str, Callable[[Any], Known]] = {"warehouse": warehouse_walls, "drone": drone_walls}


def over_two_floors(world: Any) -> Callable[[Array, Array], bool]:
    low, high = world.CEILING
    return lambda start, goal: min(start[2], goal[2]) < low and max(start[2], goal[2]) > high


if __name__ == "__main__":
    main()
