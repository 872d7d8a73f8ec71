"""Pictures of docs/method.md and docs/reproduction.md, made with shipped planners.

Run it from the project's folder whenever those planners change:

    .venv/bin/python docs/make_pictures.py              # all of them
    .venv/bin/python docs/make_pictures.py --only chunks

It takes some minutes on two CPU cores and overwrites docs/images/method-*.png and paper-*.png. The sampler is the
default one, but candidates are few, so scores are somewhat worse than those of a default plan. Verdicts come from two
sources that need not agree: the certificate, which knows the model only, and the maze's own walls.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import tyro
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter
from PIL import Image

from compdiffuser.domains import PLANE
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.planner import Planner
from compdiffuser.plotting.mazes import draw_maze
from compdiffuser.plotting.plans import chunk_colors
from compdiffuser.types import Array

MODEL = "pointmaze-giant-stitch-v0"
START, GOAL = (0.0, 0.0), (16.0, 24.0)  # sixteen cells apart
RIGHT_K = 5
EXPLORED = "antmaze-large-explore-v0"
DETOUR = ((12.0, 16.0), (0.0, 24.0))  # the goal of task 2 lies behind its start
GOOD, BAD = "#1b7f4b", "#b3261e"


@dataclass(frozen=True)
class Pictures:
    """Draw the pictures of docs/method.md and docs/reproduction.md."""

    only: Literal["all", "denoising", "chunks", "candidates", "scaffold", "methods", "numbers", "tasks"] = "all"
    """Which picture to draw."""
    out: Path = Path("docs/images")
    """Folder to write to."""
    seed: int = 0
    """Seed of the plans."""


class Recorder:
    """A denoiser that remembers what it was asked and what it answered."""

    def __init__(self, denoise: Any) -> None:
        self.denoise = denoise
        self.calls: list[tuple[float, Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.denoise, name)

    def __call__(self, x: Any, sigma: Any, conditions: Any) -> Any:
        clean = self.denoise(x, sigma, conditions)
        self.calls.append((float(sigma[0]), x.clone(), clean.clone()))
        return clean


def denoising(planner: Planner, seed: int) -> Figure:
    """Five moments of one denoising: the noisy chunks as dots, the current estimate of the clean plan as lines."""
    count = 4
    recorder = Recorder(planner.denoise)
    planner.denoise = recorder  # type: ignore[assignment]
    planner = planner.with_config(refine=None).with_sampler(order="parallel")
    plan = planner.plan(START, GOAL, n_chunks=RIGHT_K, n_candidates=count, seed=seed)
    # The chosen candidate's rows; calls of another size are the judge's, not the sampler's.
    rows = slice(plan.candidate * RIGHT_K, (plan.candidate + 1) * RIGHT_K)
    calls = [call for call in recorder.calls if len(call[1]) == count * RIGHT_K]
    figure, axes = _row(5)
    for ax, level in zip(axes[:-1], (10.0, 4.0, 1.4, 0.1), strict=True):
        # The last of the calls at this level: a level in the resampling window has several.
        sigma, noisy, clean = min(reversed(calls), key=lambda call: abs(np.log(call[0] / level)))
        noisy, clean = (planner.normalizer.denormalize(x[rows]).cpu().numpy() for x in (noisy, clean))
        _maze(ax, plan)
        _chunks(ax, clean, alpha=0.9, width=1.0)
        colors = np.repeat(chunk_colors(RIGHT_K), noisy.shape[1], axis=0)
        ax.scatter(*noisy.reshape(-1, 2).T, s=2.0, c=colors, alpha=0.45, linewidths=0)
        ax.set_title(f"σ = {sigma:.2g}", fontsize=9)
    _maze(axes[-1], plan)
    _chunks(axes[-1], plan.chunks)
    axes[-1].set_title("the plan", fontsize=9)
    return figure


def chunks(planner: Planner, seed: int) -> Figure:
    """The best plan for too few, enough and more than enough chunks, with scores."""
    # Small waves stop as soon as a plan is certified.
    planner = planner.with_config(wave=4)
    counts = (2, RIGHT_K, 8)
    figure, axes = _row(len(counts))
    for ax, k in zip(axes, counts, strict=True):
        plan = planner.plan(START, GOAL, n_chunks=k, n_candidates=8, seed=seed)
        _maze(ax, plan)
        _chunks(ax, plan.chunks)
        _verdict(ax, plan, f"K = {k}")
        print(f"K = {k}: best of {len(plan.scores)}, {plan.verdict}, {plan.fault() or 'free of walls'}")
    return figure


def candidates(planner: Planner, seed: int) -> Figure:
    """Best and worst of eight candidates of one problem, and how far each is from what is certified."""
    count = 8
    search = planner.search(START, GOAL, RIGHT_K, count, seed)
    search.wave = count
    planner.advance([search])
    plan = planner.result(search)
    ranked = [
        (replace(plan, states=planner.states(one), score=one.score, verdict=one.verdict), one.verdict.excess)
        for one in search.ranked()
    ]
    figure, axes = _row(3, widths=(1, 1, 0.55))
    for ax, (one, _), word in ((axes[0], ranked[0], "best of 8"), (axes[1], ranked[-1], "worst of 8")):
        _maze(ax, one)
        ax.add_collection(
            LineCollection([other.states for other, _ in ranked], colors="#7d8797", linewidths=0.5, alpha=0.35)
        )
        ax.plot(*one.states.T, color=BAD if one.fault() else GOOD, linewidth=1.6)
        _verdict(ax, one, word)
    for place, (one, excess) in enumerate(ranked, start=1):
        color, marker = (BAD, "x") if one.fault() else (GOOD, "o")
        axes[2].scatter(place, excess, color=color, marker=marker, s=20, zorder=3)
        print(f"candidate {place}: excess {excess:.3f}, {one.verdict}, {one.fault() or 'free of walls'}")
    axes[2].set_title("circle: free path\ncross: wall or jump", fontsize=8)
    axes[2].axhline(1.0, color="#5c6370", linewidth=0.8, linestyle="--")
    axes[2].annotate("the data's 99.5%", (count, 1.0), ha="right", va="top", fontsize=7, color="#5c6370")
    axes[2].set(yscale="log", xticks=[1, count], xlabel="candidates, best first", ylabel="against the limit")
    for which in (axes[2].yaxis.set_major_formatter, axes[2].yaxis.set_minor_formatter):
        which(FormatStrFormatter("%.3g"))
    axes[2].tick_params(labelsize=7, which="both")
    for label in (axes[2].xaxis.label, axes[2].yaxis.label):
        label.set_size(7)
    for side in ("top", "right"):
        axes[2].spines[side].set_visible(False)
    return figure


def scaffold(planner: Planner, seed: int) -> Figure:
    """A plan from pure noise, a path through recorded states, and the plan that starts from it."""
    noise = planner.with_config(scaffold=None)
    straight, plan = (one.plan(*DETOUR, n_candidates=16, seed=seed) for one in (noise, planner))
    assert planner.roadmap is not None
    ends = (planner.normalizer.normalize(torch.tensor([place])) for place in DETOUR)
    path = planner.roadmap.ways(*ends)[0]
    assert path is not None
    figure, axes = _row(3)
    for ax, one, word in ((axes[0], straight, "from pure noise"), (axes[2], plan, "from the scaffold")):
        _maze(ax, one)
        _chunks(ax, one.chunks)
        _verdict(ax, one, f"{word}, K = {one.n_chunks}")
    _maze(axes[1], plan)
    axes[1].plot(*planner.normalizer.denormalize(path).numpy().T, color="#22262e", linewidth=1.2, marker=".", ms=3)
    axes[1].set_title("a path through recorded states", fontsize=9)
    return figure


def methods(planner: Planner, seed: int) -> Figure:
    """The paper's figure 4: GSC, the paper's sampler and ours from the same weights, for one problem."""
    figure, axes = _row(3)
    ways = (
        ("GSC", planner.configured(PlanConfig.paper("gsc")), 8),
        ("the paper's sampler", planner.configured(PlanConfig.paper()), 8),
        ("ours", planner, 64),
    )
    for ax, (word, way, count) in zip(axes, ways, strict=True):
        plan = way.plan(START, GOAL, n_chunks=RIGHT_K, n_candidates=count, seed=seed)
        _maze(ax, plan)
        _chunks(ax, plan.chunks)
        _verdict(ax, plan, word)
    return figure


def numbers(planner: Planner, seed: int) -> Figure:
    """The paper's figure 10: one problem with 8 to 11 chunks, as they are before they are merged."""
    figure, axes = _row(4)
    start, goal = task(planner, 1)
    for ax, k in zip(axes, (8, 9, 10, 11), strict=True):
        plan = planner.with_config(wave=8).plan(start, goal, n_chunks=k, seed=seed)
        _maze(ax, plan)
        _chunks(ax, plan.chunks, alpha=0.8)
        _verdict(ax, plan, f"K = {k}")
    return figure


