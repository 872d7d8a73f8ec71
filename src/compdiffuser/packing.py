"""Weights in eight bits: whole numbers from −127 to 127 and a scale for each row, half the bytes of half precision.

Matrices are packed, the small rest stays as it is, and so do the layers that face the data: a transformer's first one
makes half of the error that eight bits make in all. Whoever restores a network unpacks its weights first, so nothing
else knows of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from compdiffuser.artifact import Artifact, Part
from compdiffuser.checks import brief
from compdiffuser.types import Array, UserError

SCALE = "@scale"
"""What the name of a matrix's scales ends with."""
LEAST = 1024
"""Elements of a matrix that is worth packing."""
LARGEST = 127
FACING = ("embed", "position", "condition", "out")
"""Layers that face the data and stay as they are; they are few, so that little would be saved."""


def packed(part: Mapping[str, Array]) -> Part:
    """A part with its matrices in eight bits."""
    packs: Part = {}
    for name, array in part.items():
        small = not np.issubdtype(array.dtype, np.floating) or array.ndim < 2 or array.size < LEAST
        if small or any(layer in FACING for layer in name.split(".")):
            packs[name] = array
            continue
        rows = array.reshape(len(array), -1).astype(np.float32)
        scales = np.maximum(np.abs(rows).max(axis=1) / LARGEST, np.finfo(np.float32).tiny)
        packs[name] = np.rint(rows / scales[:, None]).astype(np.int8).reshape(array.shape)
        packs[name + SCALE] = scales
    return packs


def unpacked(part: Mapping[str, Array], folder: str | os.PathLike[str]) -> Part:
    """A part with all of its matrices as real numbers. Raises UserError where scales do not belong to a matrix."""
    plain = {name: array for name, array in part.items() if not name.endswith(SCALE)}
    for name, scales in part.items():
        if not name.endswith(SCALE):
            continue
        matrix = part.get(name.removesuffix(SCALE))
        if matrix is None or matrix.dtype != np.int8 or scales.shape != matrix.shape[:1] or scales.dtype != np.float32:
            raise UserError(f"'{folder}' holds scales '{brief(name)}' that do not belong to weights in eight bits")
        shape = (-1,) + (1,) * (matrix.ndim - 1)
        plain[name.removesuffix(SCALE)] = matrix.astype(np.float32) * scales.reshape(shape)
    return plain


def smaller(found: Artifact) -> Artifact:
    """An artifact with its network in eight bits."""
    return replace(found, parts={**found.parts, "model": packed(found.parts["model"])})
