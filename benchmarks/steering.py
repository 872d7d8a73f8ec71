"""How well steered plans keep to what steers them, on random problems of the giant mazes; none is a benchmark's task.

    python benchmarks/steering.py --problems 200 --device cuda

- `avoid`: one to three cells of the shortest way are closed, and the goal can still be reached.
- `via`: two waypoints in random cells.
- `repair`: a plan is under way when a cell ahead of it is closed.

Methods: `steered`; `rejection`, the same candidates and the same judge, but nothing steers the candidates; `none`,
plans that were told nothing. Steered plans are driven in the simulator, where closed cells are real walls. Each cell
(dataset, kind, method) is a file in `results/`, written as it grows: a run that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from reproduce import Clock
from walled import Walled, walled, with_walls

from compdiffuser import Box, Plan, Planner, Steering, UserError, Waypoint
from compdiffuser.domains.mazes import NEIGHBOURS, Cell, Maze
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.results import provenance
from compdiffuser.files import read_json, write_json
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.settings import Following
from compdiffuser.planning.in_use.repair import rest
from compdiffuser.presets import Preset
from compdiffuser.types import Array

Kind = Literal["avoid", "via", "repair"]
Method = Literal["steered", "rejection", "none"]
LEAST_CELLS = 8  # between start and goal
PASSED = 1.0  # metres within which a driven waypoint is passed
ON_THE_WAY = 0.25  # share of a plan that lies behind the agent when a door closes
STILL, MOVED = 1_000, 0.5  # steps after which an episode ends whose agent moved less than that many metres meanwhile


@dataclass(frozen=True)
class Benchmark:
    datasets: tuple[str, ...] = ("pointmaze-giant-stitch-v0", "antmaze-giant-stitch-v0")
    kinds: tuple[Kind, ...] = ("avoid", "via", "repair")
    methods: tuple[Method, ...] = ("steered", "rejection", "none")
    problems: int = 200
    candidates: int = 64
    margin: float = 0.5
    """Metres that plans keep away from closed cells."""
    drive: bool = True
    block: int = 20
    """Problems that are planned, driven and written together."""
    seed: int = 0
    device: str = "auto"
    hardware: str = "this machine"
    workers: int | None = None
    """Processes that simulate; as many as there are cores where None."""
    out: Path = Path("results")


@dataclass(frozen=True)
class Problem:
    number: int
    start: tuple[float, ...]
    goal: tuple[float, ...]
    closed: tuple[Cell, ...] = ()
    via: tuple[tuple[float, ...], ...] = ()


def main() -> None:
    options = tyro.cli(Benchmark)
    for name in options.datasets:
        planner = Planner.from_pretrained(name, device=options.device)
        for kind in options.kinds:
            for method in options.methods if kind != "repair" else ("steered",):
                measure(options, planner, kind, method)


def measure(options: Benchmark, planner: Planner, kind: Kind, method: Method) -> None:
    """One cell, from where an earlier run left it."""
    name = planner.preset.name
    path = options.out / f"steering-{name}-{kind}-{method}.json"
    asked = {key: getattr(options, key) for key in ("candidates", "margin", "seed", "hardware", "drive")}
    about = {"dataset": name, "kind": kind, "method": method, "settings": asked, "device": planner.device.type}
    before = read_json(path) if path.exists() else {}
    done = before["problems"] if all(before.get(key) == about[key] for key in ("settings", "device")) else []
    layout = planner.preset.maze
    assert layout is not None
    drawn = [draw(layout, kind, options.seed, number) for number in range(options.problems)]
    if len(done) < len(drawn) and not done:
        warm_up(planner, layout)
    while len(done) < len(drawn):
        block = drawn[len(done) : len(done) + options.block]
        made = [attempt(planner, problem, kind, method, options) for problem in block]
        records = [record for record, _ in made]
        if options.drive and method == "steered":
            driven = drive(planner, block, [plan for _, plan in made], options)
            records = [{**record, "driven": arrived} for record, arrived in zip(records, driven, strict=True)]
        done = [*done, *records]
        told = {**about, "complete": len(done) >= len(drawn), **summary(done), "problems": done}
        write_json(path, {**told, **provenance("python benchmarks/steering.py")})
    print(name, kind, method, summary(done), flush=True)


def draw(layout: Maze, kind: Kind, seed: int, number: int) -> Problem:
    """A problem of its own for each seed and number."""
    rng = np.random.default_rng([seed, ("avoid", "via", "repair").index(kind), number])
    cells = layout.free_cells

    def place(cell: Cell) -> tuple[float, ...]:
        return tuple(float(x) for x in layout.center(cell) + rng.uniform(-1, 1, 2) * layout.unit / 4)

    while True:
        start, goal, *stops = (cells[index] for index in rng.choice(len(cells), 4, replace=False))
        if layout.distances(goal)[start] < LEAST_CELLS:
            continue
        if kind != "avoid":
            via = tuple(place(stop) for stop in stops) if kind == "via" else ()
            return Problem(number, place(start), place(goal), via=via)
        if (closed := doors(layout, start, goal, int(rng.integers(1, 4)), rng)) is not None:
            return Problem(number, place(start), place(goal), closed)


def doors(layout: Maze, start: Cell, goal: Cell, count: int, rng: np.random.Generator) -> tuple[Cell, ...] | None:
    """Cells of the shortest way, each closed in turn, such that the goal can still be reached."""
    closed: tuple[Cell, ...] = ()
    for _ in range(count):
        inner = shortest(with_walls(layout, closed), start, goal)[2:-2]
        able = [cell for cell in inner if with_walls(layout, (*closed, cell)).distances(goal)[start] >= 0]
        if not able:
            break
        closed = (*closed, able[rng.integers(len(able))])
    return closed or None


def shortest(layout: Maze, start: Cell, goal: Cell) -> list[Cell]:
    """The cells of a shortest way."""
    steps, way = layout.distances(goal), [start]
    while way[-1] != goal:
        i, j = way[-1]
        way.append(next((i + a, j + b) for a, b in NEIGHBOURS if steps[i + a, j + b] == steps[i, j] - 1))
    return way


def boxes(layout: Maze, closed: Sequence[Cell]) -> list[Box]:
    half = layout.unit / 2
    return [Box(tuple(layout.center(cell) - half), tuple(layout.center(cell) + half)) for cell in closed]


def attempt(
    planner: Planner, problem: Problem, kind: Kind, method: Method, options: Benchmark
) -> tuple[dict[str, Any], Plan | None]:
    """Plan, or repair a plan; what came of it, and the plan."""
    layout = planner.preset.maze
    assert layout is not None
    if kind == "repair":
        return mend(planner, problem, layout, options)
    steering = Steering.of(problem.via, boxes(layout, problem.closed), margin=options.margin)
    if method == "rejection":
        steering = replace(steering, guidance=0.0, routed=False)
    clock = Clock(planner.device)
    plan = planner.plan_batch(
        [problem.start], [problem.goal], n_candidates=options.candidates, seed=problem.number,
        steering=None if method == "none" else steering,
    )[0]  # fmt: skip
    seconds = clock.seconds
    told = {"certified": plan.ok, "sound": sound(planner, plan, problem), "verdict": str(plan.verdict)}
    counts = {"seconds": round(seconds, 3), "candidates": len(plan.scores), "length": round(plan.length, 1)}
    return {**asdict(problem), **told, **counts}, plan


def mend(planner: Planner, problem: Problem, layout: Maze, options: Benchmark) -> tuple[dict[str, Any], Plan | None]:
    """A door closes ahead of an agent on its way: repair its plan, and plan anew."""
    rng = np.random.default_rng([options.seed, 3, problem.number])
    before = planner.plan_batch(
        [problem.start], [problem.goal], n_candidates=options.candidates, seed=problem.number,
        steering=Steering(via=(), valid=_anywhere),
    )[0]  # fmt: skip
    now = int(ON_THE_WAY * len(before.states))
    here = before.states[now]
    goal = layout.cell(problem.goal)
    ahead = list(dict.fromkeys(map(tuple, layout.cells(planner.space.agent(before.states[now:])).tolist())))[2:-1]
    able = [
        cell
        for cell in ahead
        if cell != goal and not layout.walls[cell]
        if with_walls(layout, (cell,)).distances(goal)[layout.cell(planner.space.agent(here))] >= 0
    ]
    if not before.ok or not able:
        return {**asdict(problem), "certified": None, "sound": None, "seconds": None}, None
    closed = (able[rng.integers(len(able))],)
    regions = boxes(layout, closed)
    clock = Clock(planner.device)
    plan = planner.repair(before, at=here, avoid=regions, margin=options.margin, n_candidates=options.candidates)
    seconds = clock.seconds
    clock = Clock(planner.device)
    anew = planner.plan(here, problem.goal, avoid=regions, margin=options.margin, n_candidates=options.candidates)
    from_new = clock.seconds
    asked = replace(problem, start=tuple(map(float, plan.states[0])), closed=closed)
    told = {"certified": plan.ok, "sound": sound(planner, plan, asked), "verdict": str(plan.verdict)}
    counts = {"seconds": round(seconds, 4), "seconds_anew": round(from_new, 4), "anew_certified": anew.ok}
    return {**asdict(asked), "here": here.tolist(), **told, **counts}, plan


def _anywhere(states: Array) -> Array:
    """Everything is valid: such a plan begins from the same scaffolds as a steered one."""
    return np.ones(len(states), bool)


def sound(planner: Planner, plan: Plan, problem: Problem) -> bool:
    """Whether a plan passes through no wall, closed cells included, and all waypoints in order; by the maze alone."""
    layout = with_walls(planner.preset.maze, problem.closed)  # type: ignore[arg-type]
    if replace(plan, maze=layout).fault() is not None:
        return False
    near = planner.ground.gap(planner.space.positions[0])
    return passes(planner.space.agent(plan.states), problem.via, near)


def passes(path: Array, stops: Sequence[Sequence[float]], near: float) -> bool:
    since = 0
    for stop in stops:
        close = np.flatnonzero(np.linalg.norm(path[since:] - np.array(stop), axis=1) <= near)
        if not len(close):
            return False
        since += int(close[0])
    return True


class Steersman:
    """A `BatchPlanner` that has a plan for each episode of a `follower`, and mends it where its agent is lost."""

    def __init__(self, planner: Planner, plans: Sequence[Plan]) -> None:
        self.planner = planner
        self.plans = list(plans)
        self.goals = np.stack([plan.goal for plan in plans])
        self.begun: set[int] = set()
        self.follower: PlanFollower | None = None
        """Knows how much of a plan lies behind its agent."""

    def plan_batch(self, starts: Any, goals: Any, n_chunks: Any = "auto", *, seed: Any = 0, **_: Any) -> list[Plan]:
        # No two random problems share a goal.
        rows = [int(np.linalg.norm(self.goals - goal, axis=1).argmin()) for goal in goals]
        return [self._plan(start, row) for start, row in zip(starts, rows, strict=True)]

    def _plan(self, start: Array, row: int) -> Plan:
        plan = self.plans[row]
        if row in self.begun:
            self.plans[row] = self._renewed(plan, start, row)
        self.begun.add(row)
        return self.plans[row]

    def _renewed(self, plan: Plan, start: Array, row: int) -> Plan:
        assert self.follower is not None
        executed, left = self.follower.executed(row), self.follower.left(row)
        passed = len(plan.via) - len(left)
        try:
            new = self.planner.repair(plan, at=start, executed=executed, passed=passed, n_candidates=8)
            if new.ok and new.states is not plan.states:
                return new
            # Nothing ahead had to change, and yet the agent got no further: another plan leads it on.
            steering = Steering(left, plan.avoid)
            return self.planner.plan_batch([start], [plan.goal], n_candidates=16, steering=steering)[0]
        except UserError:  # pushed out of what was recorded: the old plan leads back
            return rest(plan, executed, left)


def drive(planner: Planner, block: Sequence[Problem], plans: Sequence[Plan | None], options: Benchmark) -> list[Any]:
    """Whether each episode arrives, past its waypoints in order; None where there is no plan to follow."""
    rows = [row for row, plan in enumerate(plans) if plan is not None]
    if not rows:
        return [None] * len(block)
    dataset: Preset = replace(planner.preset, domain=walled(planner.preset.domain))
    problems = [
        Walled(_begin(block[row], plans[row]), block[row].goal, block[row].number, _closed(block[row], plans[row]))
        for row in rows
    ]
    steersman = Steersman(planner, [plan for plan in plans if plan is not None])
    follower = steersman.follower = PlanFollower(steersman, dataset, Following())
    limit = 2 * dataset.evaluation.step_limit
    with EnvironmentPool(dataset.domain, options.workers) as pool:
        observations, goals = pool.reset(problems)
        space = dataset.space
        follower.reset(observations, goals)
        paths = [space.agent(space.planned(observations))]
        active, arrived = np.ones(len(rows), bool), np.zeros(len(rows), bool)
        for _ in range(limit):
            step = pool.step(np.asarray(follower.act(observations, active)), active)
            observations = step.observations
            paths.append(space.agent(space.planned(observations)))
            for e in np.flatnonzero(step.success & active):
                track = np.stack([each[e] for each in paths])
                arrived[e] = passes(track, block[rows[e]].via, PASSED)
            active &= ~(arrived | step.unstable | lying(paths))
            if not active.any():
                break
    ended: list[Any] = [None] * len(block)
    for row, there in zip(rows, arrived.tolist(), strict=True):
        ended[row] = there
    return ended


def lying(paths: Sequence[Array]) -> Array:
    """[E] bool: agents that fell and stay where they are, by their places [E, 2] at each step so far."""
    if len(paths) <= STILL:
        return np.zeros(len(paths[-1]), bool)
    still = np.asarray(np.linalg.norm(paths[-1] - paths[-1 - STILL], axis=1) < MOVED)
    if still.any():  # or they have gone somewhere and come back the same way
        since = np.stack([each[still] for each in paths[-1 - STILL :]])
        still[still] = (np.linalg.norm(since - since[-1], axis=2) < MOVED).all(axis=0)
    return still


def _begin(problem: Problem, plan: Plan | None) -> Array:
    """Where the agent stands: at the start, or where a plan was repaired."""
    return np.asarray(problem.start if plan is None else plan.start, float)


def _closed(problem: Problem, plan: Plan | None) -> tuple[Cell, ...]:
    """The cells that are closed, also where they closed on the way."""
    if plan is None or problem.closed:
        return problem.closed
    centers = [np.add(each.region.low, each.region.high) / 2 for each in plan.avoid if hasattr(each, "region")]
    return tuple(plan.maze.cell(center) for center in centers) if plan.maze is not None else ()


def summary(done: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Shares in percent of the problems that there are, and the median time."""
    tried = [each for each in done if each["certified"] is not None]

    def share(test: Any) -> float | None:
        return round(100 * float(np.mean([bool(test(each)) for each in tried])), 2) if tried else None

    both = share(lambda each: each["certified"] and each["sound"])
    told = {"count": len(tried), "certified": share(lambda each: each["certified"]), "certified_and_sound": both}
    told["false"] = sum(bool(each["certified"] and not each["sound"]) for each in tried)
    told["seconds"] = float(np.median([each["seconds"] for each in tried])) if tried else None
    if tried and "seconds_anew" in tried[0]:
        told["times_faster"] = round(float(np.median([each["seconds_anew"] / each["seconds"] for each in tried])), 2)
    if tried and "driven" in tried[0]:
        told["driven"] = share(lambda each: each["driven"])
    return told


def warm_up(planner: Planner, layout: Maze) -> None:
    """What is made once, such as the roadmap and a GPU's graphs, is in no problem's time."""
    cells = layout.free_cells
    ends = layout.center(cells[0]), layout.center(cells[-1])
    plan = planner.plan(*ends, avoid=[Box((-100, -100), (-99, -99))], via=[Waypoint(tuple(ends[0]))], n_candidates=8)
    planner.repair(plan, at=plan.states[0], avoid=boxes(layout, [layout.cell(plan.states[len(plan.states) // 2])]))


if __name__ == "__main__":
    main()
