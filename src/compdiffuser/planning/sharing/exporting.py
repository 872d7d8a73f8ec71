"""A planner whose network is an ONNX file: a folder like a checkpoint, with `model.onnx` in place of weights."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from compdiffuser import artifact
from compdiffuser.artifact import Artifact
from compdiffuser.files import replacing
from compdiffuser.models.denoiser import Denoiser
from compdiffuser.models.onnx import OnnxDenoiser, to_onnx
from compdiffuser.planning.checkpoint import FORMAT, Checkpoint, restore
from compdiffuser.types import UserError

KIND = "planner in ONNX"
NETWORK = "model.onnx"
SUFFIX = ".onnx"


def export_onnx(checkpoint: Checkpoint, path: str | os.PathLike[str]) -> Path:
    """Write a planner into a folder for `load_onnx`; of a path that ends with .onnx, the network alone.

    Raises UserError where the packages for it are not installed, or the path cannot be written.
    """
    path = Path(path)
    if not isinstance(checkpoint.denoiser, Denoiser):
        raise UserError("this planner's network is an ONNX file already")
    file = path if path.suffix == SUFFIX else path / NETWORK
    if file != path and (kind := artifact.kind_of(path)) not in (None, KIND):
        raise UserError(f"'{path}' holds a {kind}, whose files a {KIND} would replace; choose another folder")
    data = to_onnx(checkpoint.denoiser)
    with replacing(file) as temporary:
        temporary.write_bytes(data)
    if file == path:
        return path
    config = {**checkpoint.described(), "network": {"sha256": hashlib.sha256(data).hexdigest()}}
    return artifact.save(path, Artifact(KIND, FORMAT, config, checkpoint.recorded()))


def load_onnx(folder: str | os.PathLike[str]) -> Checkpoint:
    """The planner that `export_onnx` wrote. Raises UserError where there is none, or it is damaged."""
    folder = Path(folder)
    found = artifact.load(folder, KIND, FORMAT, parts=())
    try:
        data = (folder / NETWORK).read_bytes()
    except OSError as error:
        raise UserError(f"'{folder / NETWORK}' cannot be read: {error.strerror or error}") from None
    with artifact.describing(folder, KIND):
        digest = found.config["network"]["sha256"]
    if hashlib.sha256(data).hexdigest() != digest:
        raise UserError(f"'{folder / NETWORK}' is corrupt: it is not the file that {artifact.CONFIG} describes")
    return restore(found, folder, KIND, lambda sizes: OnnxDenoiser(data, sizes))