def tasks(planner: Planner, seed: int) -> Figure:
    """The paper's figure 12: tasks 2 to 5 of the giant maze, with automatic K."""
    figure, axes = _row(4)
    for ax, number in zip(axes, (2, 3, 4, 5), strict=True):
        plan = planner.plan(*task(planner, number), seed=seed)
        _maze(ax, plan)
        _chunks(ax, plan.chunks)
        _verdict(ax, plan, f"task {number}, K = {plan.n_chunks}")
    return figure


def task(planner: Planner, number: int) -> tuple[Array, Array]:
    """Start and goal of one of the benchmark's tasks."""
    assert planner.preset.domain.make is not None
    world = planner.preset.domain.make()
    start, goal = world.reset(number, 0)
    return planner.space.planned(start), planner.space.planned(goal)


def _row(count: int, widths: tuple[float, ...] | None = None) -> tuple[Figure, list[Axes]]:
    ratios = list(widths or (1,) * count)
    width = 11.0 / sum(ratios)
    figure = Figure(figsize=(11.0, 0.74 * width + 0.6), dpi=120, layout="constrained")
    return figure, list(figure.subplots(1, count, width_ratios=ratios, squeeze=False)[0])


def _maze(ax: Axes, plan: Plan) -> None:
    """Walls, start and goal; what noise scatters beyond the maze is cut off."""
    assert plan.maze is not None
    draw_maze(ax, plan.maze)
    ax.autoscale(False)
    ax.scatter(*plan.start, s=35, marker="o", color="#2a9d8f", edgecolors="white", linewidths=0.8, zorder=6)
    ax.scatter(*plan.goal, s=90, marker="*", color="#e63946", edgecolors="white", linewidths=0.8, zorder=6)


