"""The planner's learner: chunks drawn from recorded episodes, noised, denoised, compared."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from compdiffuser.data.windows import Windows
from compdiffuser.diffusion.objective import ObjectiveConfig, draw, loss
from compdiffuser.models.denoiser import Denoiser
from compdiffuser.training.updater import Learner


@dataclass(frozen=True)
class ChunkLearner(Learner):
    """Trains a denoiser on windows of normalized states that lie on its device."""

    module: Denoiser
    windows: Windows
    objective: ObjectiveConfig
    batch: int
    weights: Tensor | None = None
    """[D] what each planned dimension counts; None: all the same."""

    def loss(self, module: nn.Module, generator: torch.Generator) -> Tensor:
        formulation = self.module.formulation
        clean = self.windows.sample(self.batch, generator)
        return loss(module, draw(clean, formulation, self.objective, generator), formulation, self.weights)
