"""Training windows of H states, drawn on the device from flat arrays and never across the end of an episode.

Padding repeats an episode's first or last state, so that short episodes and windows at rest can be learned too. Drawing
is a handful of tensor operations that do not synchronize with the CPU, so that a captured CUDA graph can contain them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.domains.space import Space
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
    space: Space
    """What the dimensions mean."""

    @classmethod
    def from_episodes(
        cls,
        episodes: Episodes,
        space: Space,
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
        lengths = torch.as_tensor(episodes.lengths.copy(), dtype=torch.int64)
        counts = (lengths + front_padding + back_padding - (horizon - 1) * stride).clamp(min=0)
        if int(counts.sum()) == 0:
            span = (horizon - 1) * stride + 1
            raise UserError(
                f"no episode is long enough for windows of H {horizon} ({span} states): the longest has "
                f"{int(lengths.max())} states and {front_padding + back_padding} of padding"
            )
        states = torch.as_tensor(space.planned(episodes.observations), dtype=torch.float32)
        return cls(
            states=normalizer.normalize(states).to(device),
            starts=torch.as_tensor(episodes.starts.copy(), dtype=torch.int64).to(device),
            lengths=lengths.to(device),
            ends=counts.cumsum(0).to(device),
            total=int(counts.sum()),
            horizon=horizon,
            front=front_padding,
            stride=stride,
            space=space,
        )

    def __len__(self) -> int:
        return self.total

    def held_out(self, share: float, generator: torch.Generator) -> tuple[Windows, Windows]:
        """Windows of most episodes, and of a `share` of them that was drawn; a single episode stands on both sides."""
        counts = self.ends.diff(prepend=self.ends.new_zeros(1))
        numbers = counts.nonzero()[:, 0]
        if len(numbers) < 2:
            return self, self
        shuffled = numbers[torch.randperm(len(numbers), generator=generator, device=numbers.device)]
        held = min(max(1, round(share * len(numbers))), len(numbers) - 1)
        return self._of(shuffled[held:].sort().values, counts), self._of(shuffled[:held].sort().values, counts)

    def folds(self, count: int, generator: torch.Generator) -> list[tuple[Windows, Windows]]:
        """Windows of most episodes and of the others, up to `count` times: each episode is among the others once."""
        counts = self.ends.diff(prepend=self.ends.new_zeros(1))
        numbers = counts.nonzero()[:, 0]
        if len(numbers) < 2:
            return [(self, self)]
        shuffled = numbers[torch.randperm(len(numbers), generator=generator, device=numbers.device)]
        parts = shuffled.tensor_split(min(count, len(numbers)))
        return [
            (
                self._of(shuffled[~torch.isin(shuffled, part)].sort().values, counts),
                self._of(part.sort().values, counts),
            )
            for part in parts
        ]

    def _of(self, episodes: torch.Tensor, counts: torch.Tensor) -> Windows:
        """The windows of some episodes [n], of which there are `counts` [E] each."""
        ends = counts[episodes].cumsum(0)
        return replace(
            self, starts=self.starts[episodes], lengths=self.lengths[episodes], ends=ends, total=int(ends[-1])
        )  # fmt: skip

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
