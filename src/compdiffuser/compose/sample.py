"""The denoising loop, the only one: every order, schedule, step rule, guidance and chain length uses `sample`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from compdiffuser.checks import is_finite
from compdiffuser.compose.averaging import Averaged, tied
from compdiffuser.compose.chains import Chains
from compdiffuser.compose.noise import gaussian
from compdiffuser.compose.orders import Order
from compdiffuser.compose.schedule import Schedule, Unguided
from compdiffuser.compose.steps import Estimate, StepRule, euler
from compdiffuser.diffusion.conditions import Conditions, Denoise
from compdiffuser.types import UserError

INITIAL = 2**20  # the noise stream's step for initial samples, beyond any schedule

Steer = Callable[[Tensor, Tensor, Tensor], Tensor]
"""`steer(x₀ [m, H, D], rows [m], σ [m]) -> x₀ [m, H, D]`: estimates, moved to where they are wanted."""

Loop = Callable[..., Tensor]
"""The whole loop as a function of tensors: `loop(*inputs) -> x₀ [M, H, D]`."""

Whole = Callable[[Hashable, int, Callable[[], Loop], Sequence[Tensor]], Tensor]
"""`whole(structure, rounds, loop, inputs) -> loop()(*inputs)`: runs a loop of so many rounds, as it likes.

