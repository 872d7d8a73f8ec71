"""Decision Diffuser (DD): one diffusion model of whole plans, from start to goal in a single chunk.

Ajay et al., Is Conditional Generative Modeling All You Need for Decision Making? (2023). To the composition loop it is
the chain of K = 1 chunk with H states and no neighbours, so training, sampling, scoring and following are the
planner's own; only the preset differs. Episodes shorter than a plan are padded: their last state is repeated. A plan
through several episodes is in no window, and nothing at test time adds it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compdiffuser.compose.merge import merged_length
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.training import train_planner
from compdiffuser.presets import Preset
from compdiffuser.runs import run_folder
from compdiffuser.types import Episodes, UserError

PATCH = 8
"""Plans are whole patches of the transformer long."""


def monolithic(preset: Preset, horizon: int | None = None) -> Preset:
    """DD's view of a dataset: one chunk as long as the composed plan, or `horizon` states.

    Whatever the horizon, episodes are padded by the length of the composed plan, in environment steps.
    """
    chunks = preset.chunks
    composed = merged_length(chunks.count, chunks.horizon, chunks.overlap)
    composed = -(-composed // PATCH) * PATCH
    if horizon is not None and horizon < 2 * PATCH:
        raise UserError(f"a plan has at least {2 * PATCH} states, not {horizon}")
    whole = replace(
        chunks, horizon=horizon or composed, overlap=PATCH, count=1, most=1, back_padding=composed * chunks.stride,
        scaffold=None,
    )  # fmt: skip
    return replace(preset, chunks=whole)


def train_decision_diffuser(
    episodes: Episodes, preset: Preset, out: Path, *, horizon: int | None = None, **options: Any
) -> Checkpoint:
    """Train a monolithic planner on `episodes` and leave it in `out`; options as for `train_planner`."""
    return train_planner(episodes, monolithic(preset, horizon), out, method="dd", **options)


def trained(name: str) -> str | os.PathLike[str]:
    """Where a monolithic planner lies: a folder as given; for a dataset's name, where training leaves it."""
    folder = run_folder(name, "dd")
    return folder if folder.is_dir() and not Path(name).is_dir() else name


def check(name: str, preset: Preset, record: Mapping[str, Any]) -> None:
    """Raises UserError for a planner that was trained to compose chunks."""
    if preset.chunks.most != 1:
        found = record.get("method", "compdiffuser")
        raise UserError(
            f"'{name}' holds a planner of {found}, which composes chunks; "
            f"train a monolithic one with: compdiffuser train {preset.name} --method dd"
        )
