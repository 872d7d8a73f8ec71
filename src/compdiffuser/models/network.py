"""The contract of an architecture: a config that checks itself and builds a network.

A network maps channels of every state and features of the whole row to one output per state:
(inputs [M, H, C], features [M, F]) -> [M, H, D].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional

MOST_WIDTH, MOST_DEPTH = 16_384, 256
"""Sizes that no network here has; a config that a stranger wrote may name any."""


LEAST_ROWS = 16
"""Rows of a product from which on a CPU sums each of them in the same order, however many there are."""


def padded(features: Tensor) -> Tensor:
    """Features [M, F] with rows of zeros below, where there are few and a CPU would sum them in another order.

    A row then has the same bits alone and among others; whoever pads takes the first M rows of what comes of it.
    """
    missing = LEAST_ROWS - features.shape[0]  # which stays a symbol where a graph is made for any number of rows
    return functional.pad(features, (0, 0, 0, missing)) if missing > 0 and features.device.type == "cpu" else features


class Network(nn.Module):
    """inputs [M, H, C], features [M, F] -> [M, H, D]"""

    any_rows: ClassVar[bool] = True
    """Whether one compiled program serves batches of any size; of others, each size takes half a minute to compile."""

    def compiled_parts(self) -> Iterable[nn.Module]:
        """The modules to compile one by one; equal ones share a program."""
        return [self]


@dataclass(frozen=True)
class NetworkConfig(ABC):
    """The sizes of one architecture; each has a config of its own, with its fields and their defaults."""

    architecture: ClassVar[str]
    """Its name in `ARCHITECTURES`."""

    width: int
    """Size of the row's features inside the network."""

    @property
    @abstractmethod
    def grain(self) -> int:
        """A chunk must be a multiple of this many states."""

    @abstractmethod
    def build(self, channels: int, dim: int, features: int, horizon: int) -> Network:
        """A network from C channels per state and F features per row to D outputs per state, for chunks of H states."""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"architecture": self.architecture, **asdict(self)}
