"""The sampler that a planner owns: chains in, finished chunks out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.orders import Order, order
from compdiffuser.compose.sample import Steer, noised, sample
from compdiffuser.compose.schedule import SamplerConfig, Schedule
from compdiffuser.compose.score import consistent
from compdiffuser.compose.steps import step_rule
from compdiffuser.models.runner import Runner

RELEASE = 0.015
"""σ below which nothing leads any more."""
BEGUN = {"cuda": "parallel"}
"""Order, by device, in which chunks are denoised that begin from parents: these agree already, so that a wavefront
helps little, and a GPU takes as long for a round whatever it holds."""
LED_STEPS = 16
"""Noise levels for chunks that are led, at least: postures are found at high levels, places kept down to low ones. Each
is taken once: what is repeated gets finer than its places, and moves as no recorded body does."""


@dataclass(frozen=True)
class Sampler:
    """A denoiser, and how it is walked down."""

    denoise: Runner
    config: SamplerConfig
    blending: str = "exponential"
    """How the chunks of parents are made to agree, before noise is added to them."""
    led: tuple[int, ...] = ()
    """Columns of a state in which parents lead: every estimate has theirs, until little noise is left."""

    def leading(self, columns: tuple[int, ...]) -> Sampler:
        """The same with parents that lead in these columns; with none, as it is."""
        if not columns:
            return self
        finer = replace(self.config, steps=max(self.config.steps, LED_STEPS), repeats=1)
        return replace(self, config=finer, led=columns)

    def __call__(
        self,
        chains: Chains,
        highest: float | None = None,
        parents: Tensor | None = None,
        watch: Callable[[int, int, Tensor], None] | None = None,
        steer: Steer | None = None,
        held: Tensor | None = None,
    ) -> Tensor:
        """Denoise all chunks of all chains: [M, H, D].

        They begin from pure noise or, where there are `parents` [M, H, D], from these with noise up to σ = `highest`,
        or the schedule's next level below. `watch` sees (round, rounds, estimates) after every round. `steer` moves
        estimates; parents of rows that are `held` [M] stay as they are.
        """
        model, config = self.denoise.denoiser.config, self.config
        formulation = self.denoise.denoiser.formulation
        schedule = Schedule.build(formulation.sampling_levels, config, chains.key.device, highest)
        initial = finished = None
        if parents is not None:
            agreed = consistent(parents, chains, model.overlap, self.blending)
            initial = noised(agreed, chains, schedule.sigma[0])
            finished = None if held is None else (held, agreed)
            steer = _led(agreed, list(self.led), steer) if self.led else steer
        return sample(
            self.denoise, chains, schedule, self._order(parents is not None)(chains), horizon=model.horizon,
            overlap=model.overlap, guidance=config.guidance, initial=initial, watch=watch,
            rule=step_rule(config.rule), unguided=config.unguided, hold=config.hold, clamp=config.clamp,
            below=formulation.below if config.told == "step" else None, steer=steer, held=finished,
            whole=self.denoise.whole,
        )  # fmt: skip

    def _order(self, begun: bool) -> Callable[[Chains], Order]:
        """The order that is asked for; that of `BEGUN` where chunks begin from parents and the usual one is."""
        usual = self.config.order == SamplerConfig.order
        return order(BEGUN.get(self.denoise.device.type, self.config.order) if begun and usual else self.config.order)


def _led(parents: Tensor, columns: list[int], steer: Steer | None) -> Steer:
    """Estimates that have their parents' columns, and are steered then."""

    def moved(clean: Tensor, rows: Tensor, sigma: Tensor) -> Tensor:
        led = clean.clone()
        leads = (sigma > RELEASE)[:, None, None]
        led[..., columns] = torch.where(leads, parents[rows][..., columns], clean[..., columns])
        return led if steer is None else steer(led, rows, sigma)

    return moved
