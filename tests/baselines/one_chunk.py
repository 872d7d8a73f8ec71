"""A small monolithic planner whose weights follow from a seed, and the plan it makes.

Renew the stored plan after a wanted change: `python tests/baselines/one_chunk.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from compdiffuser.baselines.decision_diffuser import monolithic
from compdiffuser.compose.schedule import SamplerConfig
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.domains import Domain
from compdiffuser.models import Denoiser, DenoiserConfig, DiT1dConfig
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.recorded.calibration import Calibration
from compdiffuser.presets import ChunkConfig, Preset

GOLDEN = Path(__file__).parent / "golden" / "decision_diffuser.safetensors"
SHORT = Preset("short", Domain("short"), chunks=ChunkConfig(horizon=24, overlap=8, count=3, most=4))
SAMPLER = SamplerConfig(order="parallel", steps=6, eta=0.0, repeats=1, guidance=2.0)
START, GOAL = np.array([[-0.8, 0.1], [0.5, 0.5]], np.float32), np.array([[0.7, -0.3], [-0.9, 0.9]], np.float32)


def planner() -> Planner:
    preset = monolithic(SHORT)
    chunks = preset.chunks
    config = DenoiserConfig(chunks.horizon, chunks.overlap, network=DiT1dConfig(width=32, depth=1, heads=2))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        denoiser = Denoiser(config)
        for parameter in denoiser.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    quantiles = tuple(np.linspace(0, 3, 65).tolist())
    calibration = Calibration(probes=(0.2,), usual=(1.0,), errors=quantiles, reach=2.0, advance=1.0, step=0.1)
    normalizer = Normalizer((-1.0, -1.0), (1.0, 1.0))
    checkpoint = Checkpoint(denoiser.eval(), normalizer, calibration, preset, record={"method": "dd"})
    return Planner(checkpoint, "cpu", PlanConfig(sampler=SAMPLER, score="overlap", refine=None))


def plans() -> torch.Tensor:
    """[2, H, D]"""
    made = planner().plan_batch(START, GOAL, n_chunks=1, n_candidates=1, seed=5)
    return torch.stack([torch.as_tensor(plan.states) for plan in made])


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    save_file({"states": plans().contiguous()}, GOLDEN)
