"""Stored outputs of small denoisers. Renew them after a wanted change: `python tests/models/renew_golden.py`.

Weights and inputs follow a formula, so the files hold only what the denoisers answer. A parameter's values depend on
its name: renaming one, which would break every checkpoint, changes the answer too.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.models import Denoiser, DenoiserConfig, DiT1dConfig, UNet1dConfig

FOLDER = Path(__file__).parent / "golden"
ROWS = 8
CONFIGS = {
    "dit1d": DenoiserConfig(16, 6, network=DiT1dConfig(width=32, depth=2, heads=2, patch=4)),
    "dit1d-encoder": DenoiserConfig(
        16, 6, 3, "paper", "encoder", network=DiT1dConfig(width=32, depth=1, heads=2, patch=4)
    ),
    "unet1d": DenoiserConfig(16, 6, network=UNet1dConfig(width=16, depth=2)),
    "unet1d-encoder": DenoiserConfig(16, 6, 2, "paper", "encoder", network=UNet1dConfig(width=16, depth=2)),
}


def wave(name: str, *shape: int) -> Tensor:
    """Numbers that look random but follow from a name."""
    phase = zlib.crc32(name.encode()) % 1000
    index = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(index * 12.9898 + 0.001 * index**2 + phase).float().reshape(shape)


def filled(config: DenoiserConfig) -> Denoiser:
    """A denoiser whose every weight is set, the ones that start at zero too."""
    denoiser = Denoiser(config).eval()
    with torch.no_grad():
        for name, parameter in denoiser.named_parameters():
            parameter.copy_(0.2 * wave(name, *parameter.shape) + (parameter if name.endswith("_scale") else 0))
    return denoiser


def inputs(config: DenoiserConfig, rows: int = ROWS) -> tuple[Tensor, Tensor, Conditions]:
    """Rows of many noise levels, with every combination of the left side and most of the right."""
    sigma = 0.02 * 1.9 ** torch.arange(rows)
    index = torch.arange(rows)
    side = [index % 3, (index // 2) % 3]  # 0 nothing, 1 a state, 2 a chunk
    conditions = Conditions(
        left=wave("left", rows, config.overlap, config.dim),
        left_sigma=sigma * 0.7,
        right=wave("right", rows, config.overlap, config.dim),
        right_sigma=sigma * 0.9,
        start=wave("start", rows, config.dim),
        goal=wave("goal", rows, config.dim),
        has_left=(side[0] == 2).float(),
        has_right=(side[1] == 2).float(),
        has_start=(side[0] == 1).float(),
        has_goal=(side[1] == 1).float(),
    )
    x = wave("x", rows, config.horizon, config.dim)
    return x * (1 + sigma[:, None, None]), sigma, conditions


@torch.no_grad()
def answer(config: DenoiserConfig) -> Tensor:
    """What a denoiser answers in double precision, in which no order of summation matters."""
    x, sigma, conditions = inputs(config)
    exact = filled(config).double().compute_in(torch.float64)
    return exact(x.double(), sigma.double(), conditions.map(Tensor.double))


if __name__ == "__main__":
    for name, config in CONFIGS.items():
        save_file({"x0": answer(config)}, FOLDER / f"{name}.safetensors")
