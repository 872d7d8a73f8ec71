"""`compdiffuser export`: a planner in another format."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Export:
    """Write a planner whose network onnxruntime can run.

    Example: compdiffuser export pointmaze-giant-stitch-v0 --onnx giant
    """

    model: tyro.conf.Positional[str]
    """Name of a shipped planner, the folder of one of yours, or its id on the hub."""
    onnx: Path
    """Folder for Planner.from_onnx; with a name that ends with .onnx, a file of the network alone."""

    def run(self) -> int:
        from compdiffuser.planning.checkpoint import load
        from compdiffuser.planning.sharing.exporting import SUFFIX, export_onnx

        written = export_onnx(load(self.model), self.onnx)
        print(written)
        if written.suffix != SUFFIX:
            print(f"load it with: Planner.from_onnx('{written}')", file=sys.stderr)
        return 0
