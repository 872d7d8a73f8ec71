"""E environments stepped side by side, spread over worker processes that live as long as the pool.

A step sends one message to each worker with the actions of all its environments, so the cost of talking does not grow
with E. What an environment does depends only on its task and seed, never on which worker runs it.
"""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from compdiffuser.evaluation.tasks import Environment, make_environment, task_count
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError


class WorkerError(RuntimeError):
    """A worker process died or its simulator failed."""


class Step(NamedTuple):
    observations: Array
    """[E, obs]"""
    success: Array
    """[E] bool, the environment's own test."""
    unstable: Array
    """[E] bool, the simulation blew up; the episode cannot go on."""


class EnvironmentPool:
    """Environments of one preset in lockstep; use it as a context manager, so that its workers end."""

    def __init__(self, preset: Preset, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise UserError(f"environments need at least 1 worker process, not {workers}")
        self.preset = preset
        self.n_tasks = task_count(preset)
        # spawn: a forked child of a process that already uses threads or a GPU can hang.
        context = multiprocessing.get_context("spawn")
        self._workers = []
        for _ in range(workers or os.cpu_count() or 1):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, preset), daemon=True)
            process.start()
            theirs.close()
            self._workers.append((process, ours))
        self._observations = np.zeros((0, 0))

    def reset(self, tasks: Sequence[int], seeds: Sequence[int]) -> tuple[Array, Array]:
        """Start E = len(tasks) episodes: observations [E, obs] and goals [E, obs]."""
        for task in tasks:
            if not 1 <= task <= self.n_tasks:
                raise UserError(f"unknown task {task}; {self.preset.environment} has tasks 1 to {self.n_tasks}")
        problems = list(zip(tasks, seeds, strict=True))
        replies = self._ask("reset", [[problems[e] for e in mine] for mine in self._shares(len(problems))])
        self._observations = np.concatenate([reply[0] for reply in replies if len(reply[0])])
        return self._observations.copy(), np.concatenate([reply[1] for reply in replies if len(reply[1])])

    def step(self, actions: Array, active: Array) -> Step:
        """Advance the `active` [E] environments by `actions` [E, act]; the others keep their last observation."""
        shares = self._shares(len(self._observations))
        success, unstable = np.zeros(len(active), bool), np.zeros(len(active), bool)
        messages = [(np.flatnonzero(active[mine]), actions[mine][active[mine]]) for mine in shares]
        for mine, (rows, _), reply in zip(shares, messages, self._ask("step", messages), strict=True):
            if len(rows):
                episodes = np.asarray(mine)[rows]
                self._observations[episodes], success[episodes], unstable[episodes] = reply
        return Step(self._observations.copy(), success, unstable)

    def close(self) -> None:
        """End the workers."""
        for process, connection in self._workers:
            connection.close()
            process.join(timeout=2)
            if process.is_alive():
                process.terminate()
        self._workers = []

    def __enter__(self) -> EnvironmentPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _shares(self, episodes: int) -> list[list[int]]:
        """The episodes of each worker: contiguous, as even as can be."""
        return [part.tolist() for part in np.array_split(np.arange(episodes), len(self._workers))]

    def _ask(self, command: str, messages: list[Any]) -> list[Any]:
        """Send each worker its message, then collect all replies."""
        try:
            for (_, connection), message in zip(self._workers, messages, strict=True):
                connection.send((command, message))
            replies = [connection.recv() for _, connection in self._workers]
        except (EOFError, OSError) as error:
            raise WorkerError(f"a worker process of {self.preset.environment} died{self._how()}") from error
        for kind, content in replies:
            if kind == "error":
                raise WorkerError(f"{self.preset.environment} failed in a worker process: {content}")
        return [content for _, content in replies]

    def _how(self) -> str:
        for process, _ in self._workers:
            process.join(timeout=0.2)
            if process.exitcode is not None:
                return f" with exit code {process.exitcode}; if memory ran out, use fewer workers or episodes"
        return ""


def _serve(connection: Connection, preset: Preset) -> None:
    """A worker: make environments as they are needed, reuse them, answer until the pool hangs up."""
    environments: list[Environment] = []
    while True:
        try:
            command, message = connection.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        reply: tuple[str, Any]
        try:
            answer = _reset(environments, preset, message) if command == "reset" else _step(environments, message)
            reply = ("done", answer)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            reply = ("error", f"{type(error).__name__}: {error} ({os.path.basename(last.filename)}:{last.lineno})")
        except KeyboardInterrupt:
            return
        try:
            connection.send(reply)
        except (OSError, KeyboardInterrupt):
            return


def _reset(environments: list[Environment], preset: Preset, problems: list[tuple[int, int]]) -> tuple[Array, Array]:
    while len(environments) < len(problems):
        environments.append(make_environment(preset))
    started = [env.reset(task, seed) for env, (task, seed) in zip(environments, problems, strict=False)]
    return np.array([observation for observation, _ in started]), np.array([goal for _, goal in started])


def _step(environments: list[Environment], message: tuple[Array, Array]) -> tuple[Array, Array, Array] | None:
    rows, actions = message
    if not len(rows):
        return None
    stepped = [environments[row].step(action) for row, action in zip(rows, actions, strict=True)]
    observations, success, unstable = zip(*stepped, strict=True)
    return np.array(observations), np.array(success), np.array(unstable)
