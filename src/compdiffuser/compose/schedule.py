"""The path of one chunk from noise to data, as three numbers per step.

A step estimates x₀ and moves to x₀ + keep·(x − x₀) + noise·z, which lies at the next step's level. Deterministic DDIM,
stochasticity η and resampling (denoise, add noise back, repeat) differ only in these numbers, so one loop runs them all
and every order and step rule supports them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor

from compdiffuser.checks import between, brief, finite, is_finite, whole
from compdiffuser.compose.orders import order
from compdiffuser.compose.steps import step_rule
from compdiffuser.types import UserError

Unguided = Literal["nothing", "ends"]
Told = Literal["level", "step"]


@dataclass(frozen=True)
class SamplerConfig:
    """How a plan is denoised."""

    steps: int = 10
    """N, noise levels walked down."""
    eta: float = 1.0
    """Stochasticity: 0 is DDIM, 1 is ancestral sampling."""
    repeats: int = 8
    """R, times each step inside the resampling window is taken."""
    window: tuple[float, float] = (0.5, 8.0)
    """Noise levels σ between which steps are repeated."""
    guidance: float = 1.0
    """Classifier-free guidance weight; 1 asks the conditioned denoiser only."""
    order: str = "autoregressive"
    """A key of `compose.ORDERS`."""
    rule: str = "euler"
    """A key of `compose.STEPS`."""
    unguided: Unguided = "nothing"
    """What guidance leads away from: chunks that are told nothing, or their start and goal alone."""
    fresh: bool = True
    """Whether the noise that η asks for is added; without it, steps lead further down than their levels say."""
    hold: bool = False
    """Write start and goal over the first and last state of every estimate."""
    clamp: bool = False
    """Keep every estimate inside the limits of the data."""
    told: Told = "level"
    """What a chunk is told of a neighbour that is ahead of it: its noise level, or the one that is a training step
    below the chunk's own, where the model was trained on steps."""

    def __post_init__(self) -> None:
        whole(self, "steps", "repeats")
        between(self, "eta")
        finite(self, "guidance")
        order(self.order)
        step_rule(self.rule)
        for name, names in (("unguided", get_args(Unguided)), ("told", get_args(Told))):
            if (value := getattr(self, name)) not in names:
                raise UserError(f"{name} must be one of {', '.join(names)}, not {brief(value)}")
        for name in ("fresh", "hold", "clamp"):
            if not isinstance(getattr(self, name), bool):
                raise UserError(f"{name} must be true or false, not {brief(getattr(self, name))}")
        window = self.window
        if not (isinstance(window, tuple | list) and len(window) == 2 and all(map(is_finite, window))):
            raise UserError(f"the resampling window must be two finite numbers, not {window!r}")
        if window[0] > window[1]:
            raise UserError(f"the resampling window must be given as low, high, not {window!r}")
        object.__setattr__(self, "window", tuple(window))

    @classmethod
    def paper(cls, order: str = "autoregressive") -> SamplerConfig:
        """The paper's sampler: 50 steps of deterministic DDIM, each taken once, with guidance.

        The paper names the orders; all else is from its authors' code.
        """
        return cls(
            steps=50, eta=0.0, repeats=1, guidance=2.0, order=order, hold=True, clamp=True, told="step"
        )  # fmt: skip

    @classmethod
    def authors(cls, order: str = "autoregressive") -> SamplerConfig:
        """The sampler of the authors' code: η = 1 without its noise, and guidance that leaves start and goal alone."""
        return replace(cls.paper(order), eta=1.0, fresh=False, unguided="ends")


@dataclass(frozen=True)
class Schedule:
    """S steps; a row at step s has level `sigma[s]`, and `sigma[S]` is 0. Tensors are float32 on one device."""

    sigma: Tensor
    """[S + 1]"""
    keep: Tensor
    """Share of the estimated noise kept. [S]"""
    noise: Tensor
    """Standard deviation of fresh noise. [S]"""
    noisy: bool = True
    """Whether any step adds fresh noise."""

    def __len__(self) -> int:
        return len(self.keep)

    @classmethod
    def build(
        cls,
        levels: Callable[[int], Tensor],
        config: SamplerConfig,
        device: torch.device | str,
        highest: float | None = None,
    ) -> Schedule:
        """Walk `levels(N)` down, repeating each step whose level lies in the window R times.

        With `highest`, levels above it are left out: a schedule for samples that need little more denoising. It starts
        at the next level below, or at `highest` itself where that level is less than a tenth of it.
        """
        ladder = levels(config.steps).double()
        if highest is not None:
            ladder = ladder[ladder <= highest]
            if ladder[0] < highest / 10:
                ladder = torch.cat([ladder.new_tensor([highest]), ladder])
        low, high = config.window
        before, after, arrival = [], [], []
        for sigma, lower in zip(ladder[:-1].tolist(), ladder[1:].tolist(), strict=True):
            times = config.repeats if low <= sigma <= high else 1
            before += [sigma] * times
            after += [lower] * times
            arrival += [sigma] * (times - 1) + [lower]
        start, end, arrive = (torch.tensor(column, dtype=torch.float64) for column in (before, after, arrival))
        fresh = config.eta * end * (1 - (end / start) ** 2).clamp(min=0).sqrt()
        keep = (end**2 - fresh**2).clamp(min=0).sqrt() / start
        # Climbing back up to the level where the step is taken again adds the variance in between.
        added = fresh if config.fresh else torch.zeros_like(fresh)
        noise = (added**2 + (arrive**2 - end**2).clamp(min=0)).sqrt()
        sigma = torch.cat([start, start.new_zeros(1)])
        walked, share, spread = (column.float().to(device) for column in (sigma, keep, noise))
        return cls(walked, share, spread, noisy=bool(noise.any()))