def _chunks(ax: Axes, states: Any, alpha: float = 1.0, width: float = 1.6) -> None:
    lines = [PLANE.agent(chunk) for chunk in states]
    ax.add_collection(LineCollection(lines, colors=chunk_colors(len(lines)), linewidths=width, alpha=alpha, zorder=3))


def _verdict(ax: Axes, plan: Plan, what: str) -> None:
    """Score and certificate, and what the maze says; red where the plan cannot be followed."""
    fault = plan.fault()
    found = "free of walls" if fault is None else "through a wall" if "wall" in fault else "with a jump"
    certificate = "certified" if plan.ok else "not certified"
    title = f"{what}: {found}\nscore {plan.score:.3f}, {certificate}"
    ax.set_title(title, fontsize=9, color=GOOD if fault is None else BAD)


def _write(figure: Figure, png: Path) -> None:
    """A palette of 128 colours keeps the file small."""
    buffer = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(buffer, format="png", facecolor="white", bbox_inches="tight", pad_inches=0.06)
    picture = Image.open(buffer).convert("RGB").quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    png.parent.mkdir(parents=True, exist_ok=True)
    picture.save(png, optimize=True)
    print(f"{png} ({png.stat().st_size // 1000} kB)")


def main() -> None:
    options = tyro.cli(Pictures, description=__doc__)
    for draw in (denoising, chunks, candidates, scaffold, methods, numbers, tasks):
        if options.only in ("all", draw.__name__):
            planner = Planner.from_pretrained(EXPLORED if draw is scaffold else MODEL)
            page = "paper" if draw in (methods, numbers, tasks) else "method"
            _write(draw(planner, options.seed), options.out / f"{page}-{draw.__name__}.png")


if __name__ == "__main__":
    main()
