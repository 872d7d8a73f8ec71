"""Ways where several things move: the agent walks to a thing, then takes it along to where it has to be.

A graph over the places of all things at once would need landmarks for every pair of places. But what moves only near
the agent moves along ways of its own, and the agent follows it: so a roadmap for each group is enough. Things that have
to move are fetched one after the other; things that move by themselves go their way meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from compdiffuser.planning.recorded.calibration import Calibration
from compdiffuser.planning.recorded.moves import MOVED, Moves, split_groups
from compdiffuser.planning.recorded.support import Support
from compdiffuser.planning.roads.landmarks import nearest
from compdiffuser.planning.roads.roadmap import Clear, Roadmap, landmarks_for, length, paced

STATES_APART = 0.02  # normalized distance between the states of a way
PUSHES = 32  # segments that tell from where a thing is moved


@dataclass(frozen=True)
class Carrying:
    """A roadmap for each position group, the agent's first."""

    roadmaps: tuple[Roadmap, ...]
    moves: tuple[Moves, ...]
    sizes: tuple[int, ...]
    """Numbers that each group has."""
    pushes: tuple[tuple[Tensor, Tensor], ...]
    """For each group but the agent, of segments [n] in which it moved: its place and displacement [n, 2·size], and how
    far the agent was from it as they began [n, size]."""

    @classmethod
    def through(cls, support: Support, moves: Sequence[Moves], landmarks: int | None = None) -> Carrying:
        """The roadmaps of the recorded segments of each group, of things those in which they moved."""
        roadmaps, pushes = [], []
        agents = support.group(0).chunk(3, dim=1)[0]
        for number in range(len(support.sizes)):
            segments = support.group(number)
            first, _, last = segments.chunk(3, dim=1)
            moved = (last - first).norm(dim=1) > MOVED
            # The agent moves in nearly all segments, and as many as for an agent alone will do.
            chosen = segments[moved] if number and moved.any() else segments[:: len(support.sizes)]
            roadmaps.append(Roadmap.through(Support(chosen, ()), landmarks))
            if number:
                shared = min(agents.shape[1], first.shape[1])
                away = torch.zeros_like(first)
                away[:, :shared] = agents[:, :shared] - first[:, :shared]
                pushes.append((torch.cat([first, last - first], dim=1)[moved], away[moved]))
        return cls(tuple(roadmaps), tuple(moves), support.sizes, tuple(pushes))

    def tensors(self) -> list[Tensor]:
        """What tells it from another."""
        return [tensor for roadmap in self.roadmaps for tensor in roadmap.tensors()]

    @property
    def radius(self) -> float:
        """Within which each of the agent's recorded places has a landmark."""
        return self.roadmaps[0].radius

    def cleared(self, clears: Sequence[Clear]) -> Carrying:
        """The same without the edges that are not free by each group's test."""
        roadmaps = tuple(roadmap.cleared([clear]) for roadmap, clear in zip(self.roadmaps, clears, strict=True))
        return replace(self, roadmaps=roadmaps)

    def dearer(self, way: Tensor, times: float) -> Carrying:
        """The same, but edges beside each group's way cost so many times more."""
        parts = split_groups(way, self.sizes)
        return replace(
            self, roadmaps=tuple(r.dearer(part, times) for r, part in zip(self.roadmaps, parts, strict=True))
        )

    def ways(self, starts: Tensor, goals: Tensor) -> list[Tensor | None]:
        """A way [n, P] from each of the starts [S, P] to its goal, both included; None where none leads."""
        problems = zip(starts, goals, strict=True)
        errands = [Errand(split_groups(start, self.sizes), split_groups(goal, self.sizes)) for start, goal in problems]
        for number in range(1, len(self.sizes)):
            asked = [errand for errand in errands if self.moves[number].carried and errand.moves(number)]
            carries = self._along(number, [(errand.here[number], errand.goal[number]) for errand in asked])
            behind = [self._behind(number, carry) for carry in carries]
            places = [errand.agent_at(place) for errand, place in zip(asked, behind, strict=True)]
            # Where agents have been: a place beside a thing may lie in a wall.
            agents = self.roadmaps[0].landmarks
            reached = list(agents[nearest(torch.stack(places), agents)]) if places else []
            walks = self._along(0, [(errand.here[0], place) for errand, place in zip(asked, reached, strict=True)])
            for errand, walk, carry in zip(asked, walks, carries, strict=True):
                errand.fetch(number, walk, carry)
        # In the end the agent and what moves by itself go to their goals; an agent that is near goes straight.
        near = max((moves.near for moves in self.moves if moves.carried), default=MOVED)
        rests = [
            self._along(
                number, [(errand.here[number], errand.goal[number]) for errand in errands], MOVED if number else near
            )
            for number in range(len(self.sizes))
        ]
        return [errand.ended(rest) for errand, *rest in zip(errands, *rests, strict=True)]

    def _behind(self, number: int, carry: Tensor | None) -> Tensor:
        """The place [size] from which the agent begins to move a thing along its way [n, size].

        Of recorded segments in which it moved from about there in about that direction, the agent's place that lay
        most directly behind it, about as far as usual.
        """
        known, away = self.pushes[number - 1]
        if carry is None or not len(known):
            return self.roadmaps[number].landmarks[0]  # there is no way anyhow
        far = known[:, carry.shape[1] :].norm(dim=1).median()
        onwards = carry[(carry - carry[0]).norm(dim=1) <= far][-1] - carry[0]
        wanted = torch.cat([carry[0], onwards])
        close = (known - wanted).norm(dim=1).topk(min(PUSHES, len(known)), largest=False).indices
        lengths = away[close].norm(dim=1)
        along = (away[close] @ onwards) / (lengths * onwards.norm()).clamp(min=1e-9)  # −1: right behind
        usual = self.moves[number].usual
        unusual = (lengths < 0.5 * usual) | (lengths > 1.5 * usual)
        return carry[0] + away[close[(along + 2 * unusual).argmin()]]

    def _along(
        self, number: int, ends: Sequence[tuple[Tensor, Tensor]], straight: float = MOVED
    ) -> list[Tensor | None]:
        """For each pair of places, the way [n, size] of one group between them, in states about `STATES_APART` apart.

        Places no further apart than `straight` are joined by a straight line.
        """
        far = [pair for pair in ends if not _within(straight, *pair)]
        found = iter(self.roadmaps[number].ways(*map(torch.stack, zip(*far, strict=True))) if far else ())
        ways = [torch.stack(pair) if _within(straight, *pair) else next(found) for pair in ends]
        return [None if way is None else paced(way, 2 + int(length(way) / STATES_APART)) for way in ways]


