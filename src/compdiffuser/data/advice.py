"""What to say of data before anything is trained on it: each a sentence, or nothing where all is well."""

from __future__ import annotations

import numpy as np

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.domains.space import Space
from compdiffuser.presets import ChunkConfig
from compdiffuser.types import Array, Episodes, counted

JUMP, USUAL = 10, 0.95
"""A step that is so many times as long as this share of all steps is a jump."""
COARSE = 0.1
"""Share of a usual step below which the spacing of float32 goes without a word."""
MOST_PADDING = 0.5
"""Share of the states in windows that may be copies of an episode's first or last one without a word."""
BEYOND = 0.1
"""In units of a normalizer, how far outside its limits a state counts as outside, as with starts and goals."""
SEVERAL, MOSTLY = 0.001, 0.5
"""Shares of the states that may lie outside a planner's limits without a word, and at all."""


def on_windows(episodes: Episodes, chunks: ChunkConfig) -> list[str]:
    """Sentences on chunks that do not fit the episodes: mostly padding, or episodes that are left out."""
    span = (chunks.horizon - 1) * chunks.stride + 1
    padding = chunks.front_padding + chunks.back_padding
    median = float(np.median(episodes.lengths))
    told = []
    short = int((episodes.lengths + padding < span).sum())
    if 0 < short < len(episodes):
        told.append(
            f"{short:,} of {len(episodes):,} episodes are left out: with padding they are shorter than the {span} "
            f"steps of a chunk"
        )
    if (share := _padded(episodes.lengths, span, chunks.front_padding, chunks.back_padding)) > MOST_PADDING:
        told.append(
            f"{share:.0%} of the states in chunks are copies of an episode's first or last one: a chunk takes {span} "
            f"steps, and half of the episodes have {median:g} states or fewer; a smaller --horizon learns more"
        )
    return told


def on_jumps(episodes: Episodes, space: Space) -> list[str]:
    """A sentence on steps within episodes that nothing walks: mostly, an episode that ends there without saying so."""
    places = space.places(space.planned(episodes.observations))
    inside = episodes.inside
    steps = np.where(inside, space.furthest(np.diff(places, axis=0)), 0.0)
    moved = steps[inside & (steps > 0)]
    if not len(moved):
        return []
    jumps = np.flatnonzero(steps > JUMP * np.quantile(moved, USUAL))
    if not len(jumps):
        return []
    row = int(jumps[steps[jumps].argmax()])
    episode = int(np.searchsorted(episodes.starts, row, side="right")) - 1
    where = f"from state {row - episodes.starts[episode]} of episode {episode}, {steps[row]:.3g} m"
    return [
        f"{counted(len(jumps), 'step')} within episodes {'is' if len(jumps) == 1 else 'are'} more than {JUMP} times as "
        f"long as {USUAL:.0%} of all, the longest {where}; if episodes end there, say so in the file"
    ]


def on_precision(episodes: Episodes, space: Space) -> list[str]:
    """A sentence on places so far from the origin, such as a map's eastings, that float32 cannot tell steps apart."""
    planned = space.planned(episodes.observations)
    inside = episodes.inside
    for column in space.columns:
        steps = np.abs(np.diff(planned[:, column]))[inside]
        moved = steps[steps > 0]
        far = np.float32(np.abs(planned[:, column]).max(initial=0))
        spacing = float(np.spacing(far))
        if len(moved) and spacing > COARSE * np.median(moved):
            return [
                f"{space.names[column]} reaches {far:,.0f}, where float32 only knows every {spacing:.2g}: steps are "
                f"rounded; take an offset from all places before they are stored"
            ]
    return []


def on_limits(episodes: Episodes, space: Space, normalizer: Normalizer, whose: str) -> list[str]:
    """A sentence on data outside the limits of a planner that goes on learning from it."""
    share, told = outside(episodes, space, normalizer)
    if not SEVERAL < share <= MOSTLY:  # of more, an error tells
        return []
    return [
        f"{100 * share:.2g}% of the states lie outside the limits of '{whose}', as where {told}: no plan starts or "
        f"ends there; without --begin-with, the limits are this data's own"
    ]


def outside(episodes: Episodes, space: Space, normalizer: Normalizer) -> tuple[float, str]:
    """The share of states outside a normalizer's limits, and which dimension leaves them furthest, in words."""
    planned = space.planned(episodes.observations)
    beyond = np.abs(normalizer.normalize(planned)) - normalizer.limits
    # What never changed before has no units.
    moved = ~np.isclose(planned, np.array(normalizer.low), rtol=1e-4, atol=1e-4)
    beyond = np.where((normalizer.units > 0) | ~moved, beyond, np.inf)
    row, column = np.unravel_index(int(beyond.argmax()), beyond.shape)
    low, high = normalizer.low[column], normalizer.high[column]
    told = f"{space.names[column]} is {planned[row, column]:.4g}, not from {low:.4g} to {high:.4g}"
    return float((beyond > BEYOND).any(axis=1).mean()), told


def _padded(lengths: Array, span: int, front: int, back: int) -> float:
    """Share of the states in windows of `span` steps that are padding."""
    states = copies = 0
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        first = np.arange(-front, length + back - span + 1)
        real = np.minimum(first + span, length) - np.maximum(first, 0)
        states += count * span * len(first)
        copies += count * int((span - np.maximum(real, 0)).sum())
    return copies / states if states else 0.0
