"""One frozen record per dataset: what is recorded, what is planned, and how a plan is executed and evaluated.

Chunk lengths, step limits and replanning rules follow the paper's implementation appendix; a field that differs says
so.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from compdiffuser.types import UserError


@dataclass(frozen=True)
class Preset:
    """Everything that changes from one dataset to the next."""

    name: str
    """Dataset name; also the name of its pretrained planner."""
    environment: str
    """Gymnasium id of the simulator."""
    maze: str
    """Layout in `data.mazes`."""
    recipe: str
    """Generator that records it, a key of `data.recipes`."""
    episodes: int
    """Training episodes; a tenth of them more is recorded for validation."""
    episode_steps: int
    """States per episode (an upper bound where episodes end at their goal)."""
    plan_dims: tuple[int, ...] = (0, 1)
    """Observation dimensions that are planned."""
    horizon: int = 160
    """H, states per chunk."""
    overlap: int = 56
    """O, states shared by neighbouring chunks."""
    stride: int = 1
    """Environment steps between the states of a chunk; above 1, plans are followed by progress and not by time."""
    chunks: int = 3
    """K of the paper, used where a fixed number is asked for."""
    max_chunks: int = 6
    """Largest K that automatic planning tries."""
    scaffold: float | None = None
    """Noise level σ from which candidates begin along a way through the recorded states; None: all from pure noise."""
    front_padding: int = 64
    """Copies of the first state that may precede a training window."""
    back_padding: int = 0
    """Copies of the last state that may follow a training window."""
    controller: str = "point"
    """How a plan is followed: a key of `planning.controllers`."""
    step_limit: int = 1000
    """Environment steps per episode in the paper."""
    ogbench_step_limit: int = 1000
    """Environment steps per episode as the benchmark registers it: OGBench, or gymnasium-robotics."""
    task_episodes: int = 20
    """Evaluation episodes per task."""
    replan_distance: float = 1.0
    """Replan when the agent is further than this (metres) from its subgoal."""
    max_replans: int = 10
    """Plans per episode after the first."""
    replan_delta: int = 10
    """δ of the receding K: larger keeps K longer."""
    expert: str = ""
    """The locomotion expert that walks the body when data is recorded; none where actions move it directly."""
    expert_noise: float = 0.2
    """Standard deviation of the noise on the expert's actions."""


def _point(size: str, chunks: int, max_chunks: int) -> Preset:
    return Preset(
        name=f"pointmaze-{size}-stitch-v0",
        environment=f"pointmaze-{size}-v0",
        maze=size,
        recipe="stitch",
        episodes=5000,
        episode_steps=201,
        chunks=chunks,
        max_chunks=max_chunks,
    )


def _ant(size: str, chunks: int, max_chunks: int, step_limit: int) -> Preset:
    return replace(
        _point(size, chunks, max_chunks),
        name=f"antmaze-{size}-stitch-v0",
        environment=f"antmaze-{size}-v0",
        scaffold=0.25,
        controller="inverse-dynamics",
        step_limit=step_limit,
        replan_distance=4.0,
        replan_delta=50,
        expert="ant",
    )


def _ant_explore(size: str, chunks: int, max_chunks: int) -> Preset:
    """Chunks cover 192 steps as in the paper, by every fourth state; random walks get half a cell far in that time."""
    return replace(
        _ant(size, chunks, max_chunks, step_limit=1000),
        name=f"antmaze-{size}-explore-v0",
        recipe="explore",
        episodes=10_000,
        episode_steps=501,
        horizon=48,
        overlap=16,
        stride=4,
        replan_distance=2.0,
        expert_noise=1.0,
    )


def _robotics(
    size: str, environment: str, horizon: int, overlap: int, episodes: int, steps: int, step_limit: int
) -> Preset:
    """About a million states. Episodes end at their goal, many before H states, hence the padding on both sides."""
    return Preset(
        name=f"robotics-pointmaze-{size}-v0",
        environment=environment,
        maze=f"robotics-{size}",
        recipe="regions",
        episodes=episodes,
        episode_steps=steps,
        horizon=horizon,
        overlap=overlap,
        chunks=5,
        max_chunks=8,
        front_padding=horizon // 2,
        back_padding=horizon // 2,
        controller="point-velocity",
        ogbench_step_limit=step_limit,
        task_episodes=10,
        replan_distance=0.5,
    )


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _point("medium", chunks=3, max_chunks=6),
        _point("large", chunks=5, max_chunks=8),
        _point("giant", chunks=8, max_chunks=12),
        _ant("medium", chunks=3, max_chunks=6, step_limit=1000),
        _ant("large", chunks=6, max_chunks=8, step_limit=2000),
        _ant("giant", chunks=9, max_chunks=12, step_limit=2000),
        _ant_explore("medium", chunks=5, max_chunks=32),
        _ant_explore("large", chunks=6, max_chunks=48),
        _robotics("umaze", "PointMaze_UMaze-v3", 40, 16, episodes=34_000, steps=150, step_limit=300),
        _robotics("medium", "PointMaze_Medium-v3", 144, 56, episodes=18_000, steps=400, step_limit=600),
        _robotics("large", "PointMaze_Large-v3", 192, 64, episodes=8_000, steps=800, step_limit=800),
    )
}


def preset(name: str) -> Preset:
    """The record of a dataset, or a sentence with the nearest name."""
    if name in PRESETS:
        return PRESETS[name]
    near = difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.4)
    hint = f"; did you mean '{near[0]}'?" if near else f"; known names: {', '.join(PRESETS)}"
    raise UserError(f"unknown dataset '{name}'{hint}")
