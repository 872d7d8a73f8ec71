"""Pictures of docs/method.md and docs/reproduction.md, made with shipped planners.

Run it from the project's folder whenever those planners change:

    .venv/bin/python docs/make_pictures.py              # all of them
    .venv/bin/python docs/make_pictures.py --only chunks

It takes half an hour on two CPU cores and overwrites docs/images/method-*.png and paper-*.png. Pictures of the method
page are of the default sampler, but candidates are few, so scores are somewhat worse than those of a default plan.
The ant that gets up needs OpenGL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import mujoco
import numpy as np
import panels
import torch
import tyro
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter
from paper_figures import FIGURES

from compdiffuser.domains import BODIES
from compdiffuser.planning.planner import Planner
from compdiffuser.plotting.plans import chunk_colors
from compdiffuser.plotting.scene_video import drawing, style
from compdiffuser.presets import preset

MODEL = "pointmaze-giant-stitch-v0"
START, GOAL = (0.0, 0.0), (16.0, 24.0)  # sixteen cells apart
RIGHT_K = 5
EXPLORED = "antmaze-large-explore-v0"
MOMENTS, ROLL, CLOSE_UP = 6, 20, (360, 300)
"""Pictures of an ant that gets up, steps in which it rolls over, and pixels of each picture."""
DETOUR = ((12.0, 16.0), (0.0, 24.0))  # the goal of task 2 lies behind its start


@dataclass(frozen=True)
class Pictures:
    """Draw the pictures of docs/method.md and docs/reproduction.md."""

    only: Literal[
        "all", "denoising", "chunks", "candidates", "scaffold", "rising", "composition", "methods", "numbers", "ways",
        "tasks", "infeasible", "lost", "few",
    ] = "all"  # fmt: skip
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
    figure, axes = panels.row(5)
    for ax, level in zip(axes[:-1], (10.0, 4.0, 1.4, 0.1), strict=True):
        # The last of the calls at this level: a level in the resampling window has several.
        sigma, noisy, clean = min(reversed(calls), key=lambda call: abs(np.log(call[0] / level)))
        noisy, clean = (planner.normalizer.denormalize(x[rows]).cpu().numpy() for x in (noisy, clean))
        panels.maze(ax, plan)
        panels.chunks(ax, clean, alpha=0.9, width=1.0)
        colors = np.repeat(chunk_colors(RIGHT_K), noisy.shape[1], axis=0)
        ax.scatter(*noisy.reshape(-1, 2).T, s=2.0, c=colors, alpha=0.45, linewidths=0)
        ax.set_title(f"σ = {sigma:.2g}", fontsize=9)
    panels.maze(axes[-1], plan)
    panels.chunks(axes[-1], plan.chunks)
    axes[-1].set_title("the plan", fontsize=9)
    return figure


def chunks(planner: Planner, seed: int) -> Figure:
    """The best plan for too few, enough and more than enough chunks, with scores."""
    # Small waves stop as soon as a plan is certified.
    planner = planner.with_config(wave=4)
    counts = (2, RIGHT_K, 8)
    figure, axes = panels.row(len(counts))
    for ax, k in zip(axes, counts, strict=True):
        plan = planner.plan(START, GOAL, n_chunks=k, n_candidates=8, seed=seed)
        panels.maze(ax, plan)
        panels.chunks(ax, plan.chunks)
        panels.verdict(ax, plan, f"K = {k}")
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
    figure, axes = panels.row(3, widths=(1, 1, 0.55))
    for ax, (one, _), word in ((axes[0], ranked[0], "best of 8"), (axes[1], ranked[-1], "worst of 8")):
        panels.maze(ax, one)
        ax.add_collection(
            LineCollection([other.states for other, _ in ranked], colors="#7d8797", linewidths=0.5, alpha=0.35)
        )
        ax.plot(*one.states.T, color=panels.BAD if one.fault() else panels.GOOD, linewidth=1.6)
        panels.verdict(ax, one, word)
    for place, (one, excess) in enumerate(ranked, start=1):
        color, marker = (panels.BAD, "x") if one.fault() else (panels.GOOD, "o")
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
    figure, axes = panels.row(3)
    for ax, one, word in ((axes[0], straight, "from pure noise"), (axes[2], plan, "from the scaffold")):
        panels.maze(ax, one)
        panels.chunks(ax, one.chunks)
        panels.verdict(ax, one, f"{word}, K = {one.n_chunks}")
    panels.maze(axes[1], plan)
    axes[1].plot(*planner.normalizer.denormalize(path).numpy().T, color="#22262e", linewidth=1.2, marker=".", ms=3)
    axes[1].set_title("a path through recorded states", fontsize=9)
    return figure


def rising(seed: int) -> Figure:
    """An ant on its back that rocks itself onto its feet, in six moments."""
    world = preset("antmaze-medium-stitch-v0").domain.make()
    model, data, body = world.env.model, world.env.data, BODIES["ant"]
    world.reset(task=1, seed=seed)
    pose = data.qpos.copy()
    pose[2:7] = 0.6, 0.0, np.cos(1.2), np.sin(1.2), 0.0
    world.env.set_state(pose, np.zeros_like(data.qvel))
    poses, observation = [], world.advance(np.zeros(8))
    while not body.risen(observation):
        poses.append(data.qpos.copy())
        observation = world.advance(body.rising(np.array([len(poses) - 1]))[0])
    poses.append(data.qpos.copy())
    last = len(poses) - 1
    moments = [0, *np.linspace(max(last - ROLL, 1), last, MOMENTS - 1).round().astype(int)]
    figure, axes = panels.row(MOMENTS)
    for ax, moment, picture in zip(axes, moments, close_ups(model, [poses[each] for each in moments]), strict=True):
        ax.imshow(picture)
        ax.set_axis_off()
        ax.set_title(f"step {moment}", fontsize=8)
    return figure


def close_ups(model: Any, poses: Sequence[Any]) -> list[Any]:
    """A body in these poses [nq] from near by, each [height, width, 3]."""
    style(model, *CLOSE_UP)
    scene, data, option = mujoco.MjvScene(model, maxgeom=1000), mujoco.MjData(model), mujoco.MjvOption()
    camera, view = mujoco.MjvCamera(), mujoco.MjrRect(0, 0, *CLOSE_UP)
    camera.azimuth, camera.elevation, camera.distance = 60, -20, 3.2
    pixels, found = np.empty((CLOSE_UP[1], CLOSE_UP[0], 3), np.uint8), []
    with drawing(model) as context:
        for pose in poses:
            data.qpos[:] = pose
            mujoco.mj_forward(model, data)
            camera.lookat[:] = (*pose[:2], 0.4)
            mujoco.mjv_updateScene(model, data, option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
            mujoco.mjr_render(view, scene, context)
            mujoco.mjr_readPixels(pixels, None, view, context)
            found.append(pixels[::-1].copy())  # OpenGL's first row is the lowest
    return found


def main() -> None:
    options = tyro.cli(Pictures, description=__doc__)
    if options.only in ("all", "rising"):
        panels.write(rising(options.seed), options.out / "method-rising.png")
    for method in (denoising, chunks, candidates, scaffold):
        if options.only in ("all", method.__name__):
            noise = Planner.from_pretrained(MODEL).with_config(scaffold=None)
            planner = Planner.from_pretrained(EXPLORED) if method is scaffold else noise
            panels.write(method(planner, options.seed), options.out / f"method-{method.__name__}.png")
    for name, draw in FIGURES.items():
        if options.only in ("all", name):
            panels.write(draw(options.seed), options.out / f"paper-{name}.png")


if __name__ == "__main__":
    main()
