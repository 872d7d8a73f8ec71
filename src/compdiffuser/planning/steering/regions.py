"""Regions of the world that a plan keeps out of: discs, boxes, polygons, and the walls of a map.

A region is its signed distance in metres: how far a place lies outside, below 0 inside. Everything that steers a plan
asks for that number alone, and its gradient points out of the region. A region concerns everything that moves, or one
position group, such as the ball. Regions that say nothing about a place's z reach from the floor to the sky.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from compdiffuser.checks import brief, is_finite
from compdiffuser.planning.steering.geometry import crossing, like, to_boxes
from compdiffuser.types import Array, UserError

MOST_CORNERS = 1_000


@dataclass(frozen=True)
class Region(ABC):
    """A part of the world; subclasses say where it lies."""

    kind: ClassVar[str] = ""
    """Its name on the command line."""

    @property
    def group(self) -> str | None:
        """The position group that it concerns; None: everything that moves."""
        return getattr(self, "of", None)

    @property
    def axes(self) -> int:
        """How many numbers of a place it needs."""
        return 2

    @abstractmethod
    def distance(self, places: Tensor) -> Tensor:
        """Metres from places [..., n] to the region, below 0 inside: [...]."""

    @abstractmethod
    def numbers(self) -> list[float]:
        """What its text says after its kind."""

    def outline(self) -> Array | None:
        """[n, 2], for pictures; None where it has none that is closed."""
        return None

    @property
    def parts(self) -> tuple[Region, ...]:
        """This region and those that it is made of."""
        return (self,)

    def __str__(self) -> str:
        """As on the command line, such as "disc:12,8,2" or "box:0,0,1,1@ball"."""
        written = ",".join(f"{number:.12g}" for number in self.numbers())
        return f"{self.kind}:{written}" + (f"@{self.group}" if self.group else "")


@dataclass(frozen=True)
class Disc(Region):
    """All places within a radius of its centre; a ball, where the centre has three numbers."""

    kind: ClassVar[str] = "disc"
    center: tuple[float, ...]
    radius: float
    of: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _place(self.center, "the centre of a disc"))
        if not is_finite(self.radius) or self.radius <= 0:
            raise UserError(f"the radius of a disc is a number above 0, not {brief(self.radius)}")

    @property
    def axes(self) -> int:
        return len(self.center)

    def distance(self, places: Tensor) -> Tensor:
        center = like(self.center, places)
        return (places[..., : len(center)] - center).norm(dim=-1) - self.radius

    def numbers(self) -> list[float]:
        return [*self.center, self.radius]

    def outline(self) -> Array:
        angles = np.linspace(0, 2 * np.pi, 96)
        x, y, *_ = self.center
        return np.stack([x + self.radius * np.cos(angles), y + self.radius * np.sin(angles)], axis=1)


@dataclass(frozen=True)
class Box(Region):
    """All places between two corners."""

    kind: ClassVar[str] = "box"
    low: tuple[float, ...]
    high: tuple[float, ...]
    of: str | None = None

    def __post_init__(self) -> None:
        first, second = _place(self.low, "a corner of a box"), _place(self.high, "a corner of a box")
        if len(first) != len(second) or any(a == b for a, b in zip(first, second, strict=True)):
            raise UserError(f"a box has two opposite corners, not {list(first)} and {list(second)}")
        object.__setattr__(self, "low", tuple(map(min, first, second)))
        object.__setattr__(self, "high", tuple(map(max, first, second)))

    @property
    def axes(self) -> int:
        return len(self.low)

    def distance(self, places: Tensor) -> Tensor:
        return to_boxes(places, like((self.low,), places), like((self.high,), places))[..., 0]

    def numbers(self) -> list[float]:
        return [*self.low, *self.high]

    def outline(self) -> Array:
        (x0, y0, *_), (x1, y1, *_) = self.low, self.high
        return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])


@dataclass(frozen=True)
class Polygon(Region):
    """All places inside a line through its corners, which may turn either way but not cross itself."""

    kind: ClassVar[str] = "polygon"
    corners: tuple[tuple[float, float], ...]
    of: str | None = None

    def __post_init__(self) -> None:
        if not 3 <= len(self.corners) <= MOST_CORNERS:
            raise UserError(f"a polygon has 3 to {MOST_CORNERS} corners, not {len(self.corners)}")
        corners = tuple(_place(corner, "a corner of a polygon", (2,)) for corner in self.corners)
        object.__setattr__(self, "corners", corners)
        if (meeting := crossing(np.array(corners))) is not None:
            first, second = (list(corners[side]) for side in meeting)
            raise UserError(f"the polygon crosses itself: its sides from {first} and from {second} meet")

    def distance(self, places: Tensor) -> Tensor:
        begin = like(self.corners, places)  # [n, 2]
        along = begin.roll(-1, dims=0) - begin
        away = places[..., None, : begin.shape[1]] - begin  # [..., n, 2]
        share = ((away * along).sum(dim=-1) / along.square().sum(dim=-1)).clamp(0, 1)
        apart = (away - share[..., None] * along).norm(dim=-1).amin(dim=-1)
        # Inside where a ray to the right crosses an odd number of sides.
        y, y0, y1 = places[..., None, 1], begin[:, 1], begin[:, 1] + along[:, 1]
        crossed = (y0 > y) != (y1 > y)
        x = begin[:, 0] + (y - y0) / torch.where(y0 == y1, torch.ones_like(y0), y1 - y0) * along[:, 0]
        inside = (crossed & (places[..., None, 0] < x)).sum(dim=-1) % 2 == 1
        return torch.where(inside, -apart, apart)

    def numbers(self) -> list[float]:
        return [number for corner in self.corners for number in corner]

    def outline(self) -> Array:
        return np.array(self.corners)


@dataclass(frozen=True)
class Derived(Region):
    """A region made of another one, with its dimensions and its numbers."""

    region: Region

    def __post_init__(self) -> None:
        check_region(self.region)

    @property
    def group(self) -> str | None:
        return self.region.group

    @property
    def axes(self) -> int:
        return self.region.axes

    def numbers(self) -> list[float]:
        return self.region.numbers()

    @property
    def parts(self) -> tuple[Region, ...]:
        return (self, *self.region.parts)


@dataclass(frozen=True)
class Outside(Derived):
    """Everything but a region: a room is `Outside(Polygon(…))`, and its shelves are regions of their own."""

    kind: ClassVar[str] = "outside"

    def distance(self, places: Tensor) -> Tensor:
        return -self.region.distance(places)

    def __str__(self) -> str:
        return f"{self.kind}:{self.region}"


@dataclass(frozen=True)
class Grown(Derived):
    """A region and everything within a margin of it; a margin around another one is their sum."""

    margin: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_margin(self.margin)
        if isinstance(self.region, Grown):
            object.__setattr__(self, "margin", self.margin + self.region.margin)
            object.__setattr__(self, "region", self.region.region)

    def distance(self, places: Tensor) -> Tensor:
        return self.region.distance(places) - self.margin

    def __str__(self) -> str:
        return f"{self.region}~{self.margin:.12g}"


KINDS: dict[str, Callable[[list[float], str | None], Region]] = {
    "disc": lambda numbers, of: Disc(tuple(numbers[:-1]), numbers[-1], of),
    "box": lambda numbers, of: Box(tuple(numbers[: len(numbers) // 2]), tuple(numbers[len(numbers) // 2 :]), of),
    "polygon": lambda numbers, of: Polygon(tuple(zip(numbers[::2], numbers[1::2], strict=True)), of),
}
"""Regions that can be written as text."""
WRITTEN = "disc:x,y,r, box:x0,y0,x1,y1 or polygon:x,y,x,y,…, and perhaps @ with the name of what must keep out of it"


def region(text: str) -> Region:
    """The region of a text such as "disc:12,8,2", or "disc:12,8,2~0.5" with a margin. Raises UserError for others."""
    kind, _, rest = str(text).partition(":")
    rest, near, margin = rest.partition("~")
    written, _, of = rest.partition("@")
    try:
        if near:
            return Grown(region(f"{kind}:{rest}"), float(margin))
        if kind == Outside.kind and rest.partition(":")[0] in KINDS:
            return Outside(region(rest))
        if kind not in KINDS:
            raise ValueError
        return KINDS[kind]([float(part) for part in written.split(",")], of.strip() or None)
    except ValueError as error:
        told = f": {error}" if isinstance(error, UserError) else ""
        raise UserError(f"a region is written {WRITTEN}, not '{brief(text)}'{told}") from None


def grown(regions: Region | Iterable[Region], margin: float) -> tuple[Region, ...]:
    """The regions with a margin around each. Raises UserError for what is no region, and a margin that is no length."""
    check_margin(margin)
    if isinstance(regions, str) or not isinstance(regions, Region | Iterable):
        raise UserError(f"avoid is a list of regions, not {brief(regions)}")
    given = (regions,) if isinstance(regions, Region) else tuple(regions)
    for each in given:
        check_region(each)
    return tuple(Grown(each, margin) for each in given) if margin else given


def check_region(each: Any) -> None:
    """Raises UserError for what is no region."""
    if not isinstance(each, Region):
        raise UserError(f"a region is a Disc, a Box, a Polygon, Outside or Walls, not {brief(each)}")


def check_margin(margin: float) -> None:
    """Raises UserError for a margin that is no length."""
    if not is_finite(margin) or margin < 0:
        raise UserError(f"a margin is a number of metres from 0 on, not {brief(margin)}")


def writable(each: Region) -> bool:
    """Whether `region` reads what a region writes."""
    inner = bare(each)
    return inner.region.kind in KINDS if isinstance(inner, Outside) else inner.kind in KINDS


def bare(each: Region) -> Region:
    """A region without its margin."""
    return each.region if isinstance(each, Grown) else each


def _place(numbers: Any, what: str, sizes: tuple[int, ...] = (2, 3)) -> tuple[float, ...]:
    try:
        given = () if isinstance(numbers, str) else tuple(float(number) for number in numbers)
    except (TypeError, ValueError):
        given = ()
    if len(given) not in sizes or not all(map(is_finite, given)):
        raise UserError(f"{what} is {' or '.join(map(str, sizes))} finite numbers, not {brief(numbers)}")
    return given
