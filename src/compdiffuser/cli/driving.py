"""One seed of an evaluation, as a job for a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from compdiffuser.cli.worlds import load_worlds

if TYPE_CHECKING:
    from compdiffuser.cli.evaluate import Eval
    from compdiffuser.evaluation.rollout import EpisodeResult


class Driven(NamedTuple):
    """The episodes of a seed, and what whoever drove them says of itself."""

    episodes: list[EpisodeResult]
    identity: dict[str, Any]


def drive(job: tuple[Eval, int, tuple[str, ...]]) -> Driven:
    """Drive the episodes of a seed, all in this process; `worlds` are files that register some."""
    from compdiffuser.evaluation.rollout import evaluate

    options, seed, worlds = job
    for file in worlds:
        load_worlds(file)
    contestant, tasks = options.contestant(), options.task_numbers()
    episodes = evaluate(
        contestant.policy(seed), contestant.preset, tasks, options.episodes, seed, contestant.limit, workers=0
    )  # fmt: skip
    return Driven(episodes, contestant.identity())
