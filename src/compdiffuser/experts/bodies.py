"""n bodies that follow commands: episodes, redrawn commands, and the transitions that learners learn from.

Each body has a random generator of its own, so that what happens does not depend on how bodies are spread over
processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.layout import Layout, moment, transition
from compdiffuser.experts.tasks import task_of, view
from compdiffuser.experts.worlds import WORLDS
from compdiffuser.types import Array


class Bodies:
    """n bodies of one kind; `rows` [n, ·] holds their last transitions, `now` [n, ·] where they are."""

    def __init__(self, config: ExpertConfig, seeds: Sequence[np.random.SeedSequence]) -> None:
        self.config, self.task = config, task_of(config)
        self.world = WORLDS[config.body](len(seeds))
        self.rngs = [np.random.default_rng(seed) for seed in seeds]
        self.steps = np.zeros(len(seeds), int)
        self.commands = np.zeros((len(seeds), 2))
        for number in range(len(seeds)):
            self._start(number, None)
        self._look()
        self.moments, self.transitions = self._layouts()
        self.now = np.zeros((len(seeds), self.moments.width), np.float32)
        self.rows = np.zeros((len(seeds), self.transitions.width), np.float32)
        self._tell(np.zeros(len(seeds), bool))

    def _layouts(self) -> tuple[Layout, Layout]:
        seen = self.seen.shape[1]
        moments = moment(seen, self.observed.shape[1])
        return moments, transition(seen, self.world.actions, self.task.ingredients)

    def step(self, actions: Array, told: Array | None = None) -> None:
        """Act [n, act]. With commands `told` [n, 2] nothing is redrawn, and no episode ends."""
        if told is not None:
            self.commands[:] = told
        before, seen, frame, headings = self.observed, self.seen, self.frame, self.headings
        self.world.advance(actions)
        self.steps += 1
        self._look()
        broken = self.world.broken(self.observed)
        if broken.any():  # nothing can be learned from it: as if the body had stayed, and the episode is over
            kept = (before, seen, frame, headings)
            for mine, old in zip((self.observed, self.seen, self.frame, self.headings), kept, strict=True):
                mine[broken] = old[broken]
        over = broken | self.task.ends(self.observed)
        self._keep(before, seen, frame, actions, over)
        ended = broken if told is not None else over | (self.steps >= self.config.episode_steps)
        self._go_on(ended, redrawn=told is None)
        self._tell(ended)

    def restart(self, pose: str) -> None:
        """Start all episodes anew."""
        for number in range(len(self.rngs)):
            self._start(number, pose)
        self._look()
        self._tell(np.ones(len(self.rngs), bool))

    def state(self) -> dict[str, Any]:
        """All that the next steps depend on, one row, or one entry of a list, for each body."""
        drawn = [rng.bit_generator.state for rng in self.rngs]
        told = {"steps": self.steps.copy(), "commands": self.commands.copy(), "now": self.now.copy()}
        return {"physics": self.world.states(), **told, "drawn": drawn}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave, with as many bodies."""
        self.world.restore(state["physics"])
        for rng, drawn in zip(self.rngs, state["drawn"], strict=True):
            rng.bit_generator.state = drawn
        self.steps[:], self.commands[:] = state["steps"], state["commands"]
        self._look()
        self.now[:] = state["now"]

    def _keep(self, before: Array, seen: Array, frame: Array, actions: Array, over: Array) -> None:
        """Write the transitions."""
        parts = {
            "view": seen,
            "following": self.seen,
            "action": actions,
            "command": self.task.relative(self.commands, before),
            "displacement": self.task.anchor(self.observed) - self.task.anchor(before),
            "frame": frame[:, None],
            "next_frame": self.frame[:, None],
            "ingredients": self.task.measure(before, self.observed),
            "going_on": 1.0 - over[:, None],
        }
        for name, part in parts.items():
            self.transitions.part(self.rows, name)[:] = part

    def _go_on(self, ended: Array, redrawn: bool) -> None:
        """New commands, and new episodes."""
        for number, rng in enumerate(self.rngs):
            if ended[number]:
                self._start(number, None)
            elif redrawn and self._redraws(number, rng):
                self.commands[number] = self.task.draw(self.observed[number], rng)
        if ended.any():
            self._look()

    def _redraws(self, number: int, rng: np.random.Generator) -> bool:
        due = self.steps[number] % self.config.redraw == 0
        return bool(due or (self.config.redraw_chance and rng.random() < self.config.redraw_chance))

    def _start(self, number: int, pose: str | None) -> None:
        rng, poses = self.rngs[number], self.world.starts
        if pose is None:
            stands = len(poses) == 1 or rng.random() < self.config.standing_starts
            pose = poses[0] if stands else poses[1]
        self.world.start(number, rng, pose)
        self.steps[number] = 0
        self.commands[number] = self.task.draw(self.world.observations()[number], rng)

    def _look(self) -> None:
        self.observed, self.headings = self.world.observations(), self.world.headings()
        self.seen, frame = view(self.config, self.observed, self.headings)
        self.frame = np.zeros(len(self.seen)) if frame is None else frame

    def _tell(self, ended: Array) -> None:
        parts = {
            "view": self.seen,
            "command": self.task.relative(self.commands, self.observed),
            "frame": self.frame[:, None],
            "heading": self.headings[:, None],
            "ended": ended[:, None],
            "observation": self.observed,
        }
        for name, part in parts.items():
            self.moments.part(self.now, name)[:] = part
