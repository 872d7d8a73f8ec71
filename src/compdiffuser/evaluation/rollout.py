"""Run a policy through tasks, all episodes of a seed side by side, and say of each how it ended.

Only `Policy.reset` and `Policy.act` are needed; a policy that also keeps `decisions` gets its failures explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console

from compdiffuser.evaluation.causes import Ending, cause_of, lies
from compdiffuser.evaluation.environments import EnvironmentPool
from compdiffuser.evaluation.problems import Placement, Problem, Task
from compdiffuser.presets import Preset
from compdiffuser.progress import progress_bar
from compdiffuser.types import Array, Policy, UserError

_KEPT_STATES = 200


@dataclass(frozen=True)
class EpisodeResult:
    """How one episode went."""

    task: int
    episode: int
    seed: int
    success: bool
    steps: int
    cause: str | None
    """Why it failed, one of `causes.causes_in(space)`; None where it succeeded."""
    path: Array
    """[n, P], positions on the way, the agent's x and y first, thinned to a few hundred states."""
    decisions: tuple[Any, ...] = ()
    """What the policy decided on the way, where it tells."""
    problem: Problem | None = None
    """What it was asked to solve; enough to begin the same episode again. The seeds of a follower's plans also
    depend on the episode's row in the evaluation, which is another where only some of the tasks run."""


def episode_seed(seed: int, task: int, episode: int) -> int:
    """The environment's seed: the same for every policy, other for every task, episode and evaluation seed."""
    return int(np.random.SeedSequence([seed, task, episode]).generate_state(1)[0])


def evaluate(
    policy: Policy,
    preset: Preset,
    tasks: Sequence[int] | None = None,
    episodes: int | None = None,
    seed: int = 0,
    step_limit: int | None = None,
    workers: int | None = None,
    pool: EnvironmentPool | None = None,
    progress: bool = False,
    placements: Sequence[tuple[Array, Array]] | None = None,
) -> list[EpisodeResult]:
    """Run `episodes` episodes of each task (numbered from 1; all where None) with one evaluation seed.

    `placements` are tasks of your own instead of the world's: pairs of start positions [P] and goal positions [P].
    `pool` reuses the worlds of an earlier call; otherwise `workers` processes are started for this one.
    """
    episodes = preset.evaluation.episodes if episodes is None else episodes
    step_limit = preset.evaluation.step_limit if step_limit is None else step_limit
    if episodes < 1:
        raise UserError(f"an evaluation needs at least 1 episode per task, not {episodes}")
    if step_limit < 1:
        raise UserError(f"an episode needs at least 1 step, not {step_limit}")
    known = preset.domain.tasks if placements is None else len(placements)
    chosen = range(1, known + 1) if tasks is None else tasks
    runs = [(task, episode) for task in chosen for episode in range(episodes)]
    if not runs:
        raise UserError("an evaluation needs at least one task, none was given")
    problems = [_problem(task, episode_seed(seed, task, episode), placements) for task, episode in runs]
    with nullcontext(pool) if pool is not None else EnvironmentPool(preset.domain, workers) as environments:
        observations, goals = environments.reset(problems)
        waiting = Console(stderr=True).status(f"seed {seed}: planning {len(runs)} episodes …")
        with waiting if progress else nullcontext():
            policy.reset(observations, goals)
        ended = _run(policy, environments, observations, preset, step_limit, progress, f"seed {seed}")
    decisions = getattr(policy, "decisions", None) or [()] * len(runs)
    return [
        EpisodeResult(
            task,
            episode,
            seed,
            success=bool(ended.success[e]),
            steps=int(ended.steps[e]),
            cause=None if ended.success[e] else cause_of(ended.ending(e, decisions[e]), preset.space),
            path=_thinned(ended.path(e)),
            decisions=tuple(decisions[e]),
            problem=problems[e],
        )
        for e, (task, episode) in enumerate(runs)
    ]


def _thinned(path: Array) -> Array:
    """Some of a path's positions [n, P], the last among them: where the episode ended."""
    last = len(path) - 1
    return path[np.append(np.arange(0, last, max(1, last // _KEPT_STATES)), last)]


def _problem(task: int, seed: int, placements: Sequence[tuple[Array, Array]] | None) -> Problem:
    if placements is None:
        return Task(task, seed)
    if not 1 <= task <= len(placements):
        raise UserError(f"unknown task {task}; {len(placements)} placements were given, numbered from 1")
    return Placement(*placements[task - 1], seed)


@dataclass(frozen=True)
class _Ended:
    success: Array
    unstable: Array
    fallen: Array
    steps: Array
    paths: Array
    """[steps + 1, E, P]"""

    def path(self, e: int) -> Array:
        """[n, P], the positions of one episode."""
        return self.paths[: self.steps[e] + 1, e]

    def ending(self, e: int, decisions: Sequence[Any]) -> Ending:
        return Ending(bool(self.unstable[e]), bool(self.fallen[e]), decisions, self.path(e))


def _run(
    policy: Policy,
    pool: EnvironmentPool,
    observations: Array,
    preset: Preset,
    step_limit: int,
    progress: bool,
    label: str,
) -> _Ended:
    """Step all episodes until each has reached its goal, blown up, or used its steps."""
    space, body = preset.space, preset.domain.body
    active = np.ones(len(observations), bool)
    success, unstable = np.zeros_like(active), np.zeros_like(active)
    steps, down = np.zeros(len(active), int), np.zeros(len(active), int)
    paths = [space.places(space.planned(observations))]
    told = (
        "{task.completed}/{task.total} steps, {task.fields[reached]} of {task.fields[episodes]} episodes at their goal"
    )
    with progress_bar(told, shown=progress, transient=False, remaining=False) as bar:
        line = bar.add_task(label, total=step_limit, reached=0, episodes=len(active))
        while active.any() and steps.max() < step_limit:
            step = pool.step(np.asarray(policy.act(observations, active)), active)
            observations = step.observations
            steps += active
            success |= step.success & active & ~step.unstable
            unstable |= step.unstable & active
            down = np.where(active, np.where(body.fallen(observations), down + 1, 0), down)
            active &= ~(success | unstable)
            paths.append(space.places(space.planned(observations)))
            bar.update(line, advance=1, reached=int(success.sum()))
    return _Ended(success, unstable, lies(body, down), steps, np.stack(paths))
