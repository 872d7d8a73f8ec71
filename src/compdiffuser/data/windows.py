"""Training windows of H states, drawn on the device from flat arrays and never across the end of an episode.

Padding repeats an episode's first or last state, so that short episodes and windows at rest can be learned too. Drawing
is a handful of tensor operations without a word to the host, so that a captured CUDA graph can contain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.types import Episodes, UserError


@dataclass(frozen=True, eq=False)
class Windows:
    """All windows of a dataset. Window w of an episode begins w − front states after the episode does."""

    states: torch.Tensor
    """[S, D], normalized."""
    starts: torch.Tensor
    """[E] first row of each episode."""
    lengths: torch.Tensor
    """[E] states in each episode."""
    ends: torch.Tensor
    """[E] cumulative number of windows up to and including each episode."""
    total: int
    """Number of windows."""
    horizon: int
    front: int
    stride: int

    @classmethod
    def from_episodes(
        cls,
        episodes: Episodes,
        dims: Sequence[int],
        normalizer: Normalizer,
        horizon: int,
        front_padding: int = 0,
        back_padding: int = 0,
        device: torch.device | str = "cpu",
        stride: int = 1,
    ) -> Windows:
        """Windows of every `stride`-th state; an episode of L states has max(L + front + back − (H−1)·stride, 0)."""
        if horizon < 1 or stride < 1 or front_padding < 0 or back_padding < 0:
            given = f"H {horizon}, stride {stride}, padding {front_padding} and {back_padding}"
            raise UserError(f"windows need H and stride of at least 1 and no negative padding, not {given}")
        width = episodes.observations.shape[1]
        if wrong := [dim for dim in dims if not 0 <= dim < width]:
            raise UserError(f"observations have dimensions 0 to {width - 1}, there is no dimension {wrong[0]}")
        lengths = torch.as_tensor(episodes.lengths.copy(), dtype=torch.int64)
        counts = (lengths + front_padding + back_padding - (horizon - 1) * stride).clamp(min=0)
        if int(counts.sum()) == 0:
            span = (horizon - 1) * stride + 1
            raise UserError(
                f"no episode is long enough for windows of H {horizon} ({span} states): the longest has "
                f"{int(lengths.max())} states and {front_padding + back_padding} of padding"
            )
        states = torch.as_tensor(episodes.observations[:, list(dims)], dtype=torch.float32)
        return cls(
            states=normalizer.normalize(states).to(device),
            starts=torch.as_tensor(episodes.starts.copy(), dtype=torch.int64).to(device),
            lengths=lengths.to(device),
            ends=counts.cumsum(0).to(device),
            total=int(counts.sum()),
            horizon=horizon,
            front=front_padding,
            stride=stride,
        )

    def __len__(self) -> int:
        return self.total

    def sample(self, n: int, generator: torch.Generator | None = None) -> torch.Tensor:
        """[n, H, D] windows, each drawn uniformly from all windows."""
        return self.at(torch.randint(self.total, (n,), device=self.states.device, generator=generator))

    def at(self, index: torch.Tensor) -> torch.Tensor:
        """[n, H, D] windows with the given numbers [n], from 0 to len − 1, on the device."""
        return self.states[self.rows(index)]

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """[n, H] rows of `states` (and of the dataset's flat arrays) that make up the given windows [n]."""
        episode = torch.searchsorted(self.ends, index, right=True)  # [n]; an episode without windows is passed over
        last = self.lengths[episode]
        # Windows of the episodes before this one; what is left of the number counts within the episode.
        before = torch.where(episode > 0, self.ends[(episode - 1).clamp(min=0)], 0)
        first = index - before - self.front
        steps = torch.arange(self.horizon, device=index.device) * self.stride
        within = (first[:, None] + steps).clamp(min=0)  # the first state, repeated
        within = torch.minimum(within, last[:, None] - 1)  # the last state, repeated
        return self.starts[episode][:, None] + within
