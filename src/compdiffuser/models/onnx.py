"""A denoiser as an ONNX file: one graph of network, conditions and preconditioning, for any number of rows.

`OnnxDenoiser` runs it with onnxruntime under the denoiser's own contract, so that a `Runner` takes either. The file
holds its weights and is read as bytes: nothing beside it is ever opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import warnings
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn

from compdiffuser.checks import brief
from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.diffusion.formulation import formulation
from compdiffuser.models.denoiser import Denoiser, DenoiserConfig
from compdiffuser.models.network import LEAST_ROWS
from compdiffuser.types import UserError, install

INPUTS = ("x", "sigma", *(field.name for field in fields(Conditions)))
"""Names of the graph's inputs; its output is `clean`."""
MISSING = f"ONNX needs the packages onnx, onnxscript and onnxruntime; {install('onnx')}"


class _Flat(nn.Module):
    """A denoiser whose conditions are plain arguments."""

    def __init__(self, denoiser: Denoiser) -> None:
        super().__init__()
        self.denoiser = denoiser

    def forward(self, x: Tensor, sigma: Tensor, *conditions: Tensor) -> Tensor:
        return self.denoiser(x, sigma, Conditions(*conditions))


def to_onnx(denoiser: Denoiser) -> bytes:
    """The ONNX file of a denoiser. Raises UserError where the packages for it are not installed."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise UserError(MISSING) from None
    config = denoiser.config
    # So many rows that nothing is padded for a few: the graph is then right for any number.
    x = torch.zeros(LEAST_ROWS + 4, config.horizon, config.dim)
    conditions = Conditions.nothing(x, config.overlap).map(torch.clone)
    rows = {0: torch.export.Dim("rows", min=LEAST_ROWS)}
    given = (x, torch.ones(len(x)), *conditions.tensors())
    with _quietly(), torch.no_grad():
        captured = torch.export.export(
            _Flat(denoiser).cpu().eval(), given, strict=False,
            dynamic_shapes={"x": rows, "sigma": rows, "conditions": (rows,) * len(conditions.tensors())},
        )  # fmt: skip
        program = torch.onnx.export(
            captured, input_names=list(INPUTS), output_names=["clean"], dynamo=True, verbose=False
        )
    assert program is not None
    return program.model_proto.SerializeToString()


class OnnxDenoiser(nn.Module):
    """x₀ from a noisy chunk and its conditions, by onnxruntime on the CPU."""

    digest: Tensor

    def __init__(self, data: bytes, config: DenoiserConfig) -> None:
        """Raises UserError where onnxruntime is missing, or cannot run this file."""
        super().__init__()
        try:
            import onnxruntime
        except ImportError:
            raise UserError(MISSING) from None
        self.config = config
        self.formulation = formulation(config.formulation)
        # In the place of weights, for whoever asks whether two denoisers are the same.
        self.register_buffer("digest", torch.tensor(list(hashlib.sha256(data).digest()), dtype=torch.uint8))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        try:
            self.session: Any = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own kinds have no common name
            raise UserError(f"onnxruntime cannot run this network: {brief(error)}") from None
        shapes = {each.name: each.shape[1:] for each in self.session.get_inputs()}
        if tuple(shapes) != INPUTS or shapes["x"] != [config.horizon, config.dim]:
            wanted = f"chunks [{config.horizon}, {config.dim}]"
            raise UserError(f"this ONNX network is not the denoiser of {wanted} that its config describes")

    def __deepcopy__(self, _: dict[int, Any]) -> OnnxDenoiser:
        """Itself: a session never changes."""
        return self

    def forward(self, x: Tensor, sigma: Tensor, conditions: Conditions) -> Tensor:
        """x [M, H, D], sigma [M] -> x₀ [M, H, D]"""
        given = zip(INPUTS, (x, sigma, *conditions.tensors()), strict=True)
        (clean,) = self.session.run(None, {name: tensor.contiguous().numpy() for name, tensor in given})
        return torch.from_numpy(clean)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """The exporter tells of its steps, and of packages that it does not need."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
