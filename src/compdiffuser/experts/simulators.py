"""Simulators in processes: many bodies in each, numbers in shared memory, one word per step through a pipe.

Processes are forked before CUDA is touched. They end with their parent, so that a killed run leaves none behind.
"""

from __future__ import annotations

import ctypes
import multiprocessing as mp
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from compdiffuser.experts.bodies import Bodies
from compdiffuser.experts.config import ExpertConfig
from compdiffuser.runs import end_with
from compdiffuser.shortages import WorkerError, shortage
from compdiffuser.types import Array, UserError

DONE, STATE = "done", "state"
"""What a process says when its bodies took their step, and what it is asked for otherwise."""
ARRAYS = ("physics", "steps", "commands", "now")
"""Parts of the bodies' state."""


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Simulators:
    """E bodies. `now` [E, ·], `rows` [E, ·] and `told` [E, 2] are read and written between steps only."""

    def __init__(
        self,
        config: ExpertConfig,
        seed: int,
        count: int | None = None,
        processes: int | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """`state` is what `state` gave of as many bodies; without one, they start episodes drawn from `seed`."""
        if processes is not None and processes < 0:
            raise UserError(f"the number of processes is at least 0, not {processes}")
        self.count = count or config.environments
        seeds = np.random.SeedSequence(seed).spawn(self.count)
        probe = Bodies(config, seeds[:1])
        self.moments, self.transitions = probe.moments, probe.transitions
        processes = min(cores() if processes is None else processes, self.count)
        context: Any = mp.get_context("fork" if sys.platform == "linux" else "spawn")
        shapes = {"now": self.moments.width, "rows": self.transitions.width, "actions": probe.world.actions, "told": 2}
        memory = {name: context.RawArray(ctypes.c_float, self.count * width) for name, width in shapes.items()}
        blocks = {name: _array(raw, self.count) for name, raw in memory.items()}
        self.now, self.rows, self.actions, self.told = blocks.values()
        self.own = Share(config, seeds, blocks, state) if processes == 0 else None
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        for mine in np.array_split(np.arange(self.count), processes) if processes else ():
            share = slice(int(mine[0]), int(mine[-1]) + 1)
            begun = None if state is None else {name: each[share] for name, each in state.items()}
            self._fork(context, (config, seeds[share], memory, self.count, share, begun, os.getpid()))
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def begin(self, actions: Array, *, told: bool = False) -> None:
        """Start a step of all bodies with actions [E, act]; `told`: follow the commands in `told` and go on."""
        self.actions[:] = actions
        self._say("told" if told else "step")

    def finish(self) -> None:
        """Wait until all bodies took their step."""
        self._wait()

    def step(self, actions: Array, *, told: bool = False) -> None:
        self.begin(actions, told=told)
        self.finish()

    def restart(self, pose: str) -> None:
        """Start all episodes anew in a pose."""
        self._say(f"restart {pose}")
        self._wait()

    def state(self) -> dict[str, Any]:
        """All that the next steps of all bodies depend on: arrays [E, ·], and a list of E entries."""
        if self.own is not None:
            return self.own.bodies.state()
        self._say(STATE)
        self._wait()
        shares: list[dict[str, Any]] = [pipe.recv() for pipe in self.pipes]
        joined: dict[str, Any] = {name: np.concatenate([each[name] for each in shares]) for name in ARRAYS}
        return joined | {"drawn": [drawn for each in shares for drawn in each["drawn"]]}

    def part(self, name: str) -> Array:
        """A part of `now`, copied."""
        return self.moments.part(self.now, name).copy()

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.terminate()
            process.join()
        self.pipes, self.processes = [], []

    def __enter__(self) -> Simulators:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _fork(self, context: Any, arguments: tuple[Any, ...]) -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, *arguments), daemon=True)
        with warnings.catch_warnings():  # torch may have threads by now; the child uses neither
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        self.pipes.append(ours)
        self.processes.append(process)

    def _say(self, word: str) -> None:
        if self.own is not None:
            self.own.obey(word)
        for pipe in self.pipes:
            with suppress(OSError):  # of a process that ended; it is missed when it does not answer
                pipe.send_bytes(word.encode())

    def _wait(self) -> None:
        for pipe in self.pipes:
            try:
                said = pipe.recv_bytes().decode()
            except (EOFError, OSError):
                raise WorkerError("a process with simulators ended; if memory ran out, use fewer of them") from None
            if said != DONE:
                raise WorkerError(f"a process with simulators failed: {said}")


class Share:
    """Some of the bodies, and their part of the shared memory."""

    def __init__(
        self,
        config: ExpertConfig,
        seeds: list[np.random.SeedSequence],
        blocks: dict[str, Array],
        state: Mapping[str, Any] | None,
    ) -> None:
        self.bodies, self.blocks = Bodies(config, seeds), blocks
        if state is not None:
            self.bodies.restore(state)
        self._show()

    def obey(self, word: str) -> None:
        if word.startswith("restart"):
            self.bodies.restart(word.split()[1])
        else:
            self.bodies.step(self.blocks["actions"], self.blocks["told"] if word == "told" else None)
        self._show()

    def _show(self) -> None:
        self.blocks["now"][:], self.blocks["rows"][:] = self.bodies.now, self.bodies.rows


def _array(raw: Any, count: int) -> Array:
    return np.frombuffer(raw, np.float32).reshape(count, -1)


def _work(
    pipe: Connection, config: ExpertConfig, seeds: list[Any], memory: dict[str, Any], count: int, mine: slice,
    state: dict[str, Any] | None, parent: int,
) -> None:  # fmt: skip
    """The life of a process: a step, or another word, until there is no one to speak to."""
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    try:
        share = Share(config, seeds, {name: _array(raw, count)[mine] for name, raw in memory.items()}, state)
        pipe.send_bytes(DONE.encode())
        while True:
            word = pipe.recv_bytes().decode()
            if word != STATE:
                share.obey(word)
            pipe.send_bytes(DONE.encode())
            if word == STATE:
                pipe.send(share.bodies.state())
    except Exception as error:
        if shortage(error) is None and not isinstance(error, EOFError | OSError):  # nobody is there to speak to
            traceback.print_exc()
        with suppress(OSError):
            pipe.send_bytes((shortage(error) or f"{type(error).__name__}: {error}").encode())
