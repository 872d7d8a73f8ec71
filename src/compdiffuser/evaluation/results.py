"""From episodes to one JSON object: success over seeds, failures by cause, and everything needed to run it again."""

from __future__ import annotations

import dataclasses
import os
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from compdiffuser.evaluation.causes import CAUSES
from compdiffuser.evaluation.rollout import EpisodeResult
from compdiffuser.planning.search import Origin
from compdiffuser.runs import package_versions
from compdiffuser.types import UserError

_PACKAGES = ("compdiffuser", "torch", "numpy", "mujoco", "ogbench", "gymnasium", "gymnasium-robotics")


def summarize(
    runs: Sequence[Sequence[EpisodeResult]],
    steps_limit: int,
    shorter_limit: int | None = None,
    *,
    causes: Sequence[str] = CAUSES,
    complete: bool = True,
    **identity: Any,
) -> dict[str, Any]:
    """One object for the runs of all seeds; `identity` says what was run: dataset, method, settings, data, …

    `success` is the mean over seeds of the percentage of episodes that reach their goal, `std` its standard deviation.
    `within` gives both for a shorter limit: an episode does not know when it will be cut off. `plans` counts what plans
    began from, `failed_tests` which tests the last plans of failed episodes did not pass; each where decisions tell.
    `failures` counts the `causes` that a world has (`causes_in`), and any other that occurs. `complete` is false where
    further seeds are to follow.
    """
    if not runs or not all(runs):
        raise UserError("there are no episodes to summarize")
    everything = [episode for run in runs for episode in run]
    failed = Counter(episode.cause for episode in everything if not episode.success)
    tasks = sorted({episode.task for episode in everything})
    steps = [episode.steps for episode in everything if episode.success]
    return {
        "complete": complete,
        **identity,
        **_over_seeds(runs, steps_limit),
        **({"within": {str(shorter_limit): _over_seeds(runs, shorter_limit)}} if shorter_limit else {}),
        "per_task": {str(task): _percent([e.success for e in everything if e.task == task]) for task in tasks},
        "failures": {str(cause): failed[cause] for cause in dict.fromkeys([*causes, *failed])},
        **_plan_counts(everything),
        "failed_episodes": [_explained(episode) for episode in everything if not episode.success],
        "replans_per_episode": round(float(np.mean([_replans(episode) for episode in everything])), 3),
        "steps_mean": round(float(np.mean(steps)), 1) if steps else None,
        "steps_limit": steps_limit,
        "seeds": [run[0].seed for run in runs],
        "tasks": tasks,
        "episodes": len(everything),
        "episodes_per_task": len(runs[0]) // len(tasks),
    }


def _over_seeds(runs: Sequence[Sequence[EpisodeResult]], limit: int) -> dict[str, Any]:
    by_seed = [_percent([episode.success and episode.steps <= limit for episode in run]) for run in runs]
    return {
        "success": round(float(np.mean(by_seed)), 2),
        "std": round(float(np.std(by_seed)), 2),
        "success_by_seed": by_seed,
    }


def _plan_counts(episodes: Sequence[EpisodeResult]) -> dict[str, Any]:
    """`plans` and `failed_tests`."""
    counts: dict[str, Any] = {}
    made = [decision for episode in episodes for decision in episode.decisions if getattr(decision, "planned", False)]
    origins = Counter(origin for decision in made if (origin := getattr(decision, "origin", None)) is not None)
    if origins:
        counts["plans"] = {origin: origins[origin] for origin in sorted(get_args(Origin))}
    last = [episode.decisions[-1] for episode in episodes if not episode.success and episode.decisions]
    tests = Counter(test for decision in last for test in getattr(decision, "verdict", ()))
    if tests:
        counts["failed_tests"] = dict(tests.most_common())
    return counts


def provenance(program: str = "compdiffuser") -> dict[str, Any]:
    """The command line, the machine and the versions that made a result."""
    return {
        "command": " ".join([program, *sys.argv[1:]]),
        "python": platform.python_version(),
        "versions": package_versions(_PACKAGES),
        "cpus": os.cpu_count(),
    }


def _percent(successes: Sequence[bool]) -> float:
    return round(100.0 * float(np.mean(successes)), 2)


def _replans(episode: EpisodeResult) -> int:
    return sum(getattr(decision, "planned", False) for decision in episode.decisions[1:])


def _explained(episode: EpisodeResult) -> dict[str, Any]:
    """What is kept of a failed episode: enough to see why, and to run it again."""
    return {
        "seed": episode.seed,
        "task": episode.task,
        "episode": episode.episode,
        "cause": episode.cause,
        "steps": episode.steps,
        "ended_at": [round(float(x), 2) if np.isfinite(x) else None for x in episode.path[-1]],
        "decisions": [
            dataclasses.asdict(decision) if dataclasses.is_dataclass(decision) else str(decision)  # type: ignore[arg-type]
            for decision in episode.decisions
        ],
    }