class Errand:
    """One problem on its way: where everything is by now, and the way so far."""

    def __init__(self, start: Sequence[Tensor], goal: Sequence[Tensor]) -> None:
        self.here, self.goal = list(start), goal
        self._pieces: list[list[Tensor]] = [[place[None]] for place in start]
        """Of each group, parts of its way; equal numbers of states."""
        self._lost = False

    def moves(self, number: int) -> bool:
        """Whether a thing is not yet where it has to be."""
        return not _within(MOVED, self.here[number], self.goal[number])

    def fetch(self, number: int, walk: Tensor | None, carry: Tensor | None) -> None:
        """The agent walks to a place behind a thing, and then follows it as far behind as it goes its way."""
        if walk is None or carry is None:
            self._lost = True
            return
        followed = torch.stack([self.agent_at(place) for place in carry])
        apart = torch.stack([walk[-1], followed[0]])
        behind = 2 + int(length(apart) / STATES_APART)
        path = torch.cat([walk, paced(apart, behind)[1:], followed[1:]])[: len(walk) - 1 + len(carry)]
        for other, place in enumerate(self.here):
            self._pieces[other].append(place.expand(len(path), -1))
        waiting = carry[:1].expand(len(walk) - 1, -1)
        self._pieces[0][-1], self._pieces[number][-1] = path, torch.cat([waiting, carry])
        self.here[0], self.here[number] = path[-1], carry[-1]

    def ended(self, rest: Sequence[Tensor | None]) -> Tensor | None:
        """The whole way [n, P], ended by the `rest` [n, size] of each group; None where a part of it is missing."""
        known = [way for way in rest if way is not None]
        if self._lost or len(known) < len(rest):
            return None
        most = max(map(len, known))
        last = [paced(way, most) for way in known]
        return torch.cat([torch.cat([*parts, end]) for parts, end in zip(self._pieces, last, strict=True)], dim=1)

    def agent_at(self, place: Tensor) -> Tensor:
        """The agent's place [size] where a thing's is [size]; what it does not tell stays as it is."""
        agent = self.here[0].clone()
        shared = min(len(agent), len(place))
        agent[:shared] = place[:shared]
        return agent


def roadmap_of(support: Support, usual: Calibration, finer: int = 1) -> Roadmap | Carrying:
    """The roadmap of what one thing, or several, did, with so many times as many landmarks as usual."""
    landmarks = finer * landmarks_for(support)
    if support.sizes:
        return Carrying.through(support, usual.groups, landmarks)
    return Roadmap.through(support, landmarks)


def _within(distance: float, here: Tensor, there: Tensor) -> bool:
    return bool((here - there).norm() <= distance)
