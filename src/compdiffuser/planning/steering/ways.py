"""Ways through the data for plans that are steered: round regions, through waypoints, several that differ.

All of it is asked of the roadmap that scaffolds come from. Edges that enter a region are taken out; a way through
waypoints is found leg by leg; and another way is the cheapest one after the edges beside all earlier ways have become
dear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from compdiffuser.planning.recorded.moves import split_groups
from compdiffuser.planning.roads.carrying import Carrying
from compdiffuser.planning.roads.roadmap import Roadmap, length, paced
from compdiffuser.planning.steering.ground import Ground
from compdiffuser.planning.steering.steering import Course, Steering, cost_of
from compdiffuser.types import Array

WAYS_APART = 4.0  # radii of the roadmap that two ways lie apart somewhere, at least
DEARER = 4.0  # how many times more edges beside an earlier way cost
TRIES = 3  # ways looked for, for each that is wanted
POINTS = 256  # of a way, where two are compared
PREFERABLE = 4  # ways among which the one of the lowest cost is chosen


@dataclass(frozen=True)
class Way:
    """A way through the data."""

    places: Tensor
    """[n, P], normalized."""
    marks: tuple[float, ...] = ()
    """For each waypoint the share of the way after which it is passed."""


@dataclass(frozen=True)
class Route:
    """What the data knows of one problem that is steered."""

    way: Tensor | None
    """[n, P], normalized; None where no way is known."""
    course: Course


@dataclass(frozen=True)
class Steered:
    """A roadmap under a steering."""

    roadmap: Roadmap | Carrying
    ground: Ground
    steering: Steering

    @classmethod
    def through(cls, roadmap: Roadmap | Carrying, ground: Ground, steering: Steering, start: Array) -> Steered:
        """Without the edges that enter a region, as seen from a start [D]."""
        if not steering.walled or not steering.routed:
            return cls(roadmap, ground, steering)
        clears = [ground.clear(steering, number, start) for number in range(len(ground.space.positions))]
        return cls(roadmap.cleared(clears), ground, steering)

    def ways(self, start: Tensor, goal: Tensor, count: int = 1) -> list[Way]:
        """Up to `count` ways from a start [P] to a goal [P] that differ; the cheapest first, or the most preferred."""
        roadmap, found = self.roadmap, list[Way]()
        for _ in range(1 if count == 1 else TRIES * count):
            way = self._way(roadmap, start, goal)
            if way is None:
                break
            if all(differ(way.places, other.places, WAYS_APART * roadmap.radius) for other in found):
                found.append(way)
            if len(found) == count:
                break
            roadmap = roadmap.dearer(paced(way.places, POINTS), DEARER)
        return found

    def preferred(self, ways: Sequence[Way]) -> list[Way]:
        """The same ways, those of the lowest cost first."""
        prefer = self.steering.prefer
        if prefer is None or len(ways) < 2 or not self.ground.space.only_positions:
            return list(ways)
        paths = torch.stack([paced(way.places, POINTS, self.ground.space.sizes) for way in ways])
        costs = cost_of(prefer, self.ground.normalizer.denormalize(paths)).tolist()
        return [ways[place] for place in sorted(range(len(ways)), key=lambda place: costs[place])]

    def _way(self, roadmap: Roadmap | Carrying, start: Tensor, goal: Tensor) -> Way | None:
        """The cheapest way, leg by leg; None where one of them leads nowhere."""
        here, legs = start, []
        for there in (*self._stops(), lambda _: goal):
            (leg,) = roadmap.ways(here[None], there(here)[None])
            if leg is None:
                return None
            legs.append(leg)
            here = leg[-1]
        # As states at an even pace are spread over it.
        return Way(torch.cat(legs), _marks([length(leg, self.ground.space.sizes) for leg in legs]))

    def _stops(self) -> list[Callable[[Tensor], Tensor]]:
        """For each waypoint, where everything is to be when it is passed, from where everything was before."""
        stops: list[Callable[[Tensor], Tensor]] = []
        for stop in self.steering.via:
            group = self.ground.passing(stop)
            number = self.ground.space.positions.index(group)
            place = self.ground.normalized(stop.place, group)

            def there(here: Tensor, number: int = number, place: Tensor = place) -> Tensor:
                parts = [part.clone() for part in split_groups(here, self.ground.space.sizes)]
                parts[number] = place
                if number:  # what takes it there comes along
                    shared = min(len(parts[0]), len(place))
                    parts[0][:shared] = place[:shared]
                return torch.cat(parts)

            stops.append(there)
        return stops


@dataclass(frozen=True)
class Router:
    """Finds the courses of problems that are steered."""

    ground: Ground
    roadmaps: Callable[[bool], Roadmap | Carrying | None]
    """The roadmap or, asked with True, one with more landmarks; None where no segments are known."""
    scaffolds: bool
    """Whether plans can begin from a way; otherwise they are held to it at first."""

    def routes(self, steering: Steering, start: Array, places: Tensor, goal: Tensor, count: int = 1) -> list[Route]:
        """Up to `count` courses from a start [D], whose places are [P], to the places of a goal [P]."""
        ways, closed = self._ways(steering, start, places, goal, count)
        if not ways:
            stops = [self.ground.normalized(stop.place, self.ground.passing(stop)) for stop in steering.via]
            first, last = (split_groups(each, self.ground.space.sizes)[0] for each in (places, goal))
            agents = [stop for stop in stops if len(stop) == len(first)]
            marks = straight([first, *agents, last]) if len(agents) == len(stops) else ()
            return [Route(None, Course(steering, marks if len(marks) == len(stops) else _even(len(stops))))]
        held = not self.scaffolds
        return [Route(way.places, Course(steering, way.marks, closed, way.places if held else None)) for way in ways]

    def _ways(
        self, steering: Steering, start: Array, places: Tensor, goal: Tensor, count: int
    ) -> tuple[list[Way], bool]:
        """Ways, and whether they are closed by what is to be avoided."""
        roadmap = self.roadmaps(False)
        if roadmap is None:
            return [], False
        wanted = max(count, PREFERABLE) if steering.prefer is not None else count
        steered = Steered.through(roadmap, self.ground, steering, start)
        ways = steered.ways(places, goal, wanted)
        if ways or not (steering.walled and steering.routed):
            return steered.preferred(ways)[:count], False
        # Between few landmarks a narrow way is easily overlooked.
        finer = self.roadmaps(True)
        ways = Steered.through(finer, self.ground, steering, start).ways(places, goal, wanted) if finer else []
        if ways:
            return steered.preferred(ways)[:count], False
        return Steered(roadmap, self.ground, steering).ways(places, goal), True


def _even(count: int) -> tuple[float, ...]:
    return tuple((number + 1) / (count + 1) for number in range(count))


def straight(stops: Sequence[Tensor]) -> tuple[float, ...]:
    """Marks of waypoints on straight lines through places [P], the first and the last of which are the ends."""
    return _marks([float((there - here).norm()) for here, there in pairwise(stops)])


def _marks(lengths: Sequence[float]) -> tuple[float, ...]:
    """After which share of a way each of its legs but the last ends."""
    return tuple(sum(lengths[: number + 1]) / max(sum(lengths), 1e-9) for number in range(len(lengths) - 1))


def differ(first: Tensor, second: Tensor, apart: float) -> bool:
    """Whether two ways [n, P] lie further apart than that somewhere."""
    far = torch.cdist(paced(first, POINTS), paced(second, POINTS))
    return float(torch.maximum(far.amin(dim=0).amax(), far.amin(dim=1).amax())) > apart
