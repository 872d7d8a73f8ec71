"""E worlds stepped side by side, in this process or spread over worker processes that live as long as the pool.

A step sends one message to each worker with the actions of all its worlds, so the cost of talking does not grow with
E. What a world does depends only on its problem and the actions, never on which worker runs it.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import numpy as np

from compdiffuser.domains import Domain, World
from compdiffuser.evaluation.problems import Problem
from compdiffuser.runs import end_with
from compdiffuser.shortages import WorkerError, shortage
from compdiffuser.types import Array, UserError


class Step(NamedTuple):
    observations: Array
    """[E, obs]"""
    success: Array
    """[E] bool, the world's own test."""
    unstable: Array
    """[E] bool, the simulation blew up; the episode cannot go on."""


class EnvironmentPool:
    """Worlds of one domain in lockstep; use it as a context manager, so that its workers end.

    `workers` processes (None: as many as there are CPU cores) run them; with 0 they run in this process.
    """

    def __init__(self, domain: Domain, workers: int | None = None) -> None:
        if workers is not None and workers < 0:
            raise UserError(f"the number of worker processes is at least 0, not {workers}")
        if domain.make is None:
            raise UserError(f"'{domain.name}' has no simulator, so there is nothing to run a policy in")
        self.domain = domain
        self.observations = np.zeros((0, 0))
        """[E, obs], the latest of every episode."""
        count = (os.cpu_count() or 1) if workers is None else workers
        self._hosts: list[_Host] = [_Worker(domain) for _ in range(count)] or [_Worlds(domain)]

    def reset(self, problems: Sequence[Problem]) -> tuple[Array, Array]:
        """Start E = len(problems) episodes: observations [E, obs] and goals [E, obs]."""
        for problem in problems:
            problem.check(self.domain)
        replies = self._ask("reset", [[problems[e] for e in mine] for mine in self._shares(len(problems))])
        begun = np.concatenate([reply[0] for reply in replies if len(reply[0])])
        # A world may begin in whole numbers; where its steps lead is written into the same array.
        self.observations = begun if begun.dtype.kind == "f" else begun.astype(np.float64)
        return self.observations.copy(), np.concatenate([reply[1] for reply in replies if len(reply[1])])

    def step(self, actions: Array, active: Array) -> Step:
        """Advance the `active` [E] episodes by `actions` [E, act]; the others keep their last observation."""
        shares = self._shares(len(self.observations))
        success, unstable = np.zeros(len(active), bool), np.zeros(len(active), bool)
        messages = [(np.flatnonzero(active[mine]), actions[mine][active[mine]]) for mine in shares]
        for mine, (rows, _), reply in zip(shares, messages, self._ask("step", messages), strict=True):
            if len(rows):
                episodes = np.asarray(mine)[rows]
                self.observations[episodes], success[episodes], unstable[episodes] = reply
        return Step(self.observations.copy(), success, unstable)

    @property
    def worlds(self) -> list[World]:
        """The worlds that run in this process, episode by episode; none where workers run them."""
        return [world for host in self._hosts if isinstance(host, _Worlds) for world in host.worlds]

    def close(self) -> None:
        """Close the worlds and end the workers."""
        for host in self._hosts:
            host.close()
        self._hosts = []

    def __enter__(self) -> EnvironmentPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _shares(self, episodes: int) -> list[list[int]]:
        """The episodes of each host: contiguous, as even as can be."""
        return [part.tolist() for part in np.array_split(np.arange(episodes), len(self._hosts))]

    def _ask(self, command: str, messages: list[Any]) -> list[Any]:
        """Send each host its message, then collect all replies."""
        asked, replies, failures = [], [], []
        for host, message in zip(self._hosts, messages, strict=True):
            try:
                host.send(command, message)
                asked.append(host)
            except WorkerError as error:
                failures.append(error)
        for host in asked:  # all of them, so that the next message does not meet an old reply
            try:
                replies.append(host.receive())
            except WorkerError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return replies


class _Host(Protocol):
    """Where worlds run. One message is sent, then its reply is received."""

    def send(self, command: str, message: Any) -> None: ...

    def receive(self) -> Any: ...

    def close(self) -> None: ...


class _Worlds:
    """Worlds in this process, opened as they are needed and reused."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.worlds: list[World] = []
        self._reply: Any = None

    def send(self, command: str, message: Any) -> None:
        self._reply = self._reset(message) if command == "reset" else self._step(*message)

    def receive(self) -> Any:
        return self._reply

    def close(self) -> None:
        while self.worlds:
            self.worlds.pop().close()

    def _reset(self, problems: Sequence[Problem]) -> tuple[Array, Array]:
        while len(self.worlds) < len(problems):
            self.worlds.append(self.domain.open())
        begun = [problem.begin(world) for problem, world in zip(problems, self.worlds, strict=False)]
        return np.array([observation for observation, _ in begun]), np.array([goal for _, goal in begun])

    def _step(self, rows: Array, actions: Array) -> tuple[Array, Array, Array] | None:
        if not len(rows):
            return None
        stepped = [self.worlds[row].step(action) for row, action in zip(rows, actions, strict=True)]
        observations, success, unstable = zip(*stepped, strict=True)
        return np.array(observations), np.array(success), np.array(unstable)


class _Worker:
    """Worlds in a process of their own, which gets the domain itself: it need not be registered there."""

    def __init__(self, domain: Domain) -> None:
        try:
            packed = pickle.dumps(domain)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UserError(
                f"'{domain.name}' cannot be sent to worker processes ({error}); "
                "define its parts at the top of a module, or use 0 workers"
            ) from None
        self.name = domain.name
        # spawn: a forked child of a process that already uses threads or a GPU can hang.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, packed, os.getpid()), daemon=True)
        self.process.start()
        theirs.close()

    def send(self, command: str, message: Any) -> None:
        try:
            self.connection.send((command, message))
        except OSError as error:
            raise self._died() from error

    def receive(self) -> Any:
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        if kind == "error":
            raise WorkerError(f"{self.name} failed in a worker process: {content}")
        return content

    def close(self) -> None:
        self.connection.close()
        self.process.join(timeout=2)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()

    def _died(self) -> WorkerError:
        self.process.join(timeout=0.2)
        code = self.process.exitcode
        how = "" if code is None else f" with exit code {code}; if memory ran out, use fewer workers or episodes"
        return WorkerError(f"a worker process of {self.name} died{how}")


def _where(error: Exception) -> str:
    """An error and its place, in a line."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({os.path.basename(last.filename)}:{last.lineno})"


def _serve(connection: Connection, packed: bytes, parent: int) -> None:
    """A worker: answer until the pool hangs up, or its process ends."""
    end_with(parent)
    worlds: _Worlds | None = None
    try:
        while True:
            command, message = connection.recv()
            try:
                worlds = worlds or _Worlds(pickle.loads(packed))
                worlds.send(command, message)
                reply = ("done", worlds.receive())
            except Exception as error:
                reply = ("error", shortage(error) or _where(error))
            connection.send(reply)
    except (EOFError, OSError, KeyboardInterrupt):
        return
    finally:
        if worlds is not None:
            worlds.close()