The first input has M rows. Loops of one structure differ in what their inputs hold alone, and look at none of it, so
that one can be recorded and replayed for another.
"""


@torch.no_grad()
def sample(
    denoise: Denoise,
    chains: Chains,
    schedule: Schedule,
    order: Order,
    *,
    horizon: int,
    overlap: int,
    guidance: float = 1.0,
    rule: StepRule = euler,
    unguided: Unguided = "nothing",
    hold: bool = False,
    clamp: bool = False,
    below: Callable[[Tensor], Tensor] | None = None,
    initial: Tensor | None = None,
    steer: Steer | None = None,
    held: tuple[Tensor, Tensor] | None = None,
    watch: Callable[[int, int, Tensor], None] | None = None,
    whole: Whole | None = None,
) -> Tensor:
    """Denoise all chunks of all chains together: x₀ [M, H, D].

    `rule` is an entry of `STEPS`. `initial` [M, H, D] are samples at level `schedule.sigma[0]`; by default they are
    pure noise. `unguided`, `hold` and `clamp` are those of `SamplerConfig`; with `below`, a chunk at level σ is told
    that a neighbour ahead of it is at below(σ). `steer` moves every estimate of x₀ before it is used. `held` are rows
    [M] that are finished, and what they are [M, H, D]: they get noise and lose it as the others do, but are not
    denoised. `watch` is called with (round, rounds, estimate of x₀ [M, H, D]) after every round. `whole`, such as
    `Runner.whole`, runs the loop where nothing looks into it: no `steer`, `held` or `watch`, and Euler's rule.
    Raises UserError for a guidance that is not finite.
    """
    check_guidance(guidance)

    def prepared() -> Loop:
        rounds = order.rounds(len(schedule))

        def loop(
            start: Tensor, goal: Tensor, key: Tensor, sigma: Tensor, keep: Tensor, noise: Tensor, *begun: Tensor
        ) -> Tensor:
            own, path = replace(chains, start=start, goal=goal, key=key), Schedule(sigma, keep, noise)
            x = begun[0] if begun else _pure_noise(own, path, horizon)
            x = tied(x, x[own.left], own.has_left, overlap) if order.average else x.clone()
            fresh = _fresh(own, horizon, overlap if order.average else None) if schedule.noisy else None
            estimate = _conditioned(
                denoise, own, order, overlap, guidance, unguided, hold=hold, clamp=clamp, below=below, steer=steer,
                held=held,
            )  # fmt: skip
            return _denoised(estimate, x, path, rounds, rule, fresh, watch)

        return loop

    inputs = [chains.start, chains.goal, chains.key, schedule.sigma, schedule.keep, schedule.noise]
    inputs += [] if initial is None else [initial]
    # Heun's rule looks at levels, and `held` at rows.
    if whole is None or not (steer is None and held is None and watch is None and rule is euler):
        return prepared()(*inputs)
    structure = (
        denoise, tuple(chains.lengths.tolist()), tuple(order.offset_on_cpu.tolist()), order.stride, order.average,
        schedule.noisy, horizon, overlap, guidance, unguided, hold, clamp, below,
    )  # fmt: skip
    return whole(structure, order.most_rounds(len(schedule)), prepared, inputs)


def _denoised(
    estimate: Estimate,
    x: Tensor,
    schedule: Schedule,
    rounds: Sequence[tuple[Tensor, Tensor]],
    rule: StepRule,
    fresh: Callable[[Tensor, Tensor], Tensor] | None,
    watch: Callable[[int, int, Tensor], None] | None,
) -> Tensor:
    """The loop itself: x [M, H, D], of which in every round some rows take a step. It never waits for a GPU."""
    level = schedule.sigma[:1].expand(len(x)).clone()
    latest = torch.zeros_like(x)
    for index, (rows, step) in enumerate(rounds):
        clean, moved = rule(estimate, x, level, rows, schedule.keep[step])
        x[rows] = moved if fresh is None else moved + schedule.noise[step][:, None, None] * fresh(rows, step)
        level[rows] = schedule.sigma[step + 1]
        if watch is not None:
            latest[rows] = clean
            watch(index, len(rounds), latest)
    return x


def _pure_noise(chains: Chains, schedule: Schedule, horizon: int) -> Tensor:
    """Unit-variance noise of the variance-preserving process, in this scale. [M, H, D]"""
    step = torch.full_like(chains.key, INITIAL)
    return (1 + schedule.sigma[0] ** 2).sqrt() * gaussian(chains.key, step, horizon, chains.start.shape[-1])


def _fresh(chains: Chains, horizon: int, shared: int | None) -> Callable[[Tensor, Tensor], Tensor]:
    """Noise of chosen rows [m] at their steps [m]: [m, H, D]; neighbours have the same in `shared` states."""

    def drawn(rows: Tensor, step: Tensor) -> Tensor:
        return gaussian(chains.key[rows], step, horizon, chains.start.shape[-1])

    if shared is None:
        return drawn
    return lambda rows, step: tied(drawn(rows, step), drawn(chains.left[rows], step), chains.has_left[rows], shared)


def _conditioned(
    denoise: Denoise,
    chains: Chains,
    order: Order,
    overlap: int,
    guidance: float,
    unguided: Unguided,
    *,
    hold: bool,
    clamp: bool,
    below: Callable[[Tensor], Tensor] | None,
    steer: Steer | None,
    held: tuple[Tensor, Tensor] | None,
) -> Estimate:
    """The estimate of x₀ of chosen rows, by what they are told; averaged with neighbours where the order is."""

    def estimate(x: Tensor, level: Tensor, rows: Tensor) -> Tensor:
        conditions = _conditions(x, level, chains, rows, overlap, neighbours=not order.average)
        if below is not None:
            conditions = _told(conditions, level[rows], below)
        clean = guided(denoise, x[rows], level[rows], conditions, guidance, unguided)
        if clamp:
            clean = clean.clamp(-1, 1)
        if hold:
            clean = conditions.held(clean)
        return clean if steer is None else steer(clean, rows, level[rows])

    moving = estimate if held is None else partial(_moving, estimate, *held)
    return Averaged(moving, chains, overlap) if order.average else moving


def check_guidance(weight: float) -> None:
    """Raises UserError for a guidance that is not finite."""
    if not is_finite(weight):
        raise UserError(f"guidance must be a finite number, not {weight!r}")


def _moving(estimate: Estimate, held: Tensor, known: Tensor, x: Tensor, level: Tensor, rows: Tensor) -> Tensor:
    """The estimate of rows of which some are `held`, and `known` as they are."""
    clean = known[rows]
    free = (~held[rows]).nonzero()[:, 0]
    if len(free):
        clean[free] = estimate(x, level, rows[free])
    return clean


def noised(clean: Tensor, chains: Chains, sigma: Tensor | float) -> Tensor:
    """Finished chunks [M, H, D] with noise of level σ added: an `initial` for `sample`."""
    return clean + sigma * gaussian(chains.key, torch.full_like(chains.key, INITIAL), *clean.shape[1:])


def guided(
    denoise: Denoise, x: Tensor, sigma: Tensor, conditions: Conditions, weight: float, unguided: Unguided = "nothing"
) -> Tensor:
    """Classifier-free guidance: x₀(nothing) + w·(x₀(conditions) − x₀(nothing)).

    With `unguided` "ends", the chunk that is told nothing of its neighbours still knows its start and goal.
    """
    if weight == 1.0:
        return denoise(x, sigma, conditions)
    both = Conditions.cat([conditions, conditions.alone() if unguided == "ends" else conditions.dropped()])
    conditioned, free = denoise(torch.cat([x, x]), torch.cat([sigma, sigma]), both).chunk(2)
    return free + weight * (conditioned - free)


def _told(conditions: Conditions, sigma: Tensor, below: Callable[[Tensor], Tensor]) -> Conditions:
    """Conditions of rows at level σ [M] whose neighbours, where they are ahead, are said to be at below(σ)."""
    lower = below(sigma)
    left, right = conditions.left_sigma, conditions.right_sigma
    return replace(
        conditions,
        left_sigma=torch.where(left < sigma, lower, left),
        right_sigma=torch.where(right < sigma, lower, right),
    )


def _conditions(x: Tensor, level: Tensor, chains: Chains, rows: Tensor, overlap: int, neighbours: bool) -> Conditions:
    """The conditions of chosen rows: their neighbours as they are in x, or their chain's start and goal."""
    has_left, has_right = chains.has_left[rows], chains.has_right[rows]
    before, after = chains.left[rows], chains.right[rows]
    dtype = x.dtype
    return Conditions(
        left=x[before, x.shape[1] - overlap :],
        left_sigma=level[before],
        right=x[after, :overlap],
        right_sigma=level[after],
        start=chains.start[rows],
        goal=chains.goal[rows],
        has_left=has_left.to(dtype) * neighbours,
        has_right=has_right.to(dtype) * neighbours,
        has_start=(~has_left).to(dtype),
        has_goal=(~has_right).to(dtype),
    )
