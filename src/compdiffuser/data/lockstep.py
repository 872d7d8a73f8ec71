"""Several episodes at a time in one process, a step of each after the other, and a steersman asked once for all.

A network takes hardly longer for ten observations than for one. An episode never depends on those beside it: a
steersman is always shown the same number of rows, and a lane's question always stands in the same one, because the last
digits of a matrix product may depend on both.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

import numpy as np

from compdiffuser.data.recording import Question
from compdiffuser.types import Array

Result = TypeVar("Result")


def lockstep(lanes: Sequence[Generator[Question, Array, Result]]) -> list[Result]:
    """Run all lanes to their ends and return what each returned. A lane records one episode or, in turn, several."""
    finished: dict[int, Result] = {}
    desks: dict[int, Desk] = {}
    turns: list[tuple[int, Array | None]] = [(lane, None) for lane in range(len(lanes))]
    while turns:
        for lane, action in turns:
            try:
                question = next(lanes[lane]) if action is None else lanes[lane].send(action)
            except StopIteration as end:
                finished[lane] = end.value
                continue
            key = id(question.steersman)
            if key not in desks:
                desks[key] = Desk(question, len(lanes))
            desks[key].ask(lane, question)
        turns = [answer for desk in desks.values() for answer in desk.answers()]
    return [finished[lane] for lane in range(len(lanes))]


def alone(episode: Generator[Question, Array, Result]) -> Result:
    """What one episode by itself returns."""
    return lockstep([episode])[0]


class Desk:
    """Where the questions to one steersman lie: a row for each lane. Rows of lanes that do not ask are not read."""

    def __init__(self, first: Question, rows: int) -> None:
        self.steersman = first.steersman
        self.observations = np.zeros((rows, len(first.observation)))
        self.commands = np.zeros((rows, len(first.command)))
        self.asking: list[int] = []

    def ask(self, lane: int, question: Question) -> None:
        self.observations[lane], self.commands[lane] = question.observation, question.command
        self.asking.append(lane)

    def answers(self) -> list[tuple[int, Array]]:
        """Lanes that asked, each with its action [act]."""
        if not self.asking:
            return []
        actions, asking = self.steersman.act(self.observations, self.commands), self.asking
        self.asking = []
        return [(lane, actions[lane]) for lane in asking]
