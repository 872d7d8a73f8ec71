"""What to say of data before anything is trained on it: each a sentence, or nothing where all is well."""

from __future__ import annotations

import numpy as np

from compdiffuser.presets import ChunkConfig
from compdiffuser.types import Array, Episodes

MOST_PADDING = 0.5
"""Share of the states in windows that may be copies of an episode's first or last one without a word."""


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


def _padded(lengths: Array, span: int, front: int, back: int) -> float:
    """Share of the states in windows of `span` steps that are padding."""
    states = copies = 0
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        first = np.arange(-front, length + back - span + 1)
        real = np.minimum(first + span, length) - np.maximum(first, 0)
        states += count * span * len(first)
        copies += count * int((span - np.maximum(real, 0)).sum())
    return copies / states if states else 0.0
