"""The paper's figures 1, 4, 10 to 12 and 15 to 17, each from a shipped planner; `make_pictures.py` draws them.

Only *Decision Diffuser* has no shipped planner: a small one is trained on the CPU, the first time that it is drawn, and
kept under runs/. All problems are those of OGBench's tasks, with the noise that seed 0 puts on start and goal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from panels import found, in_walls, maze, pairs, row, title, unmerged, verdict

from compdiffuser.artifact import CONFIG
from compdiffuser.baselines.decision_diffuser import monolithic, train_decision_diffuser
from compdiffuser.data import generate, storage
from compdiffuser.evaluation.causes import LOST
from compdiffuser.evaluation.replay import Recorder
from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
from compdiffuser.following.follower import PlanFollower
from compdiffuser.following.settings import Following
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.plotting.drawing import INK, draw_chunks
from compdiffuser.presets import preset
from compdiffuser.types import Array, UserError

GIANT, ANT, EXPLORED = "pointmaze-giant-stitch-v0", "antmaze-giant-stitch-v0", "antmaze-large-explore-v0"
STUCK, TRIED, SEEDS = 5, 20, 5
"""Task of episodes of which the controller loses one in fifty, and how many are driven of each of so many seeds."""
MONOLITHIC = Path("runs/pictures/dd")
SMALL = {"width": 128, "depth": 4, "batch": 64, "steps": 2500, "checkpoint_every": 2500}
"""Decision Diffuser's network and training here: six minutes on one core, where that of the results is of a GPU."""
STRIDE = 8
"""Steps between the states of its plans, which keeps them short enough for a CPU."""
EPISODES = 1000
"""Recorded episodes it learns from, a fifth of the dataset's."""
K = 9
"""Chunks in the paper's figures of the giant maze."""


def composition(seed: int) -> Figure:
    """Figure 1: one long chunk, and a plan composed of chunks, each driven by the same controller."""
    figure, axes = pairs(2)
    one = single_chunk().configured(PlanConfig.paper("parallel"))
    ways = (
        ("one long chunk", one, Following(replan=False, n_chunks=1, seed=seed, options={"n_candidates": 1})),
        ("composed", Planner.from_pretrained(GIANT), Following(replan=False, seed=seed)),
    )
    for ax, (word, planner, following) in zip(axes, ways, strict=True):
        (plan,), (episode,) = driven(planner, following, 1, seed)
        _driven(ax, plan, episode)
        parts = f"{len(plan.states)} states" if plan.n_chunks == 1 else f"{plan.n_chunks} chunks"
        title(ax, f"{word} ({parts}): {found(plan)}\n{_ending(episode)}", episode.success)
    return figure


def methods(seed: int) -> Figure:
    """Figure 4: Decision Diffuser, GSC, the paper's sampler and ours; the last three with the same weights."""
    figure, axes = pairs()
    planner = Planner.from_pretrained(GIANT)
    ways = (
        ("Decision Diffuser", single_chunk().configured(PlanConfig.paper("parallel")), 1, 1),
        (f"GSC, K = {K}", planner.configured(PlanConfig.paper("gsc")), K, 8),
        (f"the paper's sampler, K = {K}", planner.configured(PlanConfig.paper()), K, 8),
        (f"ours, K = {K}", planner.with_config(wave=8, scaffold=None), K, 64),
    )
    for ax, (word, way, count, candidates) in zip(axes, ways, strict=True):
        plan = way.plan(*task(planner, 1, seed), n_chunks=count, n_candidates=candidates, seed=seed)
        maze(ax, plan)
        unmerged(ax, plan)
        verdict(ax, plan, word, score=False)
        _tell(word, plan)
    return figure


def numbers(seed: int) -> Figure:
    """Figure 10: task 1 with 8 to 11 chunks, before they are merged."""
    return _by_number(seed, (8, 9, 10, 11), 64)


def few(seed: int) -> Figure:
    """Figure 17: task 1 with 3 to 6 chunks, too few to reach so far."""
    return _by_number(seed, (3, 4, 5, 6), 16)


def _by_number(seed: int, counts: Sequence[int], candidates: int) -> Figure:
    figure, axes = pairs()
    planner = Planner.from_pretrained(GIANT).with_config(wave=8, scaffold=None)
    for ax, k in zip(axes, counts, strict=True):
        plan = planner.plan(*task(planner, 1, seed), n_chunks=k, n_candidates=candidates, seed=seed)
        maze(ax, plan)
        unmerged(ax, plan)
        verdict(ax, plan, f"K = {k}")
        _tell(f"K = {k}", plan)
    return figure


def ways(seed: int) -> Figure:
    """Figure 11: four plans for task 1 that take other ways."""
    figure, axes = pairs()
    planner = Planner.from_pretrained(GIANT)
    first = planner.plan(*task(planner, 1, seed), n_plans=len(axes), seed=seed)
    for ax, plan in zip(axes, (first, *first.others), strict=True):
        maze(ax, plan)
        draw_chunks(ax, plan.chunks, 2.2, False)
        verdict(ax, plan, f"{plan.length:.0f} m, K = {plan.n_chunks}")
        _tell("way", plan)
    return figure


