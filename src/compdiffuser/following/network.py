"""Inverse dynamics: the action that takes a body from where it is towards a planned state h steps ahead.

The body's own state comes without x and y, and the planned state relative to the body, so that what was learned in one
corner of a maze holds in all. In the frame of the heading, both are turned, and what was learned of one direction holds
in all. With several horizons h is an input too: asking for the same place in fewer steps asks for a faster walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from compdiffuser.checks import between, typed, whole, widths
from compdiffuser.domains import BODIES, PLANE, Body, Space
from compdiffuser.domains.space import Group
from compdiffuser.types import Array, UserError

MOST_NUMBERS = 4_096
"""Of an observation and of an action."""
MOVES = 0.3
"""Metres; what a plan moves less than that counts as staying."""


@dataclass(frozen=True)
class InverseDynamicsConfig:
    """Sizes of the network and what it sees."""

    observation: int
    """Dimensions of an observation, x and y included."""
    action: int
    body: str = "point"
    """A key of `BODIES`."""
    space: Space = PLANE
    """What a planned state is."""
    horizons: tuple[int, int] = (4, 28)
    """Least and most steps ahead. Where they are equal, h is no input: the paper's network."""
    hidden: tuple[int, ...] = (512, 512, 512)
    dropout: float = 0.0
    frame: Literal["world", "heading"] = "world"
    """The frame of what the network sees: the world's, or one that faces as the body does."""
    free: float = 0.0
    """Share of samples without the agent's own target, where something else is to move; whether it is left out is an
    input then. How an ant gets a ball to its place is not for a plan to say."""

    def __post_init__(self) -> None:
        if self.frame not in ("world", "heading"):
            raise UserError(f"a controller's frame is 'world' or 'heading', not '{self.frame}'")
        typed(self)
        whole(self, "observation", "action", most=MOST_NUMBERS)
        widths(self, "hidden")
        least, most = self.horizons
        if not 1 <= least <= most <= 10**6:
            raise UserError(f"horizons are at least 1 and in order, not {least} to {most}")
        if self.body not in BODIES:
            raise UserError(f"unknown body '{self.body}'; known bodies: {', '.join(BODIES)}")
        if max(self.space.dims) >= self.observation:
            there = f"observations have {self.observation} dimensions"
            raise UserError(f"{there}, there is no dimension {max(self.space.dims)}")
        if self.frame == "heading" and any(len(columns) < 2 for _, columns in self.space.positions):
            raise UserError(f"what is turned by the heading has x and y, not {self.space.positions}")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout is a share below 1, not {self.dropout}")
        between(self, "free")

    @property
    def several(self) -> bool:
        """Whether h is an input."""
        return self.horizons[0] < self.horizons[1]

    @property
    def frees(self) -> bool:
        """Whether the agent's own target may be left out."""
        return self.free > 0 and len(self.space.positions) > 1

    def to_dict(self) -> dict[str, Any]:
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return plain | {"space": self.space.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> InverseDynamicsConfig:
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return cls(**given | {"space": Space.from_dict(values["space"])})


class InverseDynamics(nn.Module):
    """An MLP with GELU from (body, relative planned state, h) to an action in [−1, 1]."""

    center: Tensor
    """[n] mean of the body's state in the data."""
    spread: Tensor
    """[n] its standard deviation."""
    reach: Tensor
    """[D] standard deviation of the relative planned state."""
    dims: Tensor
    """[D] planned dimensions on the device, so that choosing them does not synchronize with the CPU."""

    def __init__(self, config: InverseDynamicsConfig) -> None:
        super().__init__()
        self.config = config
        self.body: Body = BODIES[config.body]
        planned = len(config.space.dims)
        self.turns = config.frame == "heading"
        if self.turns:
            own = self.body.egocentric(np.zeros((1, config.observation)), np.zeros(1)).shape[1]
            self.first = planned + 2  # after the planned state and the heading
        else:
            own = config.observation - 2
        self.register_buffer("center", torch.zeros(own))
        self.register_buffer("spread", torch.ones(own))
        self.register_buffer("reach", torch.ones(planned))
        dims = tuple(range(planned)) if self.turns else config.space.dims
        self.register_buffer("dims", torch.tensor(dims), persistent=False)
        layers: list[nn.Module] = []
        width = own + planned + int(config.several) + int(config.frees)
        for hidden in config.hidden:
            layers += [nn.Linear(width, hidden), nn.GELU(approximate="tanh")]
            layers += [nn.Dropout(config.dropout)] if config.dropout else []
            width = hidden
        self.network = nn.Sequential(*layers, nn.Linear(width, config.action))

    def see(self, observations: Array, heading: Array | None = None) -> Array:
        """What the network sees of observations [S, obs], float32: in the world's frame, all of them as they are.

        In the heading's frame: the planned state, cos and sin of `heading` [S], and the body as it sees itself.
        """
        if not self.turns:
            return np.asarray(observations, np.float32)
        facing = np.asarray(self.body.heading(observations) if heading is None else heading)
        parts = [
            self.config.space.planned(observations),
            np.cos(facing)[:, None],
            np.sin(facing)[:, None],
            self.body.egocentric(observations, facing),
        ]
        return np.concatenate(parts, axis=1).astype(np.float32)

    def scale_to(self, seen: Tensor, relative: Tensor) -> None:
        """Take center, spread and reach from what is seen [S, w] and relative planned states [S, D]."""
        own = self.own(seen)
        self.center.copy_(own.mean(0))
        self.spread.copy_(own.std(0).clamp(min=1e-3))
        self.reach.copy_(relative.std(0).clamp(min=1e-3))

    def planned(self, seen: Tensor) -> Tensor:
        """Of what is seen [B, w], the dimensions [B, D] that are planned."""
        return seen.index_select(1, self.dims)

    def own(self, seen: Tensor) -> Tensor:
        """Of what is seen [B, w], the body's own state [B, n]."""
        return seen[:, self.first :] if self.turns else self.body.itself(seen)

    def relative(self, seen: Tensor, targets: Tensor) -> Tensor:
        """Planned states [B, D] from where the body is, and as it faces where that is its frame."""
        away = targets - self.planned(seen)
        if not self.turns:
            return away
        cosine, sine = seen[:, self.first - 2], seen[:, self.first - 1]
        columns = list(away.unbind(1))
        for x, y in self._turning(self.body.vectors, self.config.space.positions):
            columns[x], columns[y] = (
                cosine * away[:, x] + sine * away[:, y],
                cosine * away[:, y] - sine * away[:, x],
            )
        # Half of the heading's angle; an orientation and its negative are the same, and the body's is the positive one.
        half, other = ((1 + cosine).clamp(min=0) / 2).sqrt(), ((1 - cosine).clamp(min=0) / 2).sqrt()
        other = torch.where(sine < 0, -other, other)
        for w, x, y, z in self._turning(self.body.orientations):
            side = 1 - 2 * (half * seen[:, w] + other * seen[:, z] < 0).to(away)
            columns[w], columns[x], columns[y], columns[z] = (
                side * (half * away[:, w] + other * away[:, z]),
                side * (half * away[:, x] + other * away[:, y]),
                side * (half * away[:, y] - other * away[:, x]),
                side * (half * away[:, z] - other * away[:, w]),
            )
        return torch.stack(columns, 1)

    def _turning(self, known: Sequence[tuple[int, ...]], groups: Sequence[Group] = ()) -> list[tuple[int, ...]]:
        """Columns of a planned state that turn together: what of the body's is planned as a whole, and `groups`."""
        dims = self.config.space.dims
        planned = [tuple(map(dims.index, each)) for each in known if set(each) <= set(dims)]
        return list(dict.fromkeys([*((x, y) for _, (x, y, *_) in groups), *planned]))

    def moves(self, seen: Tensor, targets: Tensor) -> Tensor:
        """[B] bool: planned states [B, D] ask for something besides the agent to be moved."""
        away = targets - self.planned(seen)
        others = [
            torch.stack([away[:, column] for column in columns]).norm(dim=0)
            for _, columns in self.config.space.positions[1:]
        ]
        return (torch.stack(others) > MOVES).any(0)

    def forward(self, seen: Tensor, targets: Tensor, horizons: Tensor, free: Tensor | None = None) -> Tensor:
        """What is seen [B, w], planned states [B, D] and steps ahead [B] → actions [B, act].

        Where `free` [B], the agent's own target is left out.
        """
        relative = self.relative(seen, targets) / self.reach
        own = (self.own(seen) - self.center) / self.spread
        least, most = self.config.horizons
        inputs = [own.clamp(-10, 10), relative]
        if self.config.several:
            inputs.append((2 * (horizons[:, None].to(own) - least) / (most - least) - 1).clamp(-1, 1))
        if self.config.frees:
            kept = torch.ones_like(own[:, :1]) if free is None else 1 - free[:, None].to(own)
            agent = self.config.space.positions[0].columns
            columns = [column * kept if c in agent else column for c, column in enumerate(relative.split(1, 1))]
            inputs[1:2] = [*columns, 2 * kept - 1]
        return self.network(torch.cat(inputs, -1))