def tasks(seed: int) -> Figure:
    """Figure 12: tasks 2 to 5, with automatic K."""
    figure, axes = pairs()
    planner = Planner.from_pretrained(GIANT)
    for ax, number in zip(axes, (2, 3, 4, 5), strict=True):
        plan = planner.plan(*task(planner, number, seed), seed=seed)
        maze(ax, plan)
        draw_chunks(ax, plan.chunks, 2.2, False)
        verdict(ax, plan, f"task {number}, K = {plan.n_chunks}")
        _tell(f"task {number}", plan)
    return figure


def infeasible(seed: int) -> Figure:
    """Figure 15: the ant's giant maze, the paper's sampler and ours."""
    figure, axes = pairs(2)
    planner = Planner.from_pretrained(ANT)
    samplers = (
        (f"the paper's sampler, K = {K}", planner.configured(PlanConfig.paper()), 8),
        (f"ours, K = {K}", planner, 64),
    )
    for ax, (word, way, candidates) in zip(axes, samplers, strict=True):
        plan = way.plan(*task(planner, 1, seed), n_chunks=K, n_candidates=candidates, seed=seed)
        maze(ax, plan)
        unmerged(ax, plan)
        verdict(ax, plan, word, score=False)
        _tell(word, plan)
    return figure


def lost(seed: int) -> Figure:
    """Figure 16: the first episode in which the ant leaves a sound plan, without and with replanning.

    Few end so. Seeds are tried one after another, from the one that is asked for on.
    """
    figure, axes = row(2)
    planner = Planner.from_pretrained(EXPLORED)
    for tried in range(seed, seed + SEEDS):
        plans, ended = driven(planner, Following(replan=False, seed=tried), STUCK, tried, TRIED)
        episode = next((each.episode for each in ended if each.cause == LOST), None)
        if episode is not None:
            break
    else:
        raise UserError(
            f"none of {SEEDS * TRIED} episodes of task {STUCK}, from seed {seed} on, is lost on this machine"
        )
    print(f"seed {tried}, episode {episode}", flush=True)
    _, again = driven(planner, Following(seed=tried), STUCK, tried, TRIED)
    for ax, word, each in zip(axes, ("one plan", "with replanning"), (ended[episode], again[episode]), strict=True):
        _driven(ax, plans[episode], each)
        title(ax, f"{word}, K = {plans[episode].n_chunks}\n{_ending(each)}", each.success)
    return figure


FIGURES: dict[str, Callable[[int], Figure]] = {
    draw.__name__: draw for draw in (composition, methods, numbers, ways, tasks, infeasible, lost, few)
}
"""In the paper's order, by the name of the picture."""


def single_chunk() -> Planner:
    """Decision Diffuser in the giant maze: one chunk as long as eight composed ones. Trained where it is not there."""
    if not (MONOLITHIC / CONFIG).exists():
        world = preset(GIANT)
        short = {name: getattr(world.chunks, name) // STRIDE for name in ("horizon", "overlap")}
        world = replace(world, chunks=replace(world.chunks, stride=STRIDE, **short))
        file = generate.make(GIANT, episodes=EPISODES, workers=1, out=MONOLITHIC.with_suffix(".npz"))
        recipe = recipe_for("default", monolithic(world)).changed(SMALL)
        train_decision_diffuser(
            storage.load(file), world, MONOLITHIC, model=recipe.model, objective=recipe.objective,
            config=recipe.training,
        )  # fmt: skip
    return Planner.from_pretrained(MONOLITHIC)


def task(planner: Planner, number: int, seed: int) -> tuple[Array, Array]:
    """Start and goal of one of the benchmark's tasks."""
    assert planner.preset.domain.make is not None
    start, goal = planner.preset.domain.make().reset(number, seed)
    return planner.space.planned(start), planner.space.planned(goal)


def driven(
    planner: Planner, following: Following, number: int, seed: int, episodes: int = 1
) -> tuple[list[Plan], list[EpisodeResult]]:
    """Episodes of a task, with the plans that they began with."""
    recorder = Recorder(PlanFollower(planner, planner.preset, following))
    ended = evaluate(recorder, planner.preset, [number], episodes=episodes, seed=seed, workers=0)
    return [recorder.plans(episode)[0][1] for episode in range(episodes)], ended


def _driven(ax: Axes, plan: Plan, episode: EpisodeResult) -> None:
    """A plan, and the path that was driven along it."""
    maze(ax, plan)
    in_walls(ax, plan.states, plan)
    draw_chunks(ax, plan.chunks, 3.4, False)
    halo = [Stroke(linewidth=2.0, foreground="white"), Normal()]
    ax.plot(*episode.path.T, color=INK, linewidth=1.0, zorder=6, path_effects=halo)
    ax.scatter(*episode.path[-1], s=28, color=INK, edgecolors="white", linewidths=0.9, zorder=7)
    _tell(f"task {episode.task}, {_ending(episode)}", plan)


def _ending(episode: EpisodeResult) -> str:
    return f"goal reached in {episode.steps} steps" if episode.success else f"failed: {episode.cause}"


def _tell(what: str, plan: Plan) -> None:
    print(f"{what}: {plan}, best of {len(plan.scores)}, {plan.fault() or 'free of walls'}", flush=True)
